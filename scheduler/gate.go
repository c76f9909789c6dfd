package scheduler

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gate keeps reminders from a relay that is unwell. It starts shut: the first probe opens it. A
// fault shuts it, and one probe at a time, with back-off, finds out when to open it again.
type gate struct {
	probe   func(context.Context) error
	opened  func() // called each time the gate opens
	backoff Backoff
	up      prometheus.Gauge
	log     *slog.Logger

	mu    sync.Mutex
	open  bool
	mails int           // accepted since the gate was opened
	fault chan struct{} // holds one token while the gate is shut and has to be probed
}

func newGate(probe func(context.Context) error, opened func(), backoff Backoff, up prometheus.Gauge, log *slog.Logger) *gate {
	g := &gate{probe: probe, opened: opened, backoff: backoff, up: up, log: log, fault: make(chan struct{}, 1)}
	g.fault <- struct{}{}
	return g
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// shut closes the gate because of what a delivery met. The words of the answer stay out of the log:
// a relay that answers to a mail may quote it. They are in the ledger, and what the probe that
// follows meets is told in full.
func (g *gate) shut(code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return
	}
	g.open = false
	g.up.Set(0)
	g.log.Warn("the relay is unwell, sending stops until it answers again", "smtp_code", code)
	g.fault <- struct{}{}
}

// accepted notes that the relay took a mail: it is as well as it says.
func (g *gate) accepted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mails++
}

// sinceOpened tells how many mails the relay took since the gate was opened last.
func (g *gate) sinceOpened() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mails
}

// run probes until ctx ends: at once at the start and after a fault of a relay that had been taking
// mail. A relay that answers probes and then refuses every mail is asked ever more rarely. An outage is
// told once, however its words alternate.
func (g *gate) run(ctx context.Context) {
	draw := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for attempt, first := 0, true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-g.fault:
		}
		if first || g.sinceOpened() > 0 {
			attempt = 0
		} else {
			attempt++
			if !g.wait(ctx, attempt, draw) {
				return
			}
		}
		for told := (fault{}); ; {
			err := g.probe(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				break
			}
			if told.worthSaying(err, time.Now()) {
				g.log.Warn("the relay does not accept mail now", "err", err)
			}
			attempt++
			if !g.wait(ctx, attempt, draw) {
				return
			}
		}
		g.letThrough()
	}
}

// wait rests before the next probe; it is false where ctx ended first.
func (g *gate) wait(ctx context.Context, attempt int, draw *rand.Rand) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(g.backoff.Wait(attempt, draw)):
		return true
	}
}

func (g *gate) letThrough() {
	g.mu.Lock()
	g.open, g.mails = true, 0
	g.up.Set(1)
	g.mu.Unlock()
	g.log.Info("the relay answers, sending goes on")
	g.opened()
}
