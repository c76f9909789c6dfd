package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
)

// TestExplain has a sentence for each way a request can stand, and the slots to come.
func TestExplain(t *testing.T) {
	capped := weekly()
	capped.Max = new(2)
	sent := row("3d", "2026-05-04T10:00Z", StateSent, "")
	second := row("7d", "2026-05-08T10:00Z", StateSent, "")
	for name, row := range map[string]struct {
		rows     []Reminder
		in       func(*Input)
		p        func(*Policy)
		sentence string
		next     string // slots, parted by blanks
	}{
		"the next one": {
			sentence: "The next reminder is slot 3d, due Mon 2026-05-04 10:00:00 +00:00.", next: "3d 7d 14d",
		},
		"in the zone of the recipient": {
			in:       func(in *Input) { in.Request.TimeZone = "Europe/Paris" },
			sentence: "The next reminder is slot 3d, due Mon 2026-05-04 12:00:00 +02:00.", next: "3d 7d 14d",
		},
		"due now": {
			in:       func(in *Input) { in.Now = at("2026-05-04T11:00Z") },
			sentence: "Slot 3d is due since Mon 2026-05-04 10:00:00 +00:00 and goes out at the next pass.", next: "7d 14d 21d",
		},
		"in flight": {
			in:       func(in *Input) { in.Now = at("2026-05-04T10:01Z") },
			rows:     []Reminder{row("3d", "2026-05-04T10:00Z", StateSending, "")},
			sentence: "Slot 3d is being sent right now.", next: "7d 14d 21d",
		},
		"to be tried again": {
			in:       func(in *Input) { in.Now = at("2026-05-04T10:01Z") },
			rows:     []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-04T10:30Z")},
			sentence: "Slot 3d is tried again after Mon 2026-05-04 10:30:00 +00:00: the server asked to try again later.", next: "7d 14d 21d",
		},
		"closed": {
			in:       func(in *Input) { in.Request.Status = "completed" },
			sentence: `Nothing is sent: the request is "completed", and only pending and pending_resubmission are reminded.`,
		},
		"opted out": {
			in:       func(in *Input) { in.Request.OptedOutAt = in.Now },
			sentence: "Nothing is sent now: the recipient opted out Sat 2026-05-02 10:00:00 +00:00.",
		},
		"paused": {
			in:       func(in *Input) { in.Request.PausedUntil = at("2026-05-08T10:00Z") },
			sentence: "Nothing is sent now: the request is paused until Fri 2026-05-08 10:00:00 +00:00; after that comes slot 7d, due Fri 2026-05-08 10:00:00 +00:00.", next: "7d 14d 21d",
		},
		"paused for ever": {
			in:       func(in *Input) { in.Request.PausedUntil, in.Request.PauseReason = Forever(), "on holiday" },
			sentence: "Nothing is sent now: the request is paused until resumed (on holiday).",
		},
		"the link expires before the second": {
			in:       func(in *Input) { in.Link.ExpiresAt = at("2026-05-08T10:00Z") },
			sentence: "The next reminder is slot 3d, due Mon 2026-05-04 10:00:00 +00:00.", next: "3d",
		},
		"room for one more": {
			in: func(in *Input) { in.Now = at("2026-05-05T10:00Z") }, rows: []Reminder{sent},
			p:        func(p *Policy) { p.with(t, "default", capped) },
			sentence: "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.", next: "7d",
		},
		"no room for more": {
			in: func(in *Input) { in.Now = at("2026-05-09T10:00Z") }, rows: []Reminder{sent, second},
			p:        func(p *Policy) { p.with(t, "default", capped) },
			sentence: "Slot 7d went out on time, Fri 2026-05-08 10:00:00 +00:00; nothing is sent now: the cadence's maximum of 2 mails for this link is reached.",
		},
		"the cadence is over": {
			in: func(in *Input) { in.Now = at("2026-05-09T10:00Z") }, rows: []Reminder{sent, second},
			p:        func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"3d", "7d"}}) },
			sentence: "Slot 7d went out on time, Fri 2026-05-08 10:00:00 +00:00; nothing more is sent: the cadence has no further slot for this link.",
		},
		"the link expires before the next": {
			in: func(in *Input) { in.Now, in.Link.ExpiresAt = at("2026-05-05T10:00Z"), at("2026-05-08T10:00Z") }, rows: []Reminder{sent},
			sentence: "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; nothing more is sent: the link expires Fri 2026-05-08 10:00:00 +00:00, before the next slot 7d.",
		},
		"anchor out of range": {
			in:       func(in *Input) { in.Link.CreatedAt = Forever() },
			sentence: "Nothing is sent: links.created_at is outside of the years 1970 to 9998 (it is infinity).",
		},
		"gone after a mail": {
			in: func(in *Input) { in.Request = nil }, rows: []Reminder{sent},
			sentence: "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; nothing more is sent: the request is gone.",
		},
		"no such cadence": {
			in:       func(in *Input) { in.Request.Cadence = "wekly" },
			sentence: `Nothing is sent: the configuration has no cadence "wekly".`,
		},
		"no link":    {in: func(in *Input) { in.Link = nil }, sentence: "Nothing is sent: the request has no upload link."},
		"no request": {in: func(in *Input) { in.Request = nil }, sentence: `There is no request "r".`},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Now: at("2026-05-02T10:00Z"), AdoptedAt: at("2020-01-01T00:00Z"), RequestID: "r",
				Request: &Request{ID: "r", Status: StatusPending}, Link: &Link{CreatedAt: created}, Reminders: row.rows,
			}
			p := newPolicy(t)
			if row.in != nil {
				row.in(&in)
			}
			if row.p != nil {
				row.p(p)
			}
			e := p.Explain(in, nil, 3)
			var next []string
			for _, slot := range e.Next {
				next = append(next, slot.Name)
			}
			if diff := cmp.Diff(row.sentence, e.Sentence); diff != "" {
				t.Errorf("sentence (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.next, strings.Join(next, " ")); diff != "" {
				t.Errorf("slots to come (-want +got):\n%s", diff)
			}
			slot, ok := p.NextSlot(in)
			want := strings.Fields(row.next + " ")
			switch {
			case e.Decision.Claim != nil:
				want = []string{e.Decision.Claim.Slot.Name}
			case name == "to be tried again":
				want = []string{"3d"}
			}
			if ok != (len(want) > 0) || ok && slot.Name != want[0] {
				t.Errorf("next slot %v %v, want the first of %v", slot, ok, want)
			}
		})
	}
}

func TestLocal(t *testing.T) {
	paris, err := cadence.LoadZone("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for want, instant := range map[string]time.Time{
		"": {}, "for ever": Forever(), "Tue 2026-12-01 13:00:00 +01:00": at("2026-12-01T12:00Z"),
	} {
		if got := Local(instant, paris); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
