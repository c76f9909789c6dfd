package scheduler

import (
	"testing"
	"time"

	"nudged/cadence"
)

// doubted is a reminder that was handed off when it was due and may have been accepted.
func doubted(slot, due string) Reminder {
	r := row(slot, due, StateUnknown, ReasonReplyLost)
	r.UnknownSince, r.FinishedAt, r.Recipient = at(due), at(due).Add(10*time.Minute), "ana@example.com"
	return r
}

// doubtedAndDeferred is one whose repetition was put off by the server.
func doubtedAndDeferred(slot, due, retry string) Reminder {
	r := doubted(slot, due)
	r.State, r.Reason, r.RetryAt, r.FinishedAt = StateDeferred, ReasonGreylisted, at(retry), time.Time{}
	r.HandedOffAt = at(due).Add(time.Hour)
	return r
}

// TestPlanRepeat: behind a relay that drops what repeats a key, and only there, an unknown outcome
// is repeated: the same mail, to the same address, while the relay remembers.
func TestPlanRepeat(t *testing.T) {
	idempotent := func(p *Policy) { p.RepeatWithin = 20 * time.Hour }
	next := "wake 2026-05-08T10:00Z"
	unknown := []Reminder{doubted("3d", "2026-05-04T10:00Z")}
	deferred := []Reminder{doubtedAndDeferred("3d", "2026-05-04T10:00Z", "2026-05-04T11:05Z")}
	changed := doubted("3d", "2026-05-04T10:00Z")
	changed.Recipient = "ana@example.org"
	one := cadence.Definition{After: []string{"3d", "7d"}, Max: new(1)}
	runPlan(t, map[string]planRow{
		"not without a key": {
			now: "2026-05-04T11:00Z", rows: unknown, want: []string{next},
		},
		"not at once": {
			now: "2026-05-04T10:10:30Z", p: idempotent, rows: unknown,
			want: []string{"wake 2026-05-04T10:11Z"},
		},
		"under the same key": {
			now: "2026-05-04T10:11Z", p: idempotent, rows: unknown,
			want: []string{"claim 3d attempt 2 mail 1 retry", next},
		},
		"not beyond what the relay remembers": {
			now: "2026-05-05T06:00Z", p: idempotent, rows: unknown, want: []string{next},
		},
		"ended where there is no plan any more, for a person to settle": {
			now: "2026-05-04T11:00Z", p: idempotent, rows: deferred,
			in:   func(in *Input) { in.Request.Cadence = "renamed" },
			want: []string{"problem unknown_cadence", "deferred 3d unknown reply_lost"},
		},
		"not to another address": {
			now: "2026-05-04T11:00Z", p: idempotent, rows: []Reminder{changed}, want: []string{next},
		},
		"not to one that opted out": {
			now: "2026-05-04T11:00Z", p: idempotent, rows: unknown, want: []string{next},
			in: func(in *Input) { in.Request.OptedOutAt = in.Now },
		},
		"not behind a newer slot": {
			now: "2026-05-04T11:00Z", p: func(p *Policy) {
				idempotent(p)
				p.with(t, "default", cadence.Definition{After: []string{"72h", "73h"}})
			},
			rows: []Reminder{doubted("72h", "2026-05-04T10:00Z"), row("73h", "2026-05-04T11:00Z", StateSkipped, ReasonPaused)},
		},
		"not longer than retry_for": {
			now: "2026-05-04T12:00Z", rows: unknown, want: []string{next},
			p: func(p *Policy) {
				idempotent(p)
				p.Limits.RetryFor = 2 * time.Hour
			},
		},
		"not later than max_lateness": {
			now: "2026-05-04T13:00:01Z", rows: unknown, want: []string{next},
			p: func(p *Policy) {
				idempotent(p)
				p.Limits.MaxLateness = 3 * time.Hour
			},
		},
		"not by a ledger that was restored since": {
			now: "2026-05-04T11:00Z", p: idempotent, rows: unknown, want: []string{next},
			in: func(in *Input) { in.NotBefore = at("2026-05-04T10:30Z") },
		},
		"it is the one mail of the maximum itself": {
			now: "2026-05-04T10:11Z", rows: unknown,
			p: func(p *Policy) {
				idempotent(p)
				p.with(t, "default", one)
			},
			want: []string{"claim 3d attempt 2 mail 1 retry", next},
		},

		"the maximum is reached and that is known": {
			now:  "2026-05-08T10:11Z",
			rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonMaxReached), doubted("7d", "2026-05-08T10:00Z")},
			p: func(p *Policy) {
				idempotent(p)
				p.with(t, "default", one)
			},
			want: []string{"claim 7d attempt 2 mail 1 retry"},
		},

		"put off: waits": {
			now: "2026-05-04T11:04Z", p: idempotent, rows: deferred, want: []string{"wake 2026-05-04T11:05Z"},
		},
		"put off: waits, where the maximum is reached and that is known": {
			now: "2026-05-08T11:04Z",
			rows: []Reminder{
				row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonMaxReached),
				doubtedAndDeferred("7d", "2026-05-08T10:00Z", "2026-05-08T11:05Z"),
			},
			p: func(p *Policy) {
				idempotent(p)
				p.with(t, "default", one)
			},
			want: []string{"wake 2026-05-08T11:05Z"},
		},
		"put off: repeated again, whatever min_gap": {
			now: "2026-05-04T11:05Z", rows: deferred,
			p: func(p *Policy) {
				idempotent(p)
				p.Limits.MinGap = 24 * time.Hour
				p.with(t, "default", one)
			},
			want: []string{"claim 3d attempt 2 mail 1 retry", next},
		},
		"put off: unknown once the relay has forgotten": {
			now: "2026-05-05T06:00Z", p: idempotent, rows: deferred,
			want: []string{"deferred 3d unknown reply_lost", next},
		},
		"put off: unknown where the request is paused": {
			now: "2026-05-04T11:05Z", p: idempotent, rows: deferred,
			in:   func(in *Input) { in.Request.PausedUntil = Forever() },
			want: []string{"deferred 3d unknown reply_lost", next},
		},
		"put off: unknown where the request is closed": {
			now: "2026-05-04T11:05Z", p: idempotent, rows: deferred,
			in:   func(in *Input) { in.Request.Status = "completed" },
			want: []string{"deferred 3d unknown reply_lost"},
		},
		"put off: it may have been accepted, so it counts": {
			now: "2026-05-08T10:00Z", rows: deferred,
			p:    func(p *Policy) { p.with(t, "default", one) },
			want: []string{"deferred 3d unknown reply_lost", "7d skipped max_reached"},
		},
		"put off: and the gap behind it holds": {
			now: "2026-05-04T11:30Z",
			p: func(p *Policy) {
				p.Limits.MinGap = 2 * time.Hour
				p.with(t, "default", cadence.Definition{After: []string{"72h", "73h"}})
			},
			rows: []Reminder{doubtedAndDeferred("72h", "2026-05-04T10:00Z", "2026-05-04T12:00Z")},
			want: []string{"deferred 72h unknown reply_lost", "wake 2026-05-04T13:00Z"}, // from the last attempt
		},
		"put off: of a link that was replaced": {
			now: "2026-05-04T10:00Z",
			p:   func(p *Policy) { p.Limits.MinGap = 2 * time.Hour },
			rows: []Reminder{
				ofLink("2026-04-01T10:00Z", doubtedAndDeferred("28d", "2026-05-04T09:00Z", "2026-05-04T12:00Z")),
			},
			want: []string{"deferred 28d unknown reply_lost", "wake 2026-05-04T12:00Z"},
		},
	})
}

