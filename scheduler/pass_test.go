package scheduler

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"nudged/cadence"
)

// TestPassAtEachTick: one at once, then one each interval.
func TestPassAtEachTick(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Config)
		first  time.Duration // to the first tick: bubbles begin at midnight UTC
		every  time.Duration
	}{
		"interval":              {func(c *Config) { c.Every = 30 * time.Second }, 30 * time.Second, 30 * time.Second},
		"less than a second":    {func(c *Config) { c.Every = 100 * time.Millisecond }, 100 * time.Millisecond, 100 * time.Millisecond},
		"cron":                  {func(c *Config) { c.Every, c.Cron = 0, "*/5 * * * *" }, 5 * time.Minute, 5 * time.Minute},
		"cron, in UTC":          {func(c *Config) { c.Every, c.Cron = 0, "30 6 * * *" }, 6*time.Hour + 30*time.Minute, 24 * time.Hour},
		"cron before the other": {func(c *Config) { c.Cron = "0 * * * *" }, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(t, row.change)
				d.start()
				defer d.stop()
				if n := len(d.store.passes()); n == 0 {
					t.Error("no pass at the start")
				}
				for range 3 {
					before := len(d.store.passes())
					d.sleep(row.first - time.Millisecond)
					if n := len(d.store.passes()) - before; n != 0 {
						t.Errorf("%d passes before the tick", n)
					}
					d.sleep(time.Millisecond)
					if n := len(d.store.passes()) - before; n != 1 {
						t.Errorf("%d passes at the tick, want 1", n)
					}
					row.first = row.every
				}
			})
		})
	}
}

func TestBadTick(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"cron":     func(c *Config) { c.Cron = "every now and then" },
		"interval": func(c *Config) { c.Every = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, change)
			if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "schedule") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestFullBatchGoesOnAtOnce: what one pass could not hold does not wait for the tick.
func TestFullBatchGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Batch, c.Workers, c.Every = 7, 1, 24*time.Hour })
		d.due(100)
		begun := time.Now()
		d.start()
		defer d.stop()
		d.wantStates(map[State]int{StateSent: 100})
		if !time.Now().Equal(begun) {
			t.Errorf("it took %s", time.Since(begun))
		}
		for _, p := range d.store.passes() {
			if p.Fresh > 7 || p.Due > 7 {
				t.Errorf("a pass asked for %d and %d requests", p.Fresh, p.Due)
			}
		}
	})
}

// TestNothingDueIsAllLookedAt: requests that wait to be planned and have nothing due.
func TestNothingDueIsAllLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Batch, c.Every = 7, 24*time.Hour })
		d.due(50)
		for i := range 50 {
			d.store.edit(requestID(i), func(s *subject) { s.link.CreatedAt = time.Now() })
		}
		d.start()
		defer d.stop()
		for i := range 50 {
			if s := d.store.look(requestID(i)); s.fresh || !s.wake.Equal(time.Now().Add(3*day)) {
				t.Errorf("%s: fresh %v, wake %s", requestID(i), s.fresh, s.wake)
			}
		}
		d.sleep(3 * day)
		d.wantStates(map[State]int{StateSent: 50})
	})
}

// TestRequestsThatCannotBeSentStandInNobodysWay: a queue of them does not hide the ones behind.
func TestRequestsThatCannotBeSentStandInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Batch, c.Workers, c.Every = 10, 1, 24*time.Hour })
		d.due(60)
		for i := range 50 {
			d.store.edit(requestID(i), func(s *subject) { s.suppressed = true })
		}
		for i := range 60 { // all planned before, so that they wait by their wake
			s := d.store.subjects[requestID(i)]
			s.fresh, s.wake = false, time.Now().Add(time.Duration(i)*time.Millisecond-time.Minute)
		}
		d.start()
		defer d.stop()
		d.wantStates(map[State]int{StateSent: 10, StateSkipped: 50})
		if got := testutil.ToFloat64(d.metrics.skipped.WithLabelValues("suppressed")); got != 50 {
			t.Errorf("%v skips counted", got)
		}
	})
}

// TestTheLongestOverdueGoesFirst among those that nobody was free to send when they were planned.
func TestTheLongestOverdueGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers, c.Every = 1, time.Second })
		d.due(20)
		for i := range 20 {
			d.store.edit(requestID(i), func(s *subject) {
				s.link.CreatedAt = s.link.CreatedAt.Add(-time.Duration(i*7%20) * time.Minute)
			})
		}
		d.mail.probing = func(n int) error { // planned before the gate opens
			if n == 1 {
				return errRelay
			}
			return nil
		}
		d.mail.delivering = oneSecond
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 20})
		var dues []time.Time
		for _, id := range d.mail.order() {
			dues = append(dues, d.row(id).DueAt)
		}
		if !slices.IsSortedFunc(dues, time.Time.Compare) {
			t.Errorf("sent in the order of due %v", dues)
		}
	})
}

