package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
)

// planRow is one decision: the link was created at 2026-05-01T10:00Z, so that slots 3d, 7d, 14d
// and 21d are due on the 4th, 8th, 15th and 22nd of May at 10:00Z.
type planRow struct {
	now  string
	rows []Reminder
	in   func(*Input)
	p    func(*Policy)
	want []string
}

var created = at("2026-05-01T10:00Z")

// row is a reminder of the present link that was due, and worked on, at an instant.
func row(slot, due string, state State, reason Reason) Reminder {
	r := Reminder{
		LinkCreatedAt: created, Slot: slot, DueAt: at(due), State: state, Reason: reason,
		Attempt: 1, ClaimID: ClaimID{1}, RetrySince: at(due), HandedOffAt: at(due),
	}
	switch state {
	case StateSkipped:
		r.Attempt, r.ClaimID, r.HandedOffAt = 0, ClaimID{}, time.Time{}
	case StateClaimed, StateSending:
		r.LeaseUntil = at(due).Add(5 * time.Minute)
	}
	return r
}

// deferred is a reminder to be tried again.
func deferred(slot, due, retry string) Reminder {
	r := row(slot, due, StateDeferred, ReasonGreylisted)
	r.RetryAt = at(retry)
	return r
}

// ofLink moves a reminder to another link.
func ofLink(link string, r Reminder) Reminder {
	r.LinkCreatedAt = at(link)
	return r
}

// lines writes a decision for people to read.
func (d Decision) lines() []string {
	var lines []string
	if d.Problem != "" {
		lines = append(lines, "problem "+string(d.Problem))
	}
	for _, v := range d.Verdicts {
		line := fmt.Sprintf("%s %s %s", v.Slot.Name, v.State, v.Reason)
		if v.Existing {
			line = "deferred " + line
		}
		lines = append(lines, line)
	}
	if c := d.Claim; c != nil {
		line := fmt.Sprintf("claim %s attempt %d mail %d", c.Slot.Name, c.Attempt, c.Number)
		if c.Retry {
			line += " retry"
		}
		lines = append(lines, line)
	}
	if !d.Wake.IsZero() {
		lines = append(lines, "wake "+instant(d.Wake))
	}
	return lines
}