func TestRepeatUntilItIsKnown(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.policy.RepeatWithin = 20 * time.Hour
	s.attempt = func(task Task) Outcome {
		if task.Attempt < 4 {
			return Outcome{State: StateUnknown, Reason: ReasonReplyLost}
		}
		return Outcome{State: StateSent}
	}
	s.until("2026-05-05T00:00Z")
	s.wantMails("3d 2026-05-04T10:03Z")
	s.wantLedger("3d sent")
}

// TestD06NoRepetitionByItself: the usual relay honours no key, and what is unknown stays so.
func TestD06NoRepetitionByItself(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	attempts := 0
	s.attempt = func(Task) Outcome {
		attempts++
		return Outcome{State: StateUnknown, Reason: ReasonReplyLost}
	}
	s.until("2026-05-08T09:00Z")
	if attempts != 1 {
		t.Errorf("%d attempts, want 1", attempts)
	}
	s.wantLedger("3d unknown reply_lost")
}

// TestPlanNotBefore: a restored ledger may lack mails, so nothing older than its adoption is sent,
// however recent; what a person settled is.
func TestPlanNotBefore(t *testing.T) {
	restored := func(in *Input) { in.NotBefore = at("2026-05-08T10:00:01Z") }
	settled := deferred("7d", "2026-05-08T10:00Z", "2026-05-08T10:00Z")
	settled.Reason, settled.RetrySince = ReasonNotSent, at("2026-05-08T10:30Z")
	copied := settled
	copied.RetrySince = at("2026-05-08T10:00:01Z")
	putOff := deferred("7d", "2026-05-08T10:00Z", "2026-05-08T10:40Z")
	putOff.RetrySince, putOff.HandedOffAt = at("2026-05-08T10:30Z"), at("2026-05-08T10:31Z")
	runPlan(t, map[string]planRow{
		"a slot that fell due just before": {
			now: "2026-05-08T11:00Z", in: restored,
			want: []string{"3d skipped before_adoption", "7d skipped before_adoption", "wake 2026-05-15T10:00Z"},
		},
		"a slot that falls due afterwards": {
			now: "2026-05-15T10:00Z", in: restored,
			want: []string{
				"3d skipped before_adoption", "7d skipped before_adoption", "claim 14d attempt 1 mail 1", "wake 2026-05-22T10:00Z",
			},
		},
		"a reminder that waits": {
			now: "2026-05-08T11:00Z", in: restored, rows: []Reminder{deferred("7d", "2026-05-08T10:00Z", "2026-05-08T10:30Z")},
			want: []string{"deferred 7d skipped before_adoption", "wake 2026-05-15T10:00Z"},
		},
		"a reminder that a person settled since": {
			now: "2026-05-08T11:00Z", in: restored, rows: []Reminder{settled},
			want: []string{"claim 7d attempt 2 mail 1 retry", "wake 2026-05-15T10:00Z"},
		},
		"a reminder that a person settled since, and that was put off then": {
			now: "2026-05-08T11:00Z", in: restored, rows: []Reminder{putOff},
			want: []string{"claim 7d attempt 2 mail 1 retry", "wake 2026-05-15T10:00Z"},
		},
		"a reminder that a person settled before the copy was adopted": {
			now: "2026-05-08T11:00Z", in: restored, rows: []Reminder{copied},
			want: []string{"deferred 7d skipped before_adoption", "wake 2026-05-15T10:00Z"},
		},
	})
}
