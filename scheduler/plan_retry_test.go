package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPlanRetry has rule 7: how long a deferred reminder is tried again.
func TestPlanRetry(t *testing.T) {
	waits := deferred("3d", "2026-05-04T10:00Z", "2026-05-04T11:00Z")
	settled := waits // as not sent, by a person, three days later
	settled.Reason, settled.RetrySince, settled.RetryAt = ReasonNotSent, at("2026-05-05T12:00Z"), at("2026-05-05T12:00Z")
	tried := waits
	tried.Attempt = 4
	runPlan(t, map[string]planRow{
		"not yet": {
			now: "2026-05-04T10:59:59Z", rows: []Reminder{waits},
			want: []string{"wake 2026-05-04T11:00Z"},
		},
		"at the very instant": {
			now: "2026-05-04T11:00Z", rows: []Reminder{waits},
			want: []string{"claim 3d attempt 2 mail 1 retry", "wake 2026-05-08T10:00Z"},
		},
		"attempts are counted on": {
			now: "2026-05-04T11:00Z", rows: []Reminder{tried},
			want: []string{"claim 3d attempt 5 mail 1 retry", "wake 2026-05-08T10:00Z"},
		},
		"just before retry_for is over": {
			now: "2026-05-05T09:59:59Z", rows: []Reminder{waits},
			want: []string{"claim 3d attempt 2 mail 1 retry", "wake 2026-05-08T10:00Z"},
		},
		"retry_for is over": {
			now: "2026-05-05T10:00Z", rows: []Reminder{waits},
			want: []string{"deferred 3d failed retries_exhausted", "wake 2026-05-08T10:00Z"},
		},
		"retry_for counts from where a person settled it": {
			now: "2026-05-06T10:00Z", rows: []Reminder{settled},
			want: []string{"claim 3d attempt 2 mail 1 retry", "wake 2026-05-08T10:00Z"},
		},
		"too late for a mail": {
			now: "2026-05-06T10:00:01Z", rows: []Reminder{settled},
			want: []string{"deferred 3d skipped missed", "wake 2026-05-08T10:00Z"},
		},
		"the next slot is due": {
			now: "2026-05-08T10:00Z", rows: []Reminder{waits},
			want: []string{"deferred 3d failed retries_exhausted", "claim 7d attempt 1 mail 1", "wake 2026-05-15T10:00Z"},
		},
		"the next slot was due, and is settled": {
			now:  "2026-05-08T11:00Z",
			rows: []Reminder{settled, row("7d", "2026-05-08T10:00Z", StateSent, "")},
			p:    func(p *Policy) { p.Limits.MaxLateness, p.Limits.RetryFor = 400*day, 400*day },
			want: []string{"deferred 3d failed retries_exhausted", "wake 2026-05-15T10:00Z"},
		},
		"of two that wait only the newest": {
			now:  "2026-05-08T11:00Z",
			rows: []Reminder{deferred("7d", "2026-05-08T10:00Z", "2026-05-08T10:30Z"), waits},
			want: []string{"deferred 3d failed retries_exhausted", "claim 7d attempt 2 mail 1 retry", "wake 2026-05-15T10:00Z"},
		},
		"the retry comes before the next slot": {
			now:  "2026-05-04T10:30Z",
			rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-09T10:00Z")},
			want: []string{"wake 2026-05-08T10:00Z"},
		},
		"of a link that was replaced": {
			now:  "2026-05-04T10:00Z",
			rows: []Reminder{ofLink("2026-04-01T10:00Z", deferred("14d", "2026-04-15T10:00Z", "2026-04-15T11:00Z"))},
			want: []string{"deferred 14d skipped link_replaced", "claim 3d attempt 1 mail 1", "wake 2026-05-08T10:00Z"},
		},
	})
}

func TestRetryFollowsItsClaim(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonConnectionLost} }
	s.until("2026-05-04T10:00Z")
	before := s.reminders(subjectID)[0].ClaimID
	s.poll("2026-05-04T10:01Z")
	if c := s.last.Claim; c == nil || !c.Retry || c.Previous != before {
		t.Errorf("claim %+v does not follow %v", c, before)
	}
	if s.reminders(subjectID)[0].ClaimID == before {
		t.Error("both attempts have the same claim")
	}
}

