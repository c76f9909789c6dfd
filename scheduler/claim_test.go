package scheduler

import (
	"strings"
	"testing"
	"time"

	"nudged/cadence"
)

// asked is a request whose link was created on 1 May 2026 at 10:00, looked at some time later.
func asked(now string, rows ...Reminder) Input {
	created := at("2026-05-01T10:00Z")
	for i := range rows {
		rows[i].RequestID, rows[i].LinkCreatedAt = "r-1", created
	}
	return Input{
		Now: at(now), AdoptedAt: created, RequestID: "r-1", Reminders: rows,
		Request: &Request{ID: "r-1", Status: StatusPending, RecipientEmail: "ana@example.net"},
		Link:    &Link{URL: "https://example.com/u", CreatedAt: created},
	}
}

// mailed is a row of a mail that was accepted.
func mailed(slot, due string) Reminder {
	return Reminder{Slot: slot, DueAt: at(due), State: StateSent, HandedOffAt: at(due), FinishedAt: at(due), RetrySince: at(due)}
}

// TestLastMail: a mail is the last one where the cadence, its ceiling or the expiry leaves none
// behind it.
func TestLastMail(t *testing.T) {
	for name, row := range map[string]struct {
		definition cadence.Definition
		expires    string
		rows       []Reminder
		want       bool
	}{
		"a series without end":            {definition: weekly()},
		"one slot":                        {definition: cadence.Definition{After: []string{"3d"}}, want: true},
		"one slot, and one by deadline":   {definition: cadence.Definition{After: []string{"3d"}, BeforeDeadline: []string{"1d"}}},
		"the ceiling":                     {definition: cadence.Definition{After: []string{"3d", "7d"}, Max: new(1)}, want: true},
		"below the ceiling":               {definition: cadence.Definition{After: []string{"3d", "7d"}, Max: new(2)}},
		"expires before the next":         {definition: weekly(), expires: "2026-05-08T09:59:59Z", want: true},
		"expires at the very next":        {definition: weekly(), expires: "2026-05-08T10:00Z", want: true},
		"expires right behind the next":   {definition: weekly(), expires: "2026-05-08T10:00:01Z"},
		"the ceiling counts what is sent": {definition: cadence.Definition{After: []string{"2d", "3d", "7d"}, Max: new(2)}, rows: []Reminder{mailed("2d", "2026-05-03T10:00Z")}, want: true},
	} {
		p := newPolicy(t)
		p.with(t, "default", row.definition)
		in := asked("2026-05-04T10:01Z", row.rows...)
		in.Request.Deadline = cadence.Date{Year: 2026, Month: time.May, Day: 20}
		if row.expires != "" {
			in.Link.ExpiresAt = at(row.expires)
		}
		claim := p.Plan(in).Claim
		if claim == nil || claim.Slot.Name != "3d" {
			t.Fatalf("%s: got %+v", name, claim)
		}
		if claim.Last != row.want || claim.Task(in).Last != row.want {
			t.Errorf("%s: last is %t, want %t", name, claim.Last, row.want)
		}
	}
}

// TestSinceIsEqualOnEveryAttempt: days are counted from the first claim, or from when a person said
// "not sent", and from no later attempt.
func TestSinceIsEqualOnEveryAttempt(t *testing.T) {
	p := newPolicy(t)
	p.RepeatWithin = 20 * time.Hour
	first := p.Plan(asked("2026-05-04T10:01Z")).Claim
	if !first.Since.Equal(at("2026-05-04T10:01Z")) {
		t.Errorf("a first claim counts from %s", first.Since)
	}
	again := mailed("3d", "2026-05-04T10:00Z")
	again.RetrySince, again.Attempt, again.Recipient = first.Since, 1, "ana@example.net"
	again.State, again.RetryAt = StateDeferred, at("2026-05-04T20:00Z")
	retry := p.Plan(asked("2026-05-05T01:00Z", again)).Claim
	again.State, again.RetryAt, again.UnknownSince = StateUnknown, time.Time{}, at("2026-05-04T10:02Z")
	repeat := p.Plan(asked("2026-05-05T01:00Z", again)).Claim
	for _, claim := range []*Claim{retry, repeat} {
		if claim == nil || claim.Attempt != 2 || !claim.Retry || !claim.Since.Equal(first.Since) || claim.Number != first.Number || claim.Last != first.Last {
			t.Errorf("got %+v, want what %+v says", claim, first)
		}
	}
}

