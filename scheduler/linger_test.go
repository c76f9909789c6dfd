package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lagging measures how long each outcome waits for its commit to begin, which takes as long as given.
func lagging(d *daemon, delivery func(n int) time.Duration, commit time.Duration) func() time.Duration {
	var mu sync.Mutex
	var worst time.Duration
	ended := map[string]time.Time{}
	begun := 0
	d.mail.delivering = func(_ context.Context, id string, _ time.Time) Outcome {
		mu.Lock()
		begun++
		takes := delivery(begun)
		mu.Unlock()
		time.Sleep(takes)
		mu.Lock()
		defer mu.Unlock()
		ended[id] = time.Now()
		return Outcome{State: StateSent}
	}
	d.store.beforeSettle = func(_ int, b Batch) error {
		mu.Lock()
		for _, s := range b.Settlements {
			worst = max(worst, time.Since(ended[s.RequestID]))
		}
		mu.Unlock()
		time.Sleep(commit)
		return nil
	}
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return worst
	}
}

// Deliveries that are quicker than commits are recorded a window at a time.
func TestQuickDeliveriesFillTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers = 8 })
		d.due(96)
		lagging(d, func(n int) time.Duration { return time.Duration(n%3+1) * time.Millisecond }, 20*time.Millisecond)
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 96})
		// 96 by 14, the window but for two, and a few small ones at the beginning and the end.
		if n := d.store.settles.Load(); n > 10 {
			t.Errorf("%d commits for 96 mails, want 10 at most", n)
		}
	})
}

// Slower ones are recorded one by one as they end: an outcome waits for the commit that is under way, for
// what a window may wait for the deliveries of its first commit, and for nothing else.
func TestSlowDeliveriesAreNotWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		delivery     func(n int) time.Duration
		commit, want time.Duration
	}{
		"all slow":      {func(n int) time.Duration { return time.Duration(30+7*n%60) * time.Millisecond }, 20 * time.Millisecond, 20 * time.Millisecond},
		"some for long": {func(n int) time.Duration { return time.Duration(1+n%2*5000) * time.Millisecond }, 20 * time.Millisecond, 40 * time.Millisecond},
		"slow commits":  {func(n int) time.Duration { return time.Duration(1+n%2*9000) * time.Millisecond }, 5 * time.Second, 5100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, func(c *Config) { c.Workers = 8 })
				d.due(96)
				worst := lagging(d, tt.delivery, tt.commit)
				d.start()
				defer d.stop()
				d.sleep(20 * time.Minute)
				d.wantStates(map[State]int{StateSent: 96})
				if got := worst(); got > tt.want {
					t.Errorf("an outcome waited %s, want %s at most", got, tt.want)
				}
			})
		})
	}
}

// Deliveries that take about as long as a commit go on during it: to wait for them would cost a third.
func TestDeliveriesLikeCommitsAreNotWaitedFor(t *testing.T) {
	for _, tt := range []struct{ delivery, want time.Duration }{
		{8 * time.Millisecond, 600 * time.Millisecond},
		{11 * time.Millisecond, 600 * time.Millisecond},
		{14 * time.Millisecond, 600 * time.Millisecond},
		{17 * time.Millisecond, 600 * time.Millisecond},
		// Deliveries end at the very instant when a commit does, and some miss the next one.
		{20 * time.Millisecond, 700 * time.Millisecond},
	} {
		t.Run(tt.delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, func(c *Config) { c.Workers = 8 })
				d.due(200)
				lagging(d, func(int) time.Duration { return tt.delivery }, 20*time.Millisecond)
				begun := time.Now()
				d.start()
				defer d.stop()
				for d.store.memory.count(StateSent) < 200 {
					d.sleep(time.Millisecond)
				}
				// A commit for every eight, and a few at the beginning and the end.
				if got := time.Since(begun); got > tt.want {
					t.Errorf("200 mails took %s, want %s at most", got, tt.want)
				}
			})
		})
	}
}

// A stop ends the wait.
func TestStopEndsTheWaitForDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(3)
		lagging(d, func(n int) time.Duration { return time.Duration(1+n/3*75) * time.Millisecond }, 90*time.Millisecond)
		commit := d.store.beforeSettle
		var carried atomic.Int64 // unix nanoseconds of the commit that recorded the second outcome
		var outcomes int
		d.store.beforeSettle = func(n int, b Batch) error {
			if outcomes += len(b.Settlements); outcomes >= 2 && carried.Load() == 0 {
				carried.Store(time.Now().UnixNano())
			}
			return commit(n, b)
		}
		d.start()
		for len(d.mail.order()) < 3 {
			d.sleep(time.Millisecond)
		}
		d.sleep(5 * time.Millisecond)
		stopped := time.Now()
		d.stop()
		d.wantStates(map[State]int{StateSent: 3})
		if waited := time.Unix(0, carried.Load()).Sub(stopped); waited > time.Millisecond {
			t.Errorf("two outcomes waited %s for the third delivery", waited)
		}
	})
}
