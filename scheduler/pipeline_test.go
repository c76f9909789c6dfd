package scheduler

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestS04BadRowsStayAlone: whatever is wrong with one reminder, the others go in the same pass.
func TestS04BadRowsStayAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(6)
		d.mail.composing = func(task Task) error {
			switch task.Request.ID {
			case "r-1":
				panic("nil map in a template")
			case "r-2":
				return &ComposeError{Reason: ReasonInvalidAddress, Err: errors.New("no domain")}
			case "r-3":
				return &ComposeError{Reason: ReasonTemplateError, Err: errors.New("no such field")}
			case "r-4":
				return errors.New("out of memory")
			}
			return nil
		}
		d.mail.delivering = func(_ context.Context, id string, _ time.Time) Outcome {
			if id == "r-5" {
				return Outcome{State: StateFailed, Reason: ReasonRecipientRefused, SMTPCode: 550, SMTPReply: "5.7.1 no"}
			}
			return Outcome{State: StateSent}
		}
		begun := time.Now()
		d.start()
		defer d.stop()
		for id, want := range map[string]Reason{
			"r-1": ReasonTemplateError, "r-2": ReasonInvalidAddress, "r-3": ReasonTemplateError, "r-4": ReasonTemplateError,
			"r-5": ReasonRecipientRefused,
		} {
			if r := d.row(id); r.State != StateFailed || r.Reason != want || r.SMTPReply == "" {
				t.Errorf("%s: %s %s, reply %q", id, r.State, r.Reason, r.SMTPReply)
			}
		}
		if r := d.row("r-6"); r.State != StateSent || !r.FinishedAt.Equal(begun) {
			t.Errorf("r-6: %s at %s", r.State, r.FinishedAt)
		}
		d.sleep(time.Hour)
		if n := len(d.mail.order()); n != 2 {
			t.Errorf("%d deliveries, want 2", n)
		}
		for what, pair := range map[string][2]float64{
			"attempts": {testutil.ToFloat64(d.metrics.attempts), 2},
			"failed":   {testutil.ToFloat64(d.metrics.sends.WithLabelValues("failed")), 5},
			"sent":     {testutil.ToFloat64(d.metrics.sends.WithLabelValues("sent")), 1},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
			}
		}
	})
}

// TestD18OutcomesStandAlone: a refused mail does not make its neighbours go again.
func TestD18OutcomesStandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(3)
		d.mail.delivering = func(_ context.Context, id string, _ time.Time) Outcome {
			if id == "r-2" {
				return Outcome{State: StateFailed, Reason: ReasonMessageRefused, SMTPCode: 554}
			}
			return Outcome{State: StateSent}
		}
		d.start()
		defer d.stop()
		d.sleep(10 * 30 * time.Second)
		d.wantStates(map[State]int{StateSent: 2, StateFailed: 1})
		if n := len(d.mail.order()); n != 3 {
			t.Errorf("%d deliveries, want 3", n)
		}
	})
}

// TestS08ChangedBeforeTheHandOff: between claim and hand-off the request stops being open.
func TestS08ChangedBeforeTheHandOff(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*subject)
		want   Reason
	}{
		"completed": {func(s *subject) { s.request.Status = "completed" }, ReasonRequestClosed},
		"deleted":   {func(s *subject) { s.request, s.link = nil, nil }, ReasonRequestClosed},
		"revoked":   {func(s *subject) { s.link.RevokedAt = time.Now() }, ReasonLinkRevoked},
		"refreshed": {func(s *subject) { s.link = &Link{CreatedAt: time.Now()} }, ReasonLinkReplaced},
		"expired":   {func(s *subject) { s.link.ExpiresAt = time.Now() }, ReasonLinkExpired},
		"opted out": {func(s *subject) { s.request.OptedOutAt = time.Now() }, ReasonOptedOut},
		"paused":    {func(s *subject) { s.request.PausedUntil = Forever() }, ReasonPaused},
		"suppressed": {func(s *subject) {
			s.suppressed = true
		}, ReasonSuppressed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, nil)
				d.due(2)
				d.mail.composing = func(task Task) error {
					if task.Request.ID == "r-1" {
						d.store.edit("r-1", row.change)
					}
					return nil
				}
				d.start()
				defer d.stop()
				d.sleep(time.Hour)
				if r := d.row("r-1"); r.State != StateSkipped || r.Reason != row.want {
					t.Errorf("%s %s, want skipped %s", r.State, r.Reason, row.want)
				}
				if diff := cmp.Diff([]string{"r-2"}, d.mail.order()); diff != "" {
					t.Errorf("deliveries (-want +got):\n%s", diff)
				}
				if got := testutil.ToFloat64(d.metrics.skipped.WithLabelValues(string(row.want))); got != 1 {
					t.Errorf("%v skips counted for %s", got, row.want)
				}
			})
		})
	}
}

