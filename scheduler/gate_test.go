package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errRelay = errors.New("connection refused")

func relayFault() Outcome {
	return Outcome{State: StateDeferred, Reason: ReasonRelayRefused, SMTPReply: "421 not now", RelayFault: true}
}

// TestGateIsShutAtFirst: nothing is claimed before a probe found the relay well.
func TestGateIsShutAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.due(3)
		d.mail.probing = func(n int) error {
			if n < 6 {
				return errRelay
			}
			return nil
		}
		d.start()
		defer d.stop()
		if got := testutil.ToFloat64(d.metrics.relayUp); got != 0 {
			t.Errorf("relay_up %v", got)
		}
		for len(d.mail.probed()) < 5 {
			d.wantStates(nil)
			d.sleep(time.Second)
		}
		d.sleep(time.Hour)
		d.wantStates(map[State]int{StateSent: 3})
		if got := testutil.ToFloat64(d.metrics.relayUp); got != 1 {
			t.Errorf("relay_up %v", got)
		}
		probes := d.mail.probed()
		if len(probes) != 6 {
			t.Fatalf("%d probes, want 6 and none after the gate opened", len(probes))
		}
		for n := 1; n < 6; n++ {
			wait, most := probes[n].Sub(probes[n-1]), probeInitial<<(n-1)
			if wait < time.Second || wait > most {
				t.Errorf("%s between probes %d and %d, want 1 s to %s", wait, n, n+1, most)
			}
		}
		if n := d.logs.count("the relay does not accept mail now"); n != 1 {
			t.Errorf("the same fault is logged %d times", n)
		}
		if n := d.logs.count("the relay answers"); n != 1 {
			t.Errorf("the opening is logged %d times", n)
		}
	})
}

// TestGateTellsAnOutageOnce although the relay fails in one way and then in another, and back.
func TestGateTellsAnOutageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, nil)
		d.mail.probing = func(n int) error { return fmt.Errorf("fault %d", n%2) }
		d.start()
		defer d.stop()
		d.sleep(50 * time.Second)
		if probes := len(d.mail.probed()); probes < 4 || d.logs.count("the relay does not accept mail now") != 1 {
			t.Errorf("%d probes of one outage are told %d times", probes, d.logs.count("the relay does not accept mail now"))
		}
	})
}

// TestGateOpensAndAPassRuns: what waited goes at once, not at the next tick.
func TestGateOpensAndAPassRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Every = 24 * time.Hour })
		d.due(3)
		d.mail.probing = func(n int) error {
			if n == 1 {
				return errRelay
			}
			return nil
		}
		d.start()
		defer d.stop()
		d.sleep(time.Minute)
		d.wantStates(map[State]int{StateSent: 3})
	})
}

// TestRelayFault shuts the gate in the middle of a queue.
func TestRelayFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers = 1 })
		d.due(20)
		var down, mended atomic.Bool
		d.mail.probing = func(int) error {
			if down.Load() {
				return errRelay
			}
			return nil
		}
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(time.Second)
			if len(d.mail.order()) >= 3 && !mended.Load() {
				down.Store(true)
				return relayFault()
			}
			return Outcome{State: StateSent}
		}
		d.start()
		defer d.stop()
		d.sleep(20 * time.Second)
		if n := len(d.mail.order()); n != 3 {
			t.Errorf("%d deliveries begun, want none after the fault", n)
		}
		// Those that were claimed are given back; nobody claims the others.
		claimed, handedOff := 0, 0
		for i := range 20 {
			for _, r := range d.store.reminders(requestID(i)) {
				claimed++
				if r.State == StateSent {
					continue
				}
				if !r.HandedOffAt.IsZero() {
					handedOff++
				}
				if r.State != StateDeferred || r.Reason != ReasonRelayRefused || r.Attempt != 0 || r.RetryAt.After(time.Now()) {
					t.Errorf("%s: %s %s, attempt %d, retry at %s", r.RequestID, r.State, r.Reason, r.Attempt, r.RetryAt)
				}
			}
		}
		d.wantStates(map[State]int{StateSent: 2, StateDeferred: claimed - 2})
		if handedOff > windowPerWorker {
			t.Errorf("%d were handed off and not sent, want no more than the window", handedOff)
		}
		before := len(d.store.passes())
		d.sleep(time.Minute)
		for _, p := range d.store.passes()[before:] {
			if p.Due != 0 {
				t.Errorf("a pass took %d due requests while the gate was shut", p.Due)
			}
		}
		if n := d.logs.count("the relay is unwell"); n != 1 {
			t.Errorf("the fault is logged %d times", n)
		}
		if got := testutil.ToFloat64(d.metrics.relayUp); got != 0 {
			t.Errorf("relay_up %v", got)
		}

		mended.Store(true)
		down.Store(false)
		d.sleep(2 * time.Hour)
		d.wantStates(map[State]int{StateSent: 20})
		for i := range 20 {
			if r := d.row(requestID(i)); r.Attempt != 1 {
				t.Errorf("%s was sent at attempt %d; the relay's faults burn none", r.RequestID, r.Attempt)
			}
		}
	})
}

// TestRelayThatAnswersProbesOnly: a relay that lets a probe in and turns every mail away is backed
// off from as well.
func TestRelayThatAnswersProbesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers, c.Every = 1, time.Second })
		d.due(5)
		var mended atomic.Bool
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(10 * time.Millisecond)
			if mended.Load() || len(d.mail.order()) == 1 { // it was well once
				return Outcome{State: StateSent}
			}
			return relayFault()
		}
		d.start()
		defer d.stop()
		d.sleep(time.Hour)
		// With full jitter under a minute an hour has room for some 120.
		if n := len(d.mail.order()); n > 240 {
			t.Errorf("%d deliveries in an hour to a relay that refuses each one", n)
		}
		mended.Store(true)
		d.sleep(2 * time.Hour)
		d.wantStates(map[State]int{StateSent: 5})
	})
}

// TestGateForgetsOldFaults: once mail went through, the next fault is probed at once again.
func TestGateForgetsOldFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) { c.Workers = 1 })
		d.due(9)
		var mu sync.Mutex
		var faults []time.Time
		d.mail.delivering = func(context.Context, string, time.Time) Outcome {
			time.Sleep(time.Second)
			if len(d.mail.order())%2 == 1 {
				return Outcome{State: StateSent}
			}
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, time.Now())
			return relayFault()
		}
		d.start()
		defer d.stop()
		d.sleep(10 * time.Minute)
		d.wantStates(map[State]int{StateSent: 9})
		mu.Lock()
		defer mu.Unlock()
		if len(faults) != 8 {
			t.Errorf("%d faults, want one between each two mails", len(faults))
		}
		for _, fault := range faults {
			if !slices.ContainsFunc(d.mail.probed(), fault.Equal) {
				t.Errorf("the fault at %s was not probed at once", fault)
			}
		}
	})
}
