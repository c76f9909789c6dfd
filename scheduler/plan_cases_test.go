package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nudged/cadence"
)

// The tests of this file are faults that users of other systems met, as far as the plan decides
// them.

func TestC03LocalDateAheadOfUTC(t *testing.T) {
	s := newSim(t, "2026-05-01T11:00Z")
	s.policy.with(t, "default", cadence.Definition{After: []string{"3d"}, At: new("09:00")})
	s.change(func(sub *subject) { sub.request.TimeZone = "Pacific/Kiritimati" })
	s.poll("2026-05-04T18:59:30Z")
	s.wantMails()
	s.wantWake("2026-05-04T19:00Z")
	s.poll("2026-05-04T19:00:30Z")
	s.wantMails("3d 2026-05-04T19:00:30Z")
}

func TestC15DueAtTheVeryInstant(t *testing.T) {
	s := newSim(t, "2026-05-01T07:00Z")
	s.poll("2026-05-04T06:59:59.999999Z")
	s.wantMails()
	s.poll("2026-05-04T07:00Z")
	s.wantMails("3d 2026-05-04T07:00Z")
}

func TestC17LateButOnce(t *testing.T) {
	s := newSim(t, "2026-05-01T07:00Z")
	s.until("2026-05-04T06:00Z")
	s.jump("2026-05-05T08:00Z")
	for range 10 {
		s.pass()
		s.clock = s.clock.Add(time.Minute)
	}
	s.wantMails("3d 2026-05-05T08:00Z")
	s.wantWake("2026-05-08T07:00Z")
}

// TestC19SwitchedOnOverOldRequests adopts a database with ten thousand old requests.
func TestC19SwitchedOnOverOldRequests(t *testing.T) {
	adopted := at("2026-06-01T12:00Z")
	policy := newPolicy(t)
	mailed, reasons := 0, map[Reason]int{}
	for i := range 10_000 {
		age := 30*day + time.Duration(i)*(370*day/10_000)
		link := &Link{CreatedAt: adopted.Add(-age)}
		d := policy.Plan(Input{
			Now: adopted.Add(time.Minute), AdoptedAt: adopted,
			Request: &Request{Status: StatusPending}, Link: link,
		})
		newest, _ := policy.Cadences["default"].Last(cadence.Origin{Anchor: link.CreatedAt}, adopted.Add(time.Minute))
		recent := !newest.Due.Before(adopted.Add(time.Minute - 48*time.Hour))
		if recent != (d.Claim != nil) {
			t.Fatalf("newest slot due %s, claim %v", newest.Due, d.Claim)
		}
		if d.Claim != nil {
			mailed++
		}
		for _, v := range d.Verdicts {
			reasons[v.Reason]++
		}
	}
	if mailed < 10_000*2/7-100 || mailed > 10_000*2/7+100 {
		t.Errorf("%d mails; of weekly slots two sevenths fell due within 48 h", mailed)
	}
	if reasons[ReasonBeforeAdoption] == 0 || len(reasons) != 1 {
		t.Errorf("reasons %v; want before_adoption alone", reasons)
	}
}

func TestC20OnlyThePresentCadence(t *testing.T) {
	s := newSim(t, "2026-05-01T00:00Z")
	s.until("2026-05-05T12:00Z")
	s.policy.with(t, "default", cadence.Definition{After: []string{"2d", "5d", "10d"}})
	s.change(func(*subject) {})
	s.until("2026-06-30T00:00Z")
	s.wantMails("3d 2026-05-04T00:00Z", "5d 2026-05-06T00:00Z", "10d 2026-05-11T00:00Z")
	s.wantLedger("3d sent", "5d sent", "10d sent")
}

func TestC21NewLinkNewSeries(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.until("2026-05-06T10:00Z")
	s.change(func(sub *subject) { sub.link = &Link{CreatedAt: s.clock} })
	s.until("2026-05-14T00:00Z")
	s.wantMails("3d 2026-05-04T10:00Z", "3d 2026-05-09T10:00Z", "7d 2026-05-13T10:00Z")
}

