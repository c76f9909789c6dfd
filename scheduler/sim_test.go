package scheduler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sim lives through the days of one request: it moves a clock, turns passes, and plays the worker
// for what they claim.
type sim struct {
	*memory
	t      *testing.T
	policy *Policy
	clock  time.Time
	last   Decision // of the last plan
	mails  []string // what the server accepted: slot and instant
	// attempt says what becomes of a delivery; nil: sent.
	attempt func(Task) Outcome
}

const subjectID = "r"

// newSim begins with a pending request whose link is created now, long after the installation was
// adopted.
func newSim(t *testing.T, created string) *sim {
	t.Helper()
	s := &sim{t: t, policy: newPolicy(t), clock: at(created)}
	s.memory = newMemory(t, func() time.Time { return s.clock }, at("2020-01-01T00:00Z"))
	s.change(func(sub *subject) {
		sub.request = &Request{ID: subjectID, Status: StatusPending, RecipientEmail: "ana@example.com"}
		sub.link = &Link{CreatedAt: s.clock}
	})
	return s
}

// change is what the application does to the request, now.
func (s *sim) change(change func(*subject)) { s.edit(subjectID, change) }

// until moves the clock to an instant and lets every pass happen on the way that a wake asks for,
// one at the instant itself included.
func (s *sim) until(text string) {
	s.t.Helper()
	end := at(text)
	for turns := 0; ; turns++ {
		if turns == 1000 {
			s.t.Fatalf("1000 passes before %s", text)
		}
		sub := s.subjects[subjectID]
		switch {
		case sub.fresh:
		case sub.wake.IsZero() || sub.wake.After(end):
			s.clock = end
			return
		case sub.wake.After(s.clock):
			s.clock = sub.wake
		}
		s.pass()
	}
}

// jump moves the clock while the daemon is down.
func (s *sim) jump(text string) { s.clock = at(text) }

// poll is one pass at an instant.
func (s *sim) poll(text string) {
	s.t.Helper()
	s.clock = at(text)
	s.pass()
}

// pass is one pass now, and the delivery of what it claims.
func (s *sim) pass() {
	s.t.Helper()
	for _, task := range s.claimOnly() {
		s.handOver(task)
		outcome := Outcome{State: StateSent}
		if s.attempt != nil {
			outcome = s.attempt(task)
		}
		s.record(task, outcome)
	}
}

// claimOnly is one pass now; the worker does not get to the claims.
func (s *sim) claimOnly() []Task {
	s.t.Helper()
	result, err := s.RunPass(context.Background(), Pass{
		Worker: "w", Lease: 5 * time.Minute, Fresh: 10, Due: 10,
		Plan: func(in Input) Decision {
			s.last = s.policy.Plan(in)
			return s.last
		},
	})
	if err != nil {
		s.t.Fatalf("pass: %v", err)
	}
	return result.Tasks
}

func (s *sim) handOver(task Task) {
	s.t.Helper()
	results, err := s.Settle(context.Background(), Batch{Lease: 5 * time.Minute, HandOffs: []HandOff{{
		ClaimID: task.ClaimID, LinkCreatedAt: task.Link.CreatedAt, Recipient: task.Request.RecipientEmail,
	}}})
	if err != nil || len(results) != 1 || results[0].Reason != "" {
		s.t.Fatalf("hand-off of slot %s: %v, %v", task.Slot.Name, results, err)
	}
}

func (s *sim) record(task Task, outcome Outcome) {
	s.t.Helper()
	if outcome.State == StateSent {
		s.mails = append(s.mails, task.Slot.Name+" "+instant(s.clock))
	}
	st := Settlement{ClaimID: task.ClaimID, Outcome: outcome, RetryIn: time.Minute}
	switch outcome.Reason {
	case ReasonRelayRefused, ReasonLeaseLost, ReasonShutdown:
		st.KeepAttempt, st.RetryIn = true, 0
	}
	if _, err := s.Settle(context.Background(), Batch{Settlements: []Settlement{st}}); err != nil {
		s.t.Fatalf("record: %v", err)
	}
}

// wantMails compares all mails so far with lines of a slot and an instant.
func (s *sim) wantMails(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.mails); diff != "" {
		s.t.Errorf("at %s: mails (-want +got):\n%s", instant(s.clock), diff)
	}
}

// wantLedger compares the rows with lines of a slot, a state and, if any, a reason.
func (s *sim) wantLedger(want ...string) {
	s.t.Helper()
	var got []string
	for _, r := range s.reminders(subjectID) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Slot, r.State, r.Reason)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("at %s: ledger (-want +got):\n%s", instant(s.clock), diff)
	}
}

// wantWake compares the wake with an instant; the empty string is none.
func (s *sim) wantWake(want string) {
	s.t.Helper()
	if got := instant(s.subjects[subjectID].wake); got != want {
		s.t.Errorf("at %s: wake %q, want %q", instant(s.clock), got, want)
	}
}
