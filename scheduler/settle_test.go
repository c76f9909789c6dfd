package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errFate = errors.New("the connection broke inside COMMIT")

func oneSecond(context.Context, string, time.Time) Outcome {
	time.Sleep(time.Second)
	return Outcome{State: StateSent}
}

// TestWindow: what is handed off and not yet recorded is what a crash would make unknown.
func TestWindow(t *testing.T) {
	for name, commit := range map[string]time.Duration{"commits at once": 0, "slow commits": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, func(c *Config) { c.Workers = 3 })
				d.due(60)
				d.mail.delivering = oneSecond
				d.store.beforeSettle = func(int, Batch) error {
					time.Sleep(commit)
					return nil
				}
				d.start()
				defer d.stop()
				d.sleep(10 * time.Minute)
				d.wantStates(map[State]int{StateSent: 60})
				if got, want := d.store.mostSending, windowPerWorker*3; got != want {
					t.Errorf("%d were handed off at once, want up to %d", got, want)
				}
			})
		})
	}
}

// TestD10OutcomesAreKept: outcomes that cannot be recorded are recorded later, alone.
func TestD10OutcomesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(40)
		var away atomic.Bool
		var once sync.Once
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			once.Do(func() { away.Store(true) })
			return Outcome{State: StateSent}
		}
		d.store.beforeSettle = func(int, Batch) error {
			if away.Load() {
				return errAway
			}
			return nil
		}
		d.start()
		defer d.stop()
		d.sleep(10 * time.Minute)
		begun := len(d.mail.order())
		if begun == 0 || begun > windowPerWorker*2 {
			t.Errorf("%d deliveries begun, want some and no more than the window", begun)
		}
		d.wantStates(map[State]int{StateSending: begun, StateClaimed: d.store.memory.count(StateClaimed)})
		if n := d.logs.count("outcomes cannot be recorded now"); n != 1 {
			t.Errorf("the failure is logged %d times", n)
		}
		if got := testutil.ToFloat64(d.metrics.sends.WithLabelValues("sent")); got != 0 {
			t.Errorf("%v counted as sent before it is recorded", got)
		}

		away.Store(false)
		d.sleep(time.Hour)
		d.wantStates(map[State]int{StateSent: 40})
		if n := len(d.mail.order()); n != 40 {
			t.Errorf("%d deliveries, want 40", n)
		}
		if n := d.logs.count("outcomes are recorded again"); n != 1 {
			t.Errorf("the recovery is logged %d times", n)
		}
		if got := testutil.ToFloat64(d.metrics.sends.WithLabelValues("sent")); got != 40 {
			t.Errorf("%v counted as sent", got)
		}
	})
}

// TestOutcomeAfterTheLease: another replica settled it as unknown; the worker knows better.
func TestOutcomeAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(1)
		d.mail.delivering = oneSecond
		d.store.beforeSettle = func(n int, _ Batch) error {
			if n > 1 && n < 100 {
				time.Sleep(10 * time.Second)
				return errAway
			}
			return nil
		}
		d.store.afterRenew = func([]ClaimID) []ClaimID { return nil }
		d.start()
		defer d.stop()
		// The lease ends while the outcome waits, for renewals reach no database either.
		d.store.mu.Lock()
		d.store.subjects["r-1"].rows[0].LeaseUntil = time.Now()
		d.store.mu.Unlock()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateUnknown: 1})
		d.sleep(time.Hour)
		d.wantStates(map[State]int{StateSent: 1})
		if n := len(d.mail.order()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
	})
}

// TestFateOfACommit: the answer to a commit is lost, and whether it happened or not, there is one
// delivery and one record of it.
func TestFateOfACommit(t *testing.T) {
	for name, row := range map[string]struct {
		commit   int // which one: the first hands off, the second records
		happened bool
	}{
		"hand-off, it happened":  {1, true},
		"hand-off, it did not":   {1, false},
		"recording, it happened": {2, true},
		"recording, it did not":  {2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, nil)
				d.due(1)
				fail := func(n int, _ Batch) error {
					if n >= row.commit && n < row.commit+3 {
						return errFate
					}
					return nil
				}
				if row.happened {
					d.store.afterSettle = fail
				} else {
					d.store.beforeSettle = fail
				}
				d.start()
				defer d.stop()
				d.sleep(time.Minute)
				d.wantStates(map[State]int{StateSent: 1})
				if n := len(d.mail.order()); n != 1 {
					t.Errorf("%d deliveries, want 1", n)
				}
				if n := d.store.settles.Load(); n != 5 {
					t.Errorf("%d commits, want 5", n)
				}
				if got := testutil.ToFloat64(d.metrics.sends.WithLabelValues("sent")); got != 1 {
					t.Errorf("%v counted as sent", got)
				}
			})
		})
	}
}

// TestFateOfAHandOffThatIsSkipped: the request was closed, and the answer that says so was lost.
func TestFateOfAHandOffThatIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(1)
		d.mail.composing = func(Task) error {
			d.store.edit("r-1", func(s *subject) { s.request.Status = "completed" })
			return nil
		}
		d.store.afterSettle = func(n int, _ Batch) error {
			if n == 1 {
				return errFate
			}
			return nil
		}
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSkipped: 1})
		if n := len(d.mail.order()); n != 0 {
			t.Errorf("%d deliveries", n)
		}
	})
}

// TestClaimLostBeforeTheHandOff: somebody else settled the claim, so nothing may leave.
func TestClaimLostBeforeTheHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(2)
		var once sync.Once
		d.store.beforeSettle = func(_ int, _ Batch) error {
			once.Do(func() {
				d.store.mu.Lock()
				defer d.store.mu.Unlock()
				r := d.store.subjects["r-1"].rows[0]
				r.State, r.Reason, r.LeaseUntil, r.Attempt, r.RetryAt = StateDeferred, ReasonLeaseLost, time.Time{}, 0, time.Now().Add(time.Minute)
			})
			return nil
		}
		d.start()
		defer d.stop()
		if order := d.mail.order(); slices.Contains(order, "r-1") {
			t.Error("delivered under a claim that was lost")
		}
		d.store.edit("r-1", func(*subject) {})
		d.sleep(2 * time.Minute)
		d.wantStates(map[State]int{StateSent: 2})
		if n := len(d.mail.order()); n != 2 {
			t.Errorf("%d deliveries, want 2", n)
		}
	})
}

// TestCommitsAreGrouped: a commit carries what gathered while the one before it ran.
func TestCommitsAreGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers = 8 })
		d.due(100)
		d.mail.delivering = oneSecond
		d.store.beforeSettle = func(int, Batch) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 100})
		if n := d.store.settles.Load(); n > 100 {
			t.Errorf("%d commits for 100 mails, want half of them at most", n)
		}
	})
}
