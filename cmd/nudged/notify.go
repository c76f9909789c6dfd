package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// How often the notifier looks whether the first pass is over, and whether the status has changed.
const (
	readyEvery  = 100 * time.Millisecond
	statusEvery = 2 * time.Second
)

// notifierConfig is what a notifier reports about.
type notifierConfig struct {
	Ready    func() error  // nil: passes succeed
	Healthy  func() error  // nil: passes advance
	Status   func() string // one line for people
	InFlight func() int    // what a stop waits for
	Logger   *slog.Logger
}

// notifier tells the service manager how the daemon is, in the words of sd_notify(3). Without
// NOTIFY_SOCKET it does nothing.
//
// The watchdog is pinged as long as passes advance, by the measure of /-/healthy: a daemon that
// lives without doing its work is started anew. While it stops there are no passes, and the
// manager's own time limit takes the place of the watchdog.
type notifier struct {
	notifierConfig

	send     func(state string) error // nil: there is nobody to tell
	watchdog time.Duration            // the manager acts when no ping comes for so long; 0: it does not watch

	mu    sync.Mutex // guards what follows, and keeps messages in order
	phase notifyPhase
	shown string // the status told last
	said  string // the failure to send that was logged last
}

// notifyPhase says what the manager believes of the daemon.
type notifyPhase int

const (
	phaseStarting notifyPhase = iota
	phaseUp
	phaseStopping
)

// newNotifier reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
func newNotifier(cfg notifierConfig) (*notifier, error) {
	n := &notifier{notifierConfig: cfg}
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return n, nil
	}
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("watchdog of the service manager: %w", err)
	}
	n.watchdog = watchdog
	n.send = func(state string) error {
		_, err := systemd.SdNotify(false, state)
		return err
	}
	return n, nil
}

// run reports until over is closed. ctx ends when the daemon is to stop.
func (n *notifier) run(ctx context.Context, over <-chan struct{}) {
	if n.send == nil {
		return
	}
	defer n.stopping()
	start, status := time.NewTicker(readyEvery), time.NewTicker(statusEvery)
	defer start.Stop()
	defer status.Stop()
	var pings <-chan time.Time
	if n.watchdog > 0 {
		ping := time.NewTicker(n.watchdog / 2)
		defer ping.Stop()
		pings = ping.C
	}
	n.refresh()
	for stop := ctx.Done(); ; {
		select {
		case <-over:
			return
		case <-stop:
			stop = nil
			n.stopping()
		case <-start.C:
			if n.ready() {
				start.Stop()
			}
		case <-status.C:
			n.refresh()
		case <-pings:
			n.ping()
		}
	}
}

// ready reports whether the start is over, and tells so the first time.
func (n *notifier) ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phase == phaseStarting && n.Ready() == nil {
		n.phase = phaseUp
		n.tell(systemd.SdNotifyReady, n.status())
	}
	return n.phase != phaseStarting
}

// stopping tells that the daemon stops, once.
func (n *notifier) stopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phase != phaseStopping {
		n.phase = phaseStopping
		n.tell(systemd.SdNotifyStopping, n.status())
	}
}

// reloading tells that the configuration is being reloaded; the function it returns, that this is
// over. Nothing is told outside of normal work: READY=1 would end a start that is not over, or
// take a stop back.
func (n *notifier) reloading() (over func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phase != phaseUp {
		return func() {}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		n.failed(err)
		return func() {}
	}
	// One datagram: Type=notify-reload drops a RELOADING=1 that comes without the time.
	n.tell(systemd.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.phase == phaseUp {
			n.tell(systemd.SdNotifyReady, n.status())
		}
	}
}

// refresh tells the status if it is another one than the manager knows.
func (n *notifier) refresh() {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.shown
	if status := n.status(); n.shown != before {
		n.tell(status)
	}
}

// status is the line for people that fits the phase; it is going to be told. n.mu is held.
func (n *notifier) status() string {
	switch err := n.Ready(); {
	case n.phase == phaseStopping:
		n.shown = fmt.Sprintf("stopping: what was handed off ends and is recorded; in flight here: %d", n.InFlight())
	case n.phase == phaseStarting && err != nil:
		n.shown = "starting: " + err.Error()
	case err != nil:
		n.shown = n.Status() + "; not ready: " + err.Error()
	default:
		n.shown = n.Status()
	}
	return "STATUS=" + n.shown
}

func (n *notifier) ping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phase == phaseStopping || n.Healthy() == nil {
		n.tell(systemd.SdNotifyWatchdog)
	}
}

// tell sends one datagram; n.mu is held.
func (n *notifier) tell(assignments ...string) {
	if n.send != nil {
		n.failed(n.send(strings.Join(assignments, "\n")))
	}
}

// failed logs the same failure once; nil forgets it. What was not told is told again.
func (n *notifier) failed(err error) {
	if err == nil {
		n.said = ""
		return
	}
	n.shown = ""
	if err.Error() != n.said {
		n.said = err.Error()
		n.Logger.Warn("the service manager is not told", "err", err)
	}
}