func TestC23ExpiryAtTheInstantThenCleared(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.change(func(sub *subject) { sub.link.ExpiresAt = at("2026-05-15T10:00Z") })
	s.until("2026-05-16T10:00Z")
	s.wantMails("3d 2026-05-04T10:00Z", "7d 2026-05-08T10:00Z")
	s.wantLedger("3d sent", "7d sent", "14d skipped link_expired")
	s.change(func(sub *subject) { sub.link.ExpiresAt = time.Time{} })
	s.until("2026-05-22T10:00Z")
	s.wantMails("3d 2026-05-04T10:00Z", "7d 2026-05-08T10:00Z", "21d 2026-05-22T10:00Z")
}

func TestD01PolledEachMinuteOfADay(t *testing.T) {
	for name, touched := range map[string]bool{"by its wake": false, "planned at each poll": true} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, "2026-05-01T10:00Z")
			s.jump("2026-05-04T00:00Z")
			for range 1440 {
				if touched {
					s.change(func(*subject) {})
				}
				s.pass()
				s.clock = s.clock.Add(time.Minute)
			}
			s.wantMails("3d 2026-05-04T10:00Z")
		})
	}
}

func TestD04SecondCycleAndSecondRequest(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.until("2026-05-04T10:00Z")
	s.change(func(sub *subject) { sub.request.Status = "submitted" })
	s.until("2026-05-10T10:00Z")
	s.change(func(sub *subject) {
		sub.request.Status, sub.link = StatusPendingResubmission, &Link{CreatedAt: s.clock}
	})
	s.until("2026-05-13T10:00Z")
	s.wantMails("3d 2026-05-04T10:00Z", "3d 2026-05-13T10:00Z")

	other := newSim(t, "2026-05-10T11:00Z") // of the same client, due on the same day
	other.until("2026-05-13T11:00Z")
	other.wantMails("3d 2026-05-13T11:00Z")
}

// TestD09WorkerLostWhileSending: what may have left is unknown for good, and found out once.
func TestD09WorkerLostWhileSending(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.jump("2026-05-04T10:00Z")
	tasks := s.claimOnly()
	s.handOver(tasks[0])
	s.clock = s.clock.Add(30 * time.Minute)
	for range 2 {
		s.pass()
		s.wantLedger("3d unknown worker_lost")
	}
	s.until("2026-05-08T10:00Z")
	s.wantMails("7d 2026-05-08T10:00Z")
	s.wantLedger("3d unknown worker_lost", "7d sent")
}

func TestD20RelayDownForThreeHours(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.jump("2026-05-04T10:00Z")
	s.attempt = func(Task) Outcome { return Outcome{State: StateDeferred, Reason: ReasonRelayRefused} }
	for range 180 {
		s.pass()
		s.clock = s.clock.Add(time.Minute)
	}
	s.wantLedger("3d deferred relay_refused")
	s.attempt = nil
	s.until("2026-05-05T10:00Z")
	s.wantMails("3d 2026-05-04T13:00Z")
	if r := s.reminders(subjectID)[0]; r.Attempt != 1 {
		t.Errorf("attempt %d; a fault of the relay burns none", r.Attempt)
	}
}

func TestD20RestartAfterFailures(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.attempt = func(Task) Outcome { return Outcome{State: StateFailed, Reason: ReasonMessageRefused} }
	s.until("2026-05-04T10:00Z")
	s.attempt = nil
	s.jump("2026-05-06T10:00Z")
	s.change(func(*subject) {})
	s.pass()
	s.wantMails()
	s.wantLedger("3d failed message_refused")
}

// TestK04ZoneOfARow: what LoadLocation takes and nobody means is a mistake of that row alone.
func TestK04ZoneOfARow(t *testing.T) {
	for _, zone := range []string{"", "Local", "EST", "+02:00", "Europe/Paris ", "europe/paris", "Mars/Olympus"} {
		t.Run(fmt.Sprintf("%q", zone), func(t *testing.T) {
			s := newSim(t, "2026-05-01T10:00Z")
			s.policy.with(t, "default", cadence.Definition{After: []string{"3d"}, At: new("09:00")})
			paris, err := cadence.LoadZone("Europe/Paris")
			if err != nil {
				t.Fatal(err)
			}
			s.policy.DefaultZone = paris
			s.change(func(sub *subject) { sub.request.TimeZone = zone })
			s.pass()
			want := ProblemUnknownZone
			if zone == "" {
				want = ProblemNone // nothing is wrong with having none
			}
			if got := s.subjects[subjectID].problem; got != want {
				t.Errorf("problem %q, want %q", got, want)
			}
			s.until("2026-05-05T00:00Z")
			s.wantMails("3d 2026-05-04T07:00Z") // 09:00 in the default zone
		})
	}
}