func runPlan(t *testing.T, rows map[string]planRow) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Now: at(row.now), AdoptedAt: at("2020-01-01T00:00Z"), RequestID: "r",
				Request:   &Request{ID: "r", Status: StatusPending, RecipientEmail: "ana@example.com"},
				Link:      &Link{CreatedAt: created},
				Reminders: row.rows,
			}
			p := newPolicy(t)
			if row.in != nil {
				row.in(&in)
			}
			if row.p != nil {
				row.p(p)
			}
			if diff := cmp.Diff(row.want, p.Plan(in).lines()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanDue has rules 3 to 5: which of the slots that fell due is sent.
func TestPlanDue(t *testing.T) {
	adopted := func(text string) func(*Input) {
		return func(in *Input) { in.AdoptedAt = at(text) }
	}
	runPlan(t, map[string]planRow{
		"nothing is due yet": {
			now:  "2026-05-04T09:59:59Z",
			want: []string{"wake 2026-05-04T10:00Z"},
		},
		"due at the very instant": {
			now:  "2026-05-04T10:00Z",
			want: []string{"claim 3d attempt 1 mail 1", "wake 2026-05-08T10:00Z"},
		},
		"of several due only the newest": {
			now:  "2026-05-15T10:00Z",
			want: []string{"3d skipped superseded", "7d skipped superseded", "claim 14d attempt 1 mail 1", "wake 2026-05-22T10:00Z"},
		},
		"as late as max_lateness": {
			now:  "2026-05-06T10:00Z",
			want: []string{"claim 3d attempt 1 mail 1", "wake 2026-05-08T10:00Z"},
		},
		"later than max_lateness": {
			now:  "2026-05-06T10:00:01Z",
			want: []string{"3d skipped missed", "wake 2026-05-08T10:00Z"},
		},
		"the newest missed, the others superseded": {
			now:  "2026-05-11T10:00Z",
			want: []string{"3d skipped superseded", "7d skipped missed", "wake 2026-05-15T10:00Z"},
		},
		"covered by the last mail": {
			now:  "2026-05-08T10:00Z",
			rows: []Reminder{row("7d", "2026-05-08T10:00Z", StateSent, "")},
			want: []string{"wake 2026-05-15T10:00Z"},
		},
		"covered by the last skip": {
			now:  "2026-05-09T10:00Z",
			rows: []Reminder{row("7d", "2026-05-08T10:00Z", StateSkipped, ReasonPaused)},
			want: []string{"wake 2026-05-15T10:00Z"},
		},
		"an unknown outcome is never planned again": {
			now:  "2026-05-04T11:00Z",
			rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateUnknown, ReasonReplyLost)},
			want: []string{"wake 2026-05-08T10:00Z"},
		},
		"a failed slot is never planned again": {
			now:  "2026-05-04T11:00Z",
			rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateFailed, ReasonMessageRefused)},
			want: []string{"wake 2026-05-08T10:00Z"},
		},
		"before the adoption": {
			now:  "2026-05-11T10:00Z",
			in:   adopted("2026-05-10T00:00Z"),
			want: []string{"3d skipped before_adoption", "7d skipped before_adoption", "wake 2026-05-15T10:00Z"},
		},
		"before the adoption, but within max_lateness": {
			now:  "2026-05-10T10:00Z",
			in:   adopted("2026-05-10T00:00Z"),
			want: []string{"3d skipped before_adoption", "claim 7d attempt 1 mail 1", "wake 2026-05-15T10:00Z"},
		},
		"at the instant of the adoption": {
			now:  "2026-05-15T10:00Z",
			in:   adopted("2026-05-08T10:00Z"),
			want: []string{"3d skipped before_adoption", "7d skipped superseded", "claim 14d attempt 1 mail 1", "wake 2026-05-22T10:00Z"},
		},
		"the last slot of a cadence that ends": {
			now:  "2026-05-08T10:00Z",
			p:    func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"3d", "7d"}}) },
			want: []string{"3d skipped superseded", "claim 7d attempt 1 mail 1"},
		},
		"the first mail is due at once": {
			now:  "2026-05-01T10:00Z",
			p:    func(p *Policy) { p.with(t, "default", cadence.Definition{FirstMail: true, After: []string{"3d"}}) },
			want: []string{"claim 0d attempt 1 mail 1", "wake 2026-05-04T10:00Z"},
		},
		"the first mail of an anchor with a fraction": {
			now:  "2026-05-01T10:00Z",
			in:   func(in *Input) { in.Link.CreatedAt = at("2026-05-01T10:00:00.999999Z") },
			p:    func(p *Policy) { p.with(t, "default", cadence.Definition{FirstMail: true, After: []string{"3d"}}) },
			want: []string{"claim 0d attempt 1 mail 1", "wake 2026-05-04T10:00Z"},
		},
		"a deadline slot": {
			now: "2026-05-04T10:00Z",
			in:  func(in *Input) { in.Request.Deadline = cadence.Date{Year: 2026, Month: time.May, Day: 6} },
			p:   func(p *Policy) { p.with(t, "default", cadence.Definition{BeforeDeadline: []string{"2d", "1d"}}) },
			want: []string{
				"claim deadline-2d attempt 1 mail 1", "wake 2026-05-05T10:00Z",
			},
		},
	})
}

