package scheduler

import (
	"testing"
	"time"

	"nudged/cadence"
)

// TestPlanMistakes has rule 8: mistakes in a row are seen and stay with it.
func TestPlanMistakes(t *testing.T) {
	named := func(name string) func(*Input) {
		return func(in *Input) { in.Request.Cadence = name }
	}
	runPlan(t, map[string]planRow{
		"unknown cadence": {
			now: "2026-05-04T10:00Z", in: named("wekly"),
			want: []string{"problem unknown_cadence"},
		},
		"unknown cadence, and a reminder of a link that is gone": {
			now: "2026-05-04T10:00Z", in: named("wekly"),
			rows: []Reminder{ofLink("2026-04-01T10:00Z", deferred("3d", "2026-04-04T10:00Z", "2026-04-04T10:00Z"))},
			want: []string{"problem unknown_cadence", "deferred 3d skipped link_replaced"},
		},
		"the default cadence is gone": {
			now: "2026-05-04T10:00Z", p: func(p *Policy) { p.DefaultCadence = "gone" },
			want: []string{"problem unknown_cadence"},
		},
		"a closed request has no mistakes": {
			now: "2026-05-04T10:00Z",
			in:  func(in *Input) { in.Request.Cadence, in.Request.Status = "wekly", "completed" },
		},
		"a named cadence": {
			now: "2026-05-02T10:00Z", in: named("daily"),
			p:    func(p *Policy) { p.with(t, "daily", cadence.Definition{ThenEvery: new("1d")}) },
			want: []string{"claim 1d attempt 1 mail 1", "wake 2026-05-03T10:00Z"},
		},
		"a zone of its own": {
			now: "2026-05-04T07:00Z",
			in:  func(in *Input) { in.Request.TimeZone = "Europe/Paris" },
			p:   func(p *Policy) { p.with(t, "default", cadence.Definition{ThenEvery: new("3d"), At: new("09:00")}) },
			want: []string{
				"claim 3d attempt 1 mail 1", "wake 2026-05-07T07:00Z",
			},
		},
		"an unknown zone falls back to the default one": {
			now: "2026-05-04T09:00Z",
			in:  func(in *Input) { in.Request.TimeZone = "Europe/Pari" },
			p:   func(p *Policy) { p.with(t, "default", cadence.Definition{ThenEvery: new("3d"), At: new("09:00")}) },
			want: []string{
				"problem unknown_zone", "claim 3d attempt 1 mail 1", "wake 2026-05-07T09:00Z",
			},
		},
	})
}

func TestClaimHasTheZone(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.change(func(sub *subject) { sub.request.TimeZone = "Europe/Paris" })
	var got string
	s.attempt = func(task Task) Outcome {
		got = task.Zone.String()
		return Outcome{State: StateSent}
	}
	s.until("2026-05-05T00:00Z")
	if got != "Europe/Paris" {
		t.Errorf("zone %q", got)
	}
}

// TestChanged has rule 9: a changed cadence, zone or send hour holds for slots that are not in the
// ledger yet.
func TestChanged(t *testing.T) {
	nine := cadence.Definition{After: []string{"3d", "7d", "14d"}, At: new("09:00")}
	evening := nine
	evening.At = new("18:00")
	start := func(t *testing.T) *sim {
		s := newSim(t, "2026-05-01T10:00Z")
		s.policy.with(t, "default", nine)
		s.until("2026-05-04T12:00Z")
		s.wantMails("3d 2026-05-04T09:00Z")
		return s
	}
	t.Run("hour", func(t *testing.T) {
		s := start(t)
		s.policy.with(t, "default", evening)
		s.change(func(*subject) {})
		s.pass()
		s.wantWake("2026-05-08T18:00Z") // slot 3d does not come back this evening
		s.until("2026-05-10T00:00Z")
		s.wantMails("3d 2026-05-04T09:00Z", "7d 2026-05-08T18:00Z")
	})
	t.Run("zone", func(t *testing.T) {
		s := start(t)
		s.change(func(sub *subject) { sub.request.TimeZone = "America/New_York" })
		s.until("2026-05-10T00:00Z")
		s.wantMails("3d 2026-05-04T09:00Z", "7d 2026-05-08T13:00Z")
	})
	t.Run("cadence of the request", func(t *testing.T) {
		s := start(t)
		s.policy.with(t, "daily", cadence.Definition{ThenEvery: new("1d"), At: new("09:00")})
		s.change(func(sub *subject) { sub.request.Cadence = "daily" })
		s.until("2026-05-06T00:00Z")
		s.wantMails("3d 2026-05-04T09:00Z", "4d 2026-05-05T09:00Z")
	})
	t.Run("hour of a reminder that waits", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.policy.with(t, "default", nine)
		s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonGreylisted} }
		s.until("2026-05-04T09:00Z")
		s.attempt = nil
		s.policy.with(t, "default", evening)
		s.change(func(*subject) {})
		s.until("2026-05-05T00:00Z")
		s.wantMails("3d 2026-05-04T09:01Z")
	})
	t.Run("deadline", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.policy.with(t, "default", cadence.Definition{BeforeDeadline: []string{"2d"}, At: new("09:00")})
		s.change(func(sub *subject) { sub.request.Deadline = cadence.Date{Year: 2026, Month: time.May, Day: 10} })
		s.until("2026-05-05T00:00Z")
		s.wantWake("2026-05-08T09:00Z")
		s.change(func(sub *subject) { sub.request.Deadline = cadence.Date{Year: 2026, Month: time.May, Day: 20} })
		s.until("2026-05-30T00:00Z")
		s.wantMails("deadline-2d 2026-05-18T09:00Z")
	})
}

// TestDeadLinkIsFollowed: a link that died is looked at for as long as ledger rows are kept, since
// it may come back, and not for ever.
func TestDeadLinkIsFollowed(t *testing.T) {
	for name, die := range map[string]func(*subject){
		"expired": func(sub *subject) { sub.link.ExpiresAt = at("2026-05-05T00:00Z") },
		"revoked": func(sub *subject) { sub.link.RevokedAt = at("2026-05-05T00:00Z") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, "2026-05-01T10:00Z")
			s.policy.Limits.Retention = 30 * day
			s.until("2026-05-04T12:00Z")
			s.change(die)
			s.until("2026-05-20T00:00Z")
			s.wantMails("3d 2026-05-04T10:00Z")
			s.wantWake("2026-05-22T10:00Z")
			s.until("2027-05-20T00:00Z")
			s.wantMails("3d 2026-05-04T10:00Z")
			s.wantWake("")
		})
	}
}

// TestRequestThatComesAfterItsLink: two transactions may write them, the link's first.
func TestRequestThatComesAfterItsLink(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	request := s.subjects[subjectID].request
	s.change(func(sub *subject) { sub.request = nil })
	s.until("2026-05-01T12:30Z")
	s.wantWake("2026-05-01T13:00Z")
	s.subjects[subjectID].request = request // no trigger saw it
	s.until("2026-05-05T00:00Z")
	s.wantMails("3d 2026-05-04T10:00Z")
}