func TestM07TransientForEver(t *testing.T) {
	refuse := func(Task) Outcome {
		return Outcome{State: StateDeferred, Reason: ReasonGreylisted, SMTPCode: 454}
	}
	t.Run("then accepted", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.attempt = func(task Task) Outcome {
			if task.Attempt == 1 {
				return refuse(task)
			}
			return Outcome{State: StateSent}
		}
		s.until("2026-05-05T00:00Z")
		s.wantMails("3d 2026-05-04T10:01Z")
		if r := s.reminders(subjectID)[0]; r.Attempt != 2 {
			t.Errorf("%d attempts, want 2", r.Attempt)
		}
	})
	t.Run("to the next slot", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.policy.with(t, "default", cadence.Definition{After: []string{"1h", "2h"}})
		s.attempt = refuse
		s.until("2026-05-01T12:00Z")
		s.wantLedger("1h failed retries_exhausted", "2h deferred greylisted")
	})
	t.Run("to the expiry", func(t *testing.T) {
		s := newSim(t, "2026-05-01T10:00Z")
		s.change(func(sub *subject) { sub.link.ExpiresAt = at("2026-05-04T10:30Z") })
		attempts := 0
		s.attempt = func(task Task) Outcome {
			attempts++
			return refuse(task)
		}
		s.until("2026-05-05T00:00Z")
		s.wantLedger("3d skipped link_expired")
		if attempts != 30 {
			t.Errorf("%d attempts a minute apart, want 30 before the expiry", attempts)
		}
	})
}

func TestM09Greylisted(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.attempt = func(Task) Outcome {
		if s.clock.Before(at("2026-05-04T10:05Z")) {
			return Outcome{State: StateDeferred, Reason: ReasonGreylisted, SMTPCode: 450}
		}
		return Outcome{State: StateSent}
	}
	s.until("2026-05-05T00:00Z")
	s.wantMails("3d 2026-05-04T10:05Z")
	s.wantLedger("3d sent")
}

func TestM10DeadAddress(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.attempt = func(Task) Outcome {
		return Outcome{State: StateFailed, Reason: ReasonRecipientRefused, SMTPCode: 550, Suppress: true}
	}
	s.until("2026-05-10T00:00Z")
	s.wantLedger("3d failed recipient_refused", "7d skipped suppressed")
	s.attempt = nil
	s.change(func(sub *subject) { sub.request.RecipientEmail, sub.suppressed = "ana@example.net", false })
	s.until("2026-05-15T10:00Z")
	s.wantMails("14d 2026-05-15T10:00Z")
}

func TestO03OptedOut(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.until("2026-05-04T09:59:59Z")
	s.change(func(sub *subject) { sub.request.OptedOutAt = s.clock })
	s.until("2026-05-04T12:00Z")
	s.wantMails()
	s.wantLedger("3d skipped opted_out")
	s.change(func(sub *subject) { sub.request.OptedOutAt = time.Time{} })
	s.until("2026-05-08T10:00Z")
	s.wantMails("7d 2026-05-08T10:00Z")
}

func TestS05LongOutage(t *testing.T) {
	s := newSim(t, "2026-05-01T10:00Z")
	s.until("2026-05-02T00:00Z")
	s.poll("2026-05-22T10:00:30Z")
	s.wantMails("21d 2026-05-22T10:00:30Z")
	s.wantLedger("3d skipped superseded", "7d skipped superseded", "14d skipped superseded", "21d sent")
	s.wantWake("2026-05-29T10:00Z")
}

func TestS07AllowListOfStatuses(t *testing.T) {
	statuses := []Status{
		"draft", "submitted", "in_review", "approved", "rejected", "completed", "cancelled", "expired",
		"archived", "", "PENDING", "pending ", StatusPending, StatusPendingResubmission,
	}
	for _, status := range statuses {
		t.Run(fmt.Sprintf("%q", status), func(t *testing.T) {
			s := newSim(t, "2026-05-01T10:00Z")
			s.change(func(sub *subject) { sub.request.Status = status })
			s.until("2026-05-05T00:00Z")
			if slices.Contains([]Status{StatusPending, StatusPendingResubmission}, status) {
				s.wantMails("3d 2026-05-04T10:00Z")
				return
			}
			s.wantMails()
			s.wantLedger()
			s.wantWake("")
		})
	}
}
