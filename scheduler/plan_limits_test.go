package scheduler

import (
	"testing"
	"time"

	"nudged/cadence"
)

// TestPlanMax has the first half of rule 6: the ceiling of a link.
func TestPlanMax(t *testing.T) {
	capped := weekly()
	capped.Max = new(2)
	two := func(p *Policy) { p.with(t, "default", capped) }
	sent := row("3d", "2026-05-04T10:00Z", StateSent, "")
	unknown := row("7d", "2026-05-08T10:00Z", StateUnknown, ReasonReplyLost)
	reached := row("14d", "2026-05-15T10:00Z", StateSkipped, ReasonMaxReached)
	runPlan(t, map[string]planRow{
		"room for one more": {
			now: "2026-05-08T10:00Z", p: two, rows: []Reminder{sent},
			want: []string{"claim 7d attempt 1 mail 2", "wake 2026-05-15T10:00Z"},
		},
		"what may have been sent counts": {
			now: "2026-05-15T10:00Z", p: two, rows: []Reminder{sent, unknown},
			want: []string{"14d skipped max_reached"},
		},
		"what was not sent does not": {
			now: "2026-05-15T10:00Z", p: two,
			rows: []Reminder{sent, row("7d", "2026-05-08T10:00Z", StateFailed, ReasonMessageRefused)},
			want: []string{"claim 14d attempt 1 mail 2", "wake 2026-05-22T10:00Z"},
		},
		"nor does another link": {
			now: "2026-05-15T10:00Z", p: two,
			rows: []Reminder{ofLink("2026-04-01T10:00Z", sent), ofLink("2026-04-01T10:00Z", unknown)},
			want: []string{"3d skipped superseded", "7d skipped superseded", "claim 14d attempt 1 mail 1", "wake 2026-05-22T10:00Z"},
		},
		"written once": {
			now: "2026-05-22T10:00Z", p: two, rows: []Reminder{sent, unknown, reached},
		},
		"nothing is written before a slot falls due": {
			now: "2026-05-14T10:00Z", p: two, rows: []Reminder{sent, unknown},
			want: []string{"wake 2026-05-15T10:00Z"},
		},
		"raised afterwards": {
			now: "2026-05-22T10:00Z", rows: []Reminder{sent, unknown, reached},
			want: []string{"claim 21d attempt 1 mail 3", "wake 2026-05-29T10:00Z"},
		},
		"a person settled one as not sent": {
			now: "2026-05-22T10:00Z", p: two,
			rows: []Reminder{sent, row("7d", "2026-05-08T10:00Z", StateFailed, ReasonRetriesExhausted), reached},
			want: []string{"claim 21d attempt 1 mail 2", "wake 2026-05-29T10:00Z"},
		},
		"lowered while a reminder waits": {
			now: "2026-05-22T11:00Z", p: two,
			rows: []Reminder{sent, unknown, reached, deferred("21d", "2026-05-22T10:00Z", "2026-05-22T12:00Z")},
			want: []string{"deferred 21d skipped max_reached"},
		},
	})
}

func TestMaxReachedIsWrittenOnceAndSleeps(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	capped := weekly()
	capped.Max = new(2)
	s.policy.with(t, "default", capped)
	s.until("2027-05-01T10:00Z")
	s.wantMails("3d 2026-05-04T10:00Z", "7d 2026-05-08T10:00Z")
	s.wantLedger("3d sent", "7d sent", "14d skipped max_reached")
	s.wantWake("")
	s.change(func(*subject) {}) // looking again changes nothing
	s.pass()
	s.wantLedger("3d sent", "7d sent", "14d skipped max_reached")
	s.wantWake("")
}

