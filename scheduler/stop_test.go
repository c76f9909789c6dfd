package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tenSeconds is a delivery that a stop cannot end once it has begun.
func tenSeconds(ctx context.Context, _ string, _ time.Time) Outcome {
	if ctx.Err() != nil { // before the first byte
		return Outcome{State: StateDeferred, Reason: ReasonShutdown}
	}
	time.Sleep(10 * time.Second)
	return Outcome{State: StateSent}
}

// TestGracefulStop: what runs ends and is recorded, all else is given back, and the next process
// sends it.
func TestGracefulStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(50)
		d.mail.delivering = tenSeconds
		d.start()
		d.sleep(5 * time.Second)
		passes := len(d.store.passes())
		begun := time.Now()
		d.stop()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("the stop took %s, want as long as the running deliveries", took)
		}
		if n := len(d.store.passes()); n != passes {
			t.Errorf("%d passes after the signal", n-passes)
		}
		given := d.store.memory.count(StateDeferred)
		d.wantStates(map[State]int{StateSent: 2, StateDeferred: given})
		if given < 6 {
			t.Errorf("%d given back, want the queue", given)
		}
		for i := range 50 {
			for _, r := range d.store.reminders(requestID(i)) {
				if r.State != StateDeferred {
					continue
				}
				if r.Reason != ReasonShutdown || r.Attempt != 0 || r.RetryAt.After(time.Now()) {
					t.Errorf("%s: %s, attempt %d, retry at %s", r.RequestID, r.Reason, r.Attempt, r.RetryAt)
				}
			}
		}

		next := daemonOver(t, d.store.memory, nil)
		next.start()
		next.wantStates(map[State]int{StateSent: 50})
		next.stop()
		for i := range 50 {
			if r := d.row(requestID(i)); r.Attempt != 1 {
				t.Errorf("%s was sent at attempt %d", r.RequestID, r.Attempt)
			}
			if n := d.mail.sent[requestID(i)] + next.mail.sent[requestID(i)]; n != 1 {
				t.Errorf("%d mails for %s", n, requestID(i))
			}
		}
	})
}

// TestStopWhileNothingHappens ends at once.
func TestStopWhileNothingHappens(t *testing.T) {
	for name, change := range map[string]func(*daemon){
		"idle":        func(*daemon) {},
		"gate shut":   func(d *daemon) { d.mail.probing = func(int) error { return errRelay } },
		"pass failed": func(d *daemon) { d.store.beforePass = func(int) error { return errAway } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, nil)
				change(d)
				d.start()
				d.sleep(10 * time.Second)
				begun := time.Now()
				d.stop()
				if took := time.Since(begun); took != 0 {
					t.Errorf("the stop took %s", took)
				}
			})
		})
	}
}

// TestStopWhileTheRateHoldsTheQueue does not wait for its turn.
func TestStopWhileTheRateHoldsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Rate = 0.01 })
		d.due(5)
		d.start()
		begun := time.Now()
		d.stop()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the stop took %s", took)
		}
		d.wantStates(map[State]int{StateSent: 1, StateDeferred: 4})
	})
}

// TestStopDuringAPass: a pass that has begun is let finish, and what it claimed is given back.
func TestStopDuringAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Every = 24 * time.Hour })
		var slow atomic.Bool
		d.store.beforePass = func(int) error {
			if slow.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		d.start()
		slow.Store(true)
		d.due(5)
		d.SetPolicy(newPolicy(t)) // asks for a pass
		d.sleep(5 * time.Second)
		d.stop()
		d.wantStates(map[State]int{StateDeferred: 5})
		for i := range 5 {
			if r := d.row(requestID(i)); r.Reason != ReasonShutdown || r.Attempt != 0 {
				t.Errorf("%s: %s, attempt %d", r.RequestID, r.Reason, r.Attempt)
			}
		}
	})
}