// TestFailedPass is tried again at the next tick, and its failure is logged once.
func TestFailedPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(3)
		var away atomic.Bool
		away.Store(true)
		d.store.beforePass = func(int) error {
			if away.Load() {
				return errAway
			}
			return nil
		}
		if err := d.Healthy(); err != nil {
			t.Errorf("%v while the daemon still waits for its database", err)
		}
		d.start()
		defer d.stop()
		d.sleep(time.Second)
		before := len(d.store.passes())
		if err := d.Ready(); err == nil || d.Healthy() != nil {
			t.Errorf("ready %v, healthy %v: the first pass failed a moment ago", err, d.Healthy())
		}
		d.sleep(2 * time.Minute)
		if n := len(d.store.passes()) - before; n != 4 {
			t.Errorf("%d passes in two minutes, want 4", n)
		}
		if d.Healthy() == nil {
			t.Error("healthy, and no pass has ended well for two minutes")
		}
		if n := d.logs.count("the pass failed"); n != 1 {
			t.Errorf("the failure is logged %d times", n)
		}
		if got := testutil.ToFloat64(d.metrics.passes.WithLabelValues("error")); int(got) != len(d.store.passes()) {
			t.Errorf("%v failures counted of %d", got, len(d.store.passes()))
		}

		away.Store(false)
		d.sleep(30 * time.Second)
		d.wantStates(map[State]int{StateSent: 3})
		if d.Healthy() != nil || d.Ready() != nil {
			t.Errorf("healthy %v, ready %v after a pass that ended well", d.Healthy(), d.Ready())
		}
		if n := d.logs.count("passes succeed again"); n != 1 {
			t.Errorf("the recovery is logged %d times", n)
		}

		away.Store(true)
		d.sleep(30 * time.Second)
		if err := d.Ready(); err == nil || d.Healthy() != nil {
			t.Errorf("ready %v, healthy %v: one pass failed", err, d.Healthy())
		}
		if n := d.logs.count("the pass failed"); n != 2 {
			t.Errorf("the second failure is logged %d times", n-1)
		}
	})
}

// TestReadyUntilItStops has the transitions of Ready and Healthy where nothing fails.
func TestReadyUntilItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		if d.Ready() == nil || d.Healthy() != nil {
			t.Error("before it was started it is not ready, and healthy for a while")
		}
		d.start()
		for range 20 {
			if d.Ready() != nil || d.Healthy() != nil {
				t.Errorf("ready %v, healthy %v", d.Ready(), d.Healthy())
			}
			d.sleep(time.Minute)
		}
		d.stop()
		if d.Ready() == nil {
			t.Error("ready after it was stopped")
		}
	})
}

// TestPanicInAPlan stays with its request, which is left alone for an hour.
func TestPanicInAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cured atomic.Bool
		d := newDaemon(t, func(c *Config) {
			c.Policy.Allowed = func(address string) bool {
				if address == "r-2@example.com" && !cured.Load() {
					panic("index out of range")
				}
				return true
			}
		})
		d.due(3)
		d.start()
		defer d.stop()
		d.wantStates(map[State]int{StateSent: 2})
		if n := d.logs.count("r-2"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		d.sleep(59 * time.Minute)
		if n := d.logs.count("r-2"); n != 1 {
			t.Errorf("logged %d times within the hour", n)
		}
		cured.Store(true)
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 3})
	})
}

// TestSetPolicy holds from the next pass on, which comes at once.
func TestSetPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Every = 24 * time.Hour })
		d.due(1)
		d.store.edit("r-1", func(s *subject) { s.request.Cadence = "urgent" })
		d.start()
		defer d.stop()
		d.wantStates(nil)
		if got := d.store.look("r-1").problem; got != ProblemUnknownCadence {
			t.Errorf("problem %q", got)
		}
		d.store.edit("r-1", func(*subject) {}) // the daemon has changed requests looked at again
		d.SetPolicy(newPolicy(t).with(t, "urgent", cadence.Definition{ThenEvery: new("1d")}))
		synctest.Wait()
		d.wantStates(map[State]int{StateSkipped: 2, StateSent: 1})
		if r := d.row("r-1"); r.Slot != "3d" || r.State != StateSent {
			t.Errorf("slot %s is %s", r.Slot, r.State)
		}
	})
}

// TestPassMetrics counts what a pass found and what others have done.
func TestPassMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.metrics.passed(PassResult{
			Now: time.Now().Add(-3 * time.Second), Tasks: make([]Task, 5), Lost: 2, Failed: 3, LeaseLost: 4, Unknown: make([]Reminder, 1),
			Skipped: map[Reason]int{ReasonMissed: 7},
		}, time.Now(), time.Second)
		for what, pair := range map[string][2]float64{
			"passes":    {testutil.ToFloat64(d.metrics.passes.WithLabelValues("ok")), 1},
			"won":       {testutil.ToFloat64(d.metrics.claims.WithLabelValues("won")), 5},
			"lost":      {testutil.ToFloat64(d.metrics.claims.WithLabelValues("lost")), 2},
			"failed":    {testutil.ToFloat64(d.metrics.sends.WithLabelValues("failed")), 3},
			"deferred":  {testutil.ToFloat64(d.metrics.sends.WithLabelValues("deferred")), 4},
			"unknown":   {testutil.ToFloat64(d.metrics.sends.WithLabelValues("unknown")), 1},
			"missed":    {testutil.ToFloat64(d.metrics.skipped.WithLabelValues("missed")), 7},
			"skew":      {testutil.ToFloat64(d.metrics.skew), 3},
			"last pass": {testutil.ToFloat64(d.metrics.lastSuccess), float64(time.Now().Unix())},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
			}
		}
	})
}