func TestRetriesEndAfterADay(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	attempts := 0
	s.attempt = func(Task) Outcome {
		attempts++
		return Outcome{State: StateDeferred, Reason: ReasonGreylisted}
	}
	s.policy.Limits.RetryFor = time.Hour
	s.until("2026-05-07T10:00Z")
	s.wantLedger("3d failed retries_exhausted")
	if attempts != 60 {
		t.Errorf("%d attempts a minute apart, want 60 in retry_for", attempts)
	}
	s.wantWake("2026-05-08T10:00Z")
}

// TestRelayDownTooLong: a relay that is away burns no time for retries, but a reminder goes stale.
func TestRelayDownTooLong(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonRelayRefused} }
	s.jump("2026-05-04T10:00Z")
	for range 72 {
		s.pass()
		s.clock = s.clock.Add(time.Hour)
	}
	s.wantLedger("3d skipped missed")
}

// TestLeaseLost: what never left is tried again at once, and no attempt is burnt.
func TestLeaseLost(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.jump("2026-05-04T10:00Z")
	if tasks := s.claimOnly(); len(tasks) != 1 {
		t.Fatalf("%d claims", len(tasks))
	}
	s.poll("2026-05-04T10:04:59Z")
	s.wantMails()
	s.poll("2026-05-04T10:05Z")
	s.wantMails("3d 2026-05-04T10:05Z")
	if r := s.reminders(subjectID)[0]; r.Attempt != 1 {
		t.Errorf("attempt %d, want 1", r.Attempt)
	}
}

func TestDeferredOfADeadSubject(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*subject)
		want   string
	}{
		"closed":   {func(sub *subject) { sub.request.Status = "completed" }, "3d skipped request_closed"},
		"revoked":  {func(sub *subject) { sub.link.RevokedAt = at("2026-05-04T10:00Z") }, "3d skipped link_revoked"},
		"replaced": {func(sub *subject) { sub.link = &Link{CreatedAt: at("2026-05-04T10:00Z")} }, "3d skipped link_replaced"},
		"opted out": {func(sub *subject) {
			sub.request.OptedOutAt = at("2026-05-04T10:00Z")
		}, "3d skipped opted_out"},
		"deleted": {func(sub *subject) { sub.request, sub.link = nil, nil }, "3d skipped request_closed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, "2026-05-01T10:00Z")
			s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonGreylisted} }
			s.until("2026-05-04T10:00Z")
			s.change(row.change)
			s.pass()
			s.wantLedger(row.want)
			s.wantMails()
		})
	}
}

// TestInFlightBlocks: while a worker has a reminder of the request, of whatever link, there is no
// plan at all.
func TestInFlightBlocks(t *testing.T) {
	rows := map[string]planRow{}
	for _, state := range []State{StateClaimed, StateSending} {
		mine := row("3d", "2026-05-04T10:00Z", state, "")
		old := ofLink("2026-04-01T10:00Z", mine)
		waits := ofLink("2026-04-01T10:00Z", deferred("7d", "2026-04-08T10:00Z", "2026-04-08T10:00Z"))
		want := []string{"wake 2026-05-04T10:05Z"}
		rows[string(state)] = planRow{now: "2026-05-04T10:00Z", rows: []Reminder{mine}, want: want}
		rows[string(state)+" of a link that is gone"] = planRow{now: "2026-05-08T10:00Z", rows: []Reminder{waits, old}, want: want}
		rows[string(state)+" of a request that is closed"] = planRow{
			now: "2026-05-08T10:00Z", rows: []Reminder{mine, waits}, want: want,
			in: func(in *Input) { in.Request.Status = "completed" },
		}
	}
	runPlan(t, rows)
}

// TestRefreshInFlight replaces the link between claim and hand-off.
func TestRefreshInFlight(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.jump("2026-05-04T10:00Z")
	task := s.claimOnly()[0]
	s.change(func(sub *subject) { sub.link = &Link{CreatedAt: s.clock} })
	if tasks := s.claimOnly(); len(tasks) != 0 {
		t.Fatalf("claimed %v beside a reminder in flight", tasks)
	}
	got, err := s.Settle(context.Background(), Batch{HandOffs: []HandOff{{
		ClaimID: task.ClaimID, LinkCreatedAt: task.Link.CreatedAt, Recipient: task.Request.RecipientEmail,
	}}})
	if diff := cmp.Diff([]HandOffResult{{ClaimID: task.ClaimID, Reason: ReasonLinkReplaced}}, got); diff != "" || err != nil {
		t.Errorf("hand-off %v (-want +got):\n%s", err, diff)
	}
	s.until("2026-05-07T10:00Z")
	s.wantMails("3d 2026-05-07T10:00Z")
}