// TestStopWhileAHandOffIsUncertain: it may have been committed, nothing has left, and so it is given
// back.
func TestStopWhileAHandOffIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(2)
		d.store.afterSettle = func(n int, _ Batch) error {
			if n == 1 {
				return errFate
			}
			return nil
		}
		d.start() // the first commit has just failed
		d.wantStates(map[State]int{StateSending: 2 - d.store.memory.count(StateClaimed), StateClaimed: d.store.memory.count(StateClaimed)})
		d.stop()
		d.wantStates(map[State]int{StateDeferred: 2})
		if n := len(d.mail.order()); n != 0 {
			t.Errorf("%d deliveries after the signal", n)
		}
	})
}

// daemonThatMayLose is one that delivers slowly, one at a time, and the switch that takes its database away.
func daemonThatMayLose(t *testing.T) (*daemon, *atomic.Bool) {
	t.Helper()
	var away atomic.Bool
	d := newDaemon(t, func(c *Config) { c.Workers = 1 })
	d.mail.delivering = tenSeconds
	d.store.beforeSettle = func(int, Batch) error {
		if away.Load() {
			return errAway
		}
		return nil
	}
	return d, &away
}

// TestStopWithoutADatabase: it gives up after a bound, and what it could not record becomes
// unknown, never sent again.
func TestStopWithoutADatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, away := daemonThatMayLose(t)
		d.due(1)
		d.start()
		away.Store(true)
		d.sleep(5 * time.Second)
		begun := time.Now()
		d.stop()
		if took := time.Since(begun); took < settleForAtMost || took > settleForAtMost+10*time.Second {
			t.Errorf("the stop took %s", took)
		}
		d.wantStates(map[State]int{StateSending: 1})
		if n := d.logs.count("they will be unknown"); n != 1 {
			t.Errorf("giving up is logged %d times", n)
		}
		if left, lost := d.InFlight(), d.NotRecorded(); left != 0 || lost != 1 {
			t.Errorf("%d in flight and %d not recorded at the end, want 0 and 1", left, lost)
		}

		next := daemonOver(t, d.store.memory, nil)
		next.start()
		next.sleep(day)
		next.wantStates(map[State]int{StateUnknown: 1})
		next.stop()
		if n := len(next.mail.order()); n != 0 {
			t.Errorf("%d deliveries of what may have been accepted", n)
		}
	})
}

// TestStopTellsApart what becomes unknown from claims that are left to their leases.
func TestStopTellsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, away := daemonThatMayLose(t)
		d.due(6)
		d.start()
		d.sleep(time.Second)
		away.Store(true)
		d.stop()
		sending, claimed := d.store.memory.count(StateSending), d.store.memory.count(StateClaimed)
		if lost := d.NotRecorded(); sending == 0 || claimed == 0 || lost != sending {
			t.Errorf("%d of %d handed off are told as not recorded, beside %d claims", lost, sending, claimed)
		}
		for _, line := range []string{
			fmt.Sprintf(`they will be unknown" count=%d `, sending), fmt.Sprintf(`they are left to their leases" count=%d `, claimed),
		} {
			if n := d.logs.count(line); n != 1 {
				t.Errorf("%s is logged %d times", line, n)
			}
		}
	})
}

// TestStopWhileTheDatabaseComesBack: within the bound the outcome is recorded.
func TestStopWhileTheDatabaseComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(1)
		d.mail.delivering = tenSeconds
		begun := time.Now()
		d.store.beforeSettle = func(n int, _ Batch) error {
			if n > 1 && time.Since(begun) < 25*time.Second {
				return errAway
			}
			return nil
		}
		d.start()
		d.sleep(time.Second)
		d.stop()
		d.wantStates(map[State]int{StateSent: 1})
	})
}

// TestTwoReplicas over one ledger deliver each reminder once.
func TestTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newDaemon(t, nil)
		b := daemonOver(t, a.store.memory, nil)
		a.due(200)
		a.mail.delivering, b.mail.delivering = oneSecond, oneSecond
		a.start()
		b.start()
		a.sleep(10 * time.Second)
		a.stop() // one goes, the other one carries on
		b.sleep(time.Hour)
		b.wantStates(map[State]int{StateSent: 200})
		b.stop()
		for i := range 200 {
			if n := a.mail.sent[requestID(i)] + b.mail.sent[requestID(i)]; n != 1 {
				t.Errorf("%d mails for %s", n, requestID(i))
			}
		}
	})
}