// TestPlanObstacles has rule 2, for a slot that falls due and for one that waits to be tried again:
// both are written down, so that they do not come back when the reason goes.
func TestPlanObstacles(t *testing.T) {
	capped := weekly()
	capped.Max = new(1)
	for name, row := range map[string]struct {
		in     func(*Input)
		p      func(*Policy)
		reason Reason
	}{
		"nothing is wrong":                {in: func(*Input) {}},
		"revoked":                         {in: func(in *Input) { in.Link.RevokedAt = at("2026-05-08T09:00Z") }, reason: ReasonLinkRevoked},
		"expires at the very instant":     {in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-08T10:00Z") }, reason: ReasonLinkExpired},
		"expires a microsecond later":     {in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-08T10:00:00.000001Z") }},
		"opted out":                       {in: func(in *Input) { in.Request.OptedOutAt = at("2026-05-08T09:59:59Z") }, reason: ReasonOptedOut},
		"suppressed":                      {in: func(in *Input) { in.Suppressed = true }, reason: ReasonSuppressed},
		"paused until later":              {in: func(in *Input) { in.Request.PausedUntil = at("2026-05-08T10:00:01Z") }, reason: ReasonPaused},
		"paused for ever":                 {in: func(in *Input) { in.Request.PausedUntil = Forever() }, reason: ReasonPaused},
		"the pause ends at the very due":  {in: func(in *Input) { in.Request.PausedUntil = at("2026-05-08T10:00Z") }},
		"the address is not allowed":      {p: func(p *Policy) { p.Allowed = func(a string) bool { return a != "ana@example.com" } }, reason: ReasonNotAllowed},
		"the address is allowed":          {p: func(p *Policy) { p.Allowed = func(a string) bool { return a == "ana@example.com" } }},
		"the maximum is reached":          {p: func(p *Policy) { p.with(t, "default", capped) }, reason: ReasonMaxReached},
		"revoked counts before opted out": {in: func(in *Input) { in.Link.RevokedAt, in.Request.OptedOutAt = in.Now, in.Now }, reason: ReasonLinkRevoked},
	} {
		if row.in == nil {
			row.in = func(*Input) {}
		}
		sent := Reminder{
			LinkCreatedAt: created, Slot: "3d", DueAt: at("2026-05-04T10:00Z"), State: StateSent,
			HandedOffAt: at("2026-05-04T10:00Z"),
		}
		next := "wake 2026-05-15T10:00Z"
		fresh, retry := []string{"claim 7d attempt 1 mail 2", next}, []string{"claim 7d attempt 2 mail 2 retry", next}
		if row.reason != "" {
			fresh, retry = []string{"7d skipped " + string(row.reason), next}, []string{"deferred 7d skipped " + string(row.reason), next}
		}
		if row.reason == ReasonMaxReached { // nothing can come any more
			fresh, retry = fresh[:1], retry[:1]
		}
		runPlan(t, map[string]planRow{
			name + "/due":   {now: "2026-05-08T10:00Z", rows: []Reminder{sent}, in: row.in, p: row.p, want: fresh},
			name + "/retry": {now: "2026-05-08T10:00Z", rows: []Reminder{sent, deferred("7d", "2026-05-08T10:00Z", "2026-05-08T10:00Z")}, in: row.in, p: row.p, want: retry},
		})
	}
}

// TestPlanClosed has rule 1: of a request that is not open only what waits is ended.
func TestPlanClosed(t *testing.T) {
	rows := []Reminder{
		ofLink("2026-04-01T10:00Z", deferred("3d", "2026-04-04T10:00Z", "2026-04-04T11:00Z")),
		deferred("3d", "2026-05-04T10:00Z", "2026-05-04T11:00Z"),
		row("7d", "2026-05-08T10:00Z", StateSent, ""),
	}
	runPlan(t, map[string]planRow{
		"closed": {
			now: "2026-05-22T10:00Z", rows: rows,
			in:   func(in *Input) { in.Request.Status = "completed" },
			want: []string{"deferred 3d skipped request_closed", "deferred 3d skipped request_closed"},
		},
		"its row is gone": {
			now: "2026-05-22T10:00Z", rows: rows,
			in:   func(in *Input) { in.Request, in.Link = nil, nil },
			want: []string{"deferred 3d skipped request_closed", "deferred 3d skipped request_closed"},
		},
		"its link is gone": {
			now: "2026-05-22T10:00Z", rows: rows,
			in:   func(in *Input) { in.Link = nil },
			want: []string{"deferred 3d skipped link_revoked", "deferred 3d skipped link_revoked"},
		},
		"a link without a request is looked at again": {
			now:  "2026-05-22T10:00Z",
			in:   func(in *Input) { in.Request = nil },
			want: []string{"wake 2026-05-22T11:00Z"},
		},
	})
}