// TestAddressEditedBeforeTheHandOff: the mail is composed anew, for the new address.
func TestAddressEditedBeforeTheHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(1)
		var once sync.Once
		d.mail.composing = func(Task) error {
			once.Do(func() {
				d.store.edit("r-1", func(s *subject) { s.request.RecipientEmail = "new@example.com" })
			})
			return nil
		}
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		r := d.row("r-1")
		if r.State != StateSent || r.Recipient != "new@example.com" || r.Attempt != 1 {
			t.Errorf("%s to %s at attempt %d", r.State, r.Recipient, r.Attempt)
		}
		if n := len(d.mail.order()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
	})
}

// TestUnknownIsNotRepeated: the answer is lost, and that is the end of it.
func TestUnknownIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(1)
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(10 * time.Minute)
			return Outcome{State: StateUnknown, Reason: ReasonReplyLost}
		}
		d.start()
		defer d.stop()
		d.sleep(day)
		d.wantStates(map[State]int{StateUnknown: 1})
		if n := len(d.mail.order()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
		if got := testutil.ToFloat64(d.metrics.sends.WithLabelValues("unknown")); got != 1 {
			t.Errorf("%v unknown counted", got)
		}
		if n := d.logs.count("level=WARN"); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
	})
}

// TestWorkersDeliverAtOnce: as many deliveries run as there are workers, and no more.
func TestWorkersDeliverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers = 4 })
		d.due(40)
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(time.Second)
			return Outcome{State: StateSent}
		}
		d.start()
		defer d.stop()
		d.sleep(10 * time.Second)
		d.wantStates(map[State]int{StateSent: 40}) // ten rounds of four: nobody idled
		if d.mail.mostBusy != 4 {
			t.Errorf("%d deliveries at once, want 4", d.mail.mostBusy)
		}
	})
}

// TestRate limits the hand-offs of the whole process.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Rate = 2 })
		d.due(20)
		begun := time.Now()
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 20})
		for i := range 20 {
			if r := d.row(requestID(i)); r.HandedOffAt.Sub(begun) > 10*time.Second {
				t.Errorf("%s handed off after %s", r.RequestID, r.HandedOffAt.Sub(begun))
			}
		}
		for second := range 10 {
			from := begun.Add(time.Duration(second) * time.Second)
			n := 0
			for i := range 20 {
				if at := d.row(requestID(i)).HandedOffAt; !at.Before(from) && at.Before(from.Add(time.Second)) {
					n++
				}
			}
			if n > 3 { // two, and one for the burst
				t.Errorf("%d hand-offs in second %d, want 2", n, second)
			}
		}
	})
}

// TestSettlement: what an outcome means for the next attempt.
func TestSettlement(t *testing.T) {
	d := newDaemon(t, nil)
	draw := rand.New(rand.NewPCG(1, 2))
	task := Task{Attempt: 3}
	for _, reason := range DeferReasons() {
		st := d.settlement(delivered{task: task, outcome: Outcome{State: StateDeferred, Reason: reason}}, draw)
		blameless := reason == ReasonRelayRefused || reason == ReasonLeaseLost || reason == ReasonShutdown
		if st.KeepAttempt != blameless {
			t.Errorf("%s keeps the attempt: %v", reason, st.KeepAttempt)
		}
		if blameless && st.RetryIn != 0 || !blameless && (st.RetryIn < time.Second || st.RetryIn > 4*time.Minute) {
			t.Errorf("%s is tried again in %s", reason, st.RetryIn)
		}
	}
	for _, state := range []State{StateSent, StateFailed, StateUnknown} {
		if st := d.settlement(delivered{task: task, outcome: Outcome{State: state}}, draw); st.KeepAttempt || st.RetryIn != 0 {
			t.Errorf("%s: %+v", state, st)
		}
	}
}

// TestFullQueue: more requests than may be claimed at once, and each goes once.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Batch, c.Workers, c.Rate = 20, 1, 0 })
		d.due(300)
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(100 * time.Millisecond)
			return Outcome{State: StateSent}
		}
		d.start()
		defer d.stop()
		for range 31 {
			if n := d.store.memory.count(StateClaimed) + d.store.memory.count(StateSending); n > 20+3*windowPerWorker {
				t.Errorf("%d in flight", n)
			}
			d.sleep(time.Second)
		}
		d.wantStates(map[State]int{StateSent: 300})
	})
}
