package scheduler

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLeasesAreRenewed while claims wait and while they are delivered, for as long as it takes.
func TestLeasesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers, c.Lease = 1, time.Minute })
		d.due(6)
		var late atomic.Int64
		d.mail.delivering = func(_ context.Context, _ string, notAfter time.Time) Outcome {
			if !time.Now().Before(notAfter) {
				late.Add(1)
			}
			time.Sleep(10 * time.Minute)
			return Outcome{State: StateSent}
		}
		d.start()
		defer d.stop()
		for range 240 {
			d.sleep(15 * time.Second)
			for i := range 6 {
				for _, r := range d.store.reminders(requestID(i)) {
					if r.State.InFlight() && r.LeaseUntil.Before(time.Now().Add(15*time.Second)) {
						t.Fatalf("the lease of %s ends at %s, now is %s", r.RequestID, r.LeaseUntil, time.Now())
					}
				}
			}
		}
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 6})
		if late.Load() != 0 {
			t.Errorf("%d deliveries began after their claims had ended", late.Load())
		}
	})
}

// TestLeasesAreRenewedWhileItStops: the last delivery may outlast a lease.
func TestLeasesAreRenewedWhileItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Lease = time.Minute })
		d.due(1)
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(10 * time.Minute)
			return Outcome{State: StateSent}
		}
		d.start()
		d.cancel()
		for range 39 {
			d.sleep(15 * time.Second)
			if r := d.row("r-1"); r.LeaseUntil.Before(time.Now().Add(15 * time.Second)) {
				t.Fatalf("the lease ends at %s, now is %s", r.LeaseUntil, time.Now())
			}
		}
		d.stop()
		d.wantStates(map[State]int{StateSent: 1})
	})
}

// TestNoRenewalWithoutClaims asks the database nothing while nothing is in flight.
func TestNoRenewalWithoutClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(3)
		d.start()
		defer d.stop()
		d.sleep(time.Hour)
		if n := d.store.renewals.Load(); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

// TestLostLease: a delivery whose claim somebody else has taken is told that no content may leave.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers, c.Lease = 1, time.Minute })
		d.due(2)
		var mu sync.Mutex
		allowed := map[string][]time.Time{} // what each delivery was told, by request
		d.mail.delivering = func(_ context.Context, id string, notAfter time.Time) Outcome {
			mu.Lock()
			allowed[id] = append(allowed[id], notAfter)
			mu.Unlock()
			if notAfter.IsZero() {
				return Outcome{State: StateDeferred, Reason: ReasonLeaseLost}
			}
			time.Sleep(2 * time.Minute)
			return Outcome{State: StateSent}
		}
		var second atomic.Value // the claim that waits behind the first delivery
		d.store.afterRenew = func(kept []ClaimID) []ClaimID {
			lost, _ := second.Load().(ClaimID)
			return slices.DeleteFunc(kept, func(id ClaimID) bool { return id == lost })
		}
		d.start()
		defer d.stop()
		waiting := "r-1"
		if d.mail.order()[0] == "r-1" {
			waiting = "r-2"
		}
		second.Store(d.row(waiting).ClaimID)
		d.sleep(119 * time.Second)
		if got := d.flights.heldUntil(d.row(waiting).ClaimID); !got.IsZero() {
			t.Errorf("held until %s", got)
		}
		d.sleep(time.Second)
		mu.Lock()
		told := allowed[waiting]
		mu.Unlock()
		if len(told) == 0 || !told[0].IsZero() {
			t.Errorf("content allowed until %v", told)
		}
		d.sleep(10 * time.Minute) // nothing left, so it is tried again
		d.wantStates(map[State]int{StateSent: 2})
	})
}

// TestFlights: what a renewal does to the claims it asked for.
func TestFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flights{until: map[ClaimID]time.Time{}}
		mine, theirs, done := ClaimID{1}, ClaimID{2}, ClaimID{3}
		begun := time.Now()
		for _, id := range []ClaimID{mine, theirs, done} {
			f.add(id, begun.Add(time.Minute))
		}
		if ids := f.endingBefore(begun.Add(time.Minute)); len(ids) != 0 {
			t.Errorf("%d end before they end", len(ids))
		}
		asked := f.endingBefore(begun.Add(time.Minute + 1))
		if len(asked) != 3 {
			t.Errorf("%d end within the minute, want 3", len(asked))
		}
		f.remove(done) // recorded while the renewal ran
		f.renewed(asked, []ClaimID{mine}, begun.Add(2*time.Minute))
		for id, want := range map[ClaimID]time.Time{mine: begun.Add(2 * time.Minute), theirs: {}, done: {}} {
			if got := f.heldUntil(id); !got.Equal(want) {
				t.Errorf("claim %d is held until %s, want %s", id[0], got, want)
			}
		}
		if len(f.until) != 2 {
			t.Errorf("%d claims are known, want 2: what was recorded does not come back", len(f.until))
		}
	})
}