// TestPreview finds slots that were, are and will be.
func TestPreview(t *testing.T) {
	p := newPolicy(t)
	rows := []Reminder{mailed("3d", "2026-05-04T10:00Z"), {Slot: "7d", DueAt: at("2026-05-08T10:00Z"), State: StateSkipped, Reason: ReasonPaused, RetrySince: at("2026-05-08T10:00:05Z")}}
	for _, row := range []struct {
		now, name, slot, since string
		number                 int
	}{
		{"2026-05-04T10:01Z", "", "3d", "2026-05-04T10:01Z", 1}, // due: the very claim
		{"2026-05-04T10:01Z", "3d", "3d", "2026-05-04T10:01Z", 1},
		{"2026-05-04T10:01Z", "14d", "14d", "", 3}, // if 3d and 7d go out
		{"2026-05-02T10:00Z", "", "3d", "", 1},
		{"2026-05-02T10:00Z", "21d", "21d", "", 4},
	} {
		claim, err := p.Preview(asked(row.now), row.name)
		since := time.Time{}
		if row.since != "" {
			since = at(row.since)
		}
		if err != nil || claim.Slot.Name != row.slot || claim.Number != row.number || !claim.Since.Equal(since) {
			t.Errorf("%s, slot %q: got %+v, %v", row.now, row.name, claim, err)
		}
	}
	for name, want := range map[string]int{"3d": 1, "7d": 2, "": 2, "14d": 2, "21d": 3} {
		claim, err := p.Preview(asked("2026-05-09T10:00Z", rows...), name)
		if err != nil || claim.Number != want {
			t.Errorf("slot %q: got %+v, %v, want number %d", name, claim, err, want)
		}
	}
	for name, row := range map[string]struct {
		change func(*Input)
		slot   string
		want   string
	}{
		"no request":    {func(in *Input) { in.Request = nil }, "", "there is no request"},
		"no link":       {func(in *Input) { in.Link = nil }, "", "no upload link"},
		"no cadence":    {func(in *Input) { in.Request.Cadence = "gone" }, "", `no cadence "gone"`},
		"closed":        {func(in *Input) { in.Request.Status = "completed" }, "", "no slot of the request is to come"},
		"no such slot":  {func(*Input) {}, "8d", `no slot "8d"`},
		"no first mail": {func(*Input) {}, "0d", `no slot "0d"`},
	} {
		in := asked("2026-05-02T10:00Z")
		row.change(&in)
		if claim, err := p.Preview(in, row.slot); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %+v, %v", name, claim, err)
		}
	}
}

// TestPreviewIsWhatGoesOut: the mail that is shown beforehand has the number and the tone of the one
// that is claimed later, whatever the slot before it is going through.
func TestPreviewIsWhatGoesOut(t *testing.T) {
	capped := weekly()
	capped.Max = new(3)
	third := func(r Reminder) Reminder { // what became of 3d while the next ones were looked at
		r.Slot, r.DueAt, r.Attempt, r.ClaimID, r.LinkCreatedAt = "3d", at("2026-05-04T10:00Z"), 1, ClaimID{1}, created
		r.RetrySince, r.Recipient = r.DueAt, "ana@example.net"
		return r
	}
	for name, row := range map[string]struct {
		now  string
		rows []Reminder
	}{
		"before all":  {"2026-05-02T10:00Z", nil},
		"due":         {"2026-05-04T10:01Z", nil},
		"claimed":     {"2026-05-04T10:01Z", []Reminder{third(Reminder{State: StateClaimed, LeaseUntil: at("2026-05-04T10:05Z")})}},
		"sending":     {"2026-05-04T10:01Z", []Reminder{third(Reminder{State: StateSending, HandedOffAt: at("2026-05-04T10:01Z"), LeaseUntil: at("2026-05-04T10:05Z")})}},
		"tried again": {"2026-05-04T10:01Z", []Reminder{third(Reminder{State: StateDeferred, Reason: ReasonGreylisted, RetryAt: at("2026-05-04T10:30Z")})}},
		"unknown":     {"2026-05-04T10:01Z", []Reminder{third(Reminder{State: StateUnknown, Reason: ReasonReplyLost, HandedOffAt: at("2026-05-04T10:01Z")})}},
		"too soon after a slot of an older cadence": {"2026-05-04T10:01Z", []Reminder{
			{Slot: "71h", DueAt: at("2026-05-04T09:00Z"), State: StateSent, HandedOffAt: at("2026-05-04T09:30Z")},
		}},
	} {
		p := newPolicy(t)
		p.with(t, "default", capped)
		shown := map[string]*Claim{}
		for _, slot := range []string{"3d", "7d", "14d"} {
			claim, err := p.Preview(asked(row.now, row.rows...), slot)
			if err != nil {
				t.Fatal(err)
			}
			shown[slot] = claim
		}
		if next, err := p.Preview(asked(row.now, row.rows...), ""); err != nil || next.Slot.Name != map[bool]string{true: "7d", false: "3d"}[name == "claimed" || name == "sending" || name == "unknown"] {
			t.Errorf("%s: the next mail is %+v, %v", name, next, err)
		}
		rows := row.rows
		for i := range rows {
			rows[i].State, rows[i].Reason, rows[i].HandedOffAt = StateSent, "", rows[i].DueAt
		}
		for _, now := range []string{"2026-05-04T12:00Z", "2026-05-08T12:00Z", "2026-05-15T12:00Z"} {
			claim := p.Plan(asked(now, rows...)).Claim
			if claim == nil {
				continue // 3d is out already
			}
			was := shown[claim.Slot.Name]
			if was.Number != claim.Number || was.Last != claim.Last || was.Slot != claim.Slot {
				t.Errorf("%s: shown was %+v, claimed is %+v", name, was, claim)
			}
			rows = append(rows, Reminder{LinkCreatedAt: created, Slot: claim.Slot.Name, DueAt: claim.Slot.Due, State: StateSent, HandedOffAt: at(now)})
		}
	}
}