// TestPlanMinGap has the second half of rule 6: a slot that comes sooner waits.
func TestPlanMinGap(t *testing.T) {
	old := func(state State, handedOff string) Reminder {
		return ofLink("2026-04-01T10:00Z", row("21d", handedOff, state, ""))
	}
	day := func(p *Policy) { p.Limits.MinGap = 24 * time.Hour }
	retry := deferred("3d", "2026-05-04T10:00Z", "2026-05-04T10:00Z")
	runPlan(t, map[string]planRow{
		"across links": {
			now: "2026-05-04T10:00Z", p: day, rows: []Reminder{old(StateSent, "2026-05-04T09:00Z")},
			want: []string{"wake 2026-05-05T09:00Z"},
		},
		"over at the very instant": {
			now: "2026-05-05T09:00Z", p: day, rows: []Reminder{old(StateSent, "2026-05-04T09:00Z")},
			want: []string{"claim 3d attempt 1 mail 1", "wake 2026-05-08T10:00Z"},
		},
		"after what may have been sent": {
			now: "2026-05-04T10:00Z", p: day, rows: []Reminder{old(StateUnknown, "2026-05-04T09:00Z")},
			want: []string{"wake 2026-05-05T09:00Z"},
		},
		"not after what was refused": {
			now: "2026-05-04T10:00Z", p: day, rows: []Reminder{old(StateFailed, "2026-05-04T09:00Z")},
			want: []string{"claim 3d attempt 1 mail 1", "wake 2026-05-08T10:00Z"},
		},
		"a retry waits as well": {
			now: "2026-05-04T10:00Z", p: day, rows: []Reminder{old(StateSent, "2026-05-04T09:00Z"), retry},
			want: []string{"wake 2026-05-05T09:00Z"},
		},
		"older slots are superseded while the newest waits": {
			now: "2026-05-08T10:00Z", p: day, rows: []Reminder{old(StateSent, "2026-05-08T09:00Z")},
			want: []string{"3d skipped superseded", "wake 2026-05-09T09:00Z"},
		},
		"an obstacle does not wait": {
			now: "2026-05-04T10:00Z", p: day, rows: []Reminder{old(StateSent, "2026-05-04T09:00Z")},
			in:   func(in *Input) { in.Suppressed = true },
			want: []string{"3d skipped suppressed", "wake 2026-05-08T10:00Z"},
		},
		"the next slot comes sooner than the gap ends": {
			now: "2026-05-04T10:00Z", rows: []Reminder{old(StateSent, "2026-05-04T09:59Z")},
			p: func(p *Policy) {
				day(p)
				p.with(t, "default", cadence.Definition{After: []string{"72h", "73h"}})
			},
			want: []string{"wake 2026-05-04T11:00Z"},
		},
	})
}

func TestMinGapCollapsesADenseCadence(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.policy.with(t, "default", cadence.Definition{ThenEvery: new("20m")})
	s.until("2026-05-01T13:00Z")
	s.wantMails("20m 2026-05-01T10:20Z", "80m 2026-05-01T11:20Z", "140m 2026-05-01T12:20Z")
}

func TestPause(t *testing.T) {
	pause := func(s *sim, until time.Time) {
		s.change(func(sub *subject) { sub.request.PausedUntil = until })
	}
	t.Run("until a date", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		pause(s, at("2026-05-10T00:00Z"))
		s.until("2026-05-16T00:00Z")
		s.wantMails("14d 2026-05-15T10:00Z")
		s.wantLedger("3d skipped paused", "7d skipped paused", "14d sent")
	})
	t.Run("until a date, the daemon down at its end", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		pause(s, at("2026-05-08T12:00Z"))
		s.poll("2026-05-08T13:00Z")
		s.wantMails()
		s.wantLedger("3d skipped superseded", "7d skipped paused")
		s.wantWake("2026-05-15T10:00Z")
	})
	t.Run("for ever, then resumed", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		pause(s, Forever())
		s.until("2026-05-08T11:00Z")
		pause(s, time.Time{})
		s.until("2026-05-16T00:00Z")
		s.wantMails("14d 2026-05-15T10:00Z")
		s.wantLedger("3d skipped paused", "7d skipped paused", "14d sent")
	})
	t.Run("while a reminder waits to be tried again", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonGreylisted} }
		s.until("2026-05-04T10:00Z")
		pause(s, at("2026-05-05T00:00Z"))
		s.attempt = nil
		s.until("2026-05-06T00:00Z")
		s.wantMails()
		s.wantLedger("3d skipped paused")
	})
}

// TestPlanIsBounded plans a link of a year's age whose cadence has half a million slots.
func TestPlanIsBounded(t *testing.T) {
	p := newPolicy(t).with(t, "default", cadence.Definition{ThenEvery: new("1m")})
	in := Input{
		Now: at("2027-05-01T10:00Z"), AdoptedAt: at("2020-01-01T00:00Z"),
		Request: &Request{Status: StatusPending}, Link: &Link{CreatedAt: created},
	}
	begun := time.Now()
	d := p.Plan(in)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("one plan took %s", took)
	}
	if len(d.Verdicts) > maxVerdicts {
		t.Errorf("%d verdicts, want at most %d", len(d.Verdicts), maxVerdicts)
	}
	if d.Claim == nil || !d.Claim.Slot.Due.Equal(in.Now) || !d.Wake.Equal(in.Now.Add(time.Minute)) {
		t.Errorf("claim %v, wake %s; want the newest of all slots", d.Claim, d.Wake)
	}
	for _, v := range d.Verdicts {
		if v.Reason != ReasonSuperseded {
			t.Fatalf("verdict %v", v)
		}
		in.Reminders = append(in.Reminders, Reminder{LinkCreatedAt: created, Slot: v.Slot.Name, DueAt: v.Slot.Due, State: v.State, Reason: v.Reason})
	}
	in.Reminders = append(in.Reminders, Reminder{LinkCreatedAt: created, Slot: d.Claim.Slot.Name, DueAt: d.Claim.Slot.Due, State: StateSent, HandedOffAt: in.Now})
	if d := p.Plan(in); d.Claim != nil || len(d.Verdicts) > 0 {
		t.Errorf("what lies behind the newest row came back: %v", d.lines())
	}
}
