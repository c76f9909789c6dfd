package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Config is all that a Scheduler needs.
type Config struct {
	Store      Store
	Mailer     Mailer
	Policy     *Policy
	Worker     string        // name of this replica, for people to read in the ledger
	Every      time.Duration // between two passes; 0 where Cron is set
	Cron       string        // when to pass: five fields, in UTC
	StallAfter time.Duration // Healthy fails when no pass ended well for so long
	Batch      int           // requests looked at in one pass, and claims waiting, at most
	Lease      time.Duration
	Workers    int     // deliveries at once
	Rate       float64 // hand-offs a second; 0: no limit
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Store == nil, c.Mailer == nil, c.Policy == nil, c.Registerer == nil, c.Logger == nil:
		return errors.New("scheduler: store, mailer, policy, registerer and logger are needed")
	case c.Batch < 1, c.Workers < 1, c.Lease <= 0, c.StallAfter <= 0, c.Rate < 0:
		return errors.New("scheduler: batch, workers, lease and stall time must be positive")
	}
	return nil
}

// windowPerWorker is how many reminders are handed off for each delivery that can run: the one
// in delivery and one waiting just behind it. A crash makes at most this many times Workers
// outcomes unknown.
const windowPerWorker = 2

// How long to wait between two probes of a relay that is unwell: 1 s at first, then more and more.
const (
	probeInitial = time.Second
	probeMax     = time.Minute
)

// Scheduler is the one loop. It runs once.
type Scheduler struct {
	cfg     Config
	policy  atomic.Pointer[Policy]
	metrics *metrics
	log     *slog.Logger
	flights flights
	demand  *demand
	gate    *gate
	limiter *rate.Limiter

	ticks    chan struct{}  // asks for a pass
	queue    chan queued    // claimed, to be composed
	ready    chan composed  // composed, to be handed off
	handed   chan composed  // handed off, to be delivered
	outcomes chan delivered // delivered, to be recorded

	started   atomic.Int64 // unix nanoseconds of New: a daemon may wait for its database before Run
	succeeded atomic.Int64 // unix nanoseconds of the last pass that ended well; 0: none yet
	failing   atomic.Bool  // the last pass did not end well
	stopping  atomic.Bool
}

type queued struct {
	task Task
	at   time.Time
}

type composed struct {
	task    Task
	message Message
}

// delivered is a claim that came to its end. One that was handed off had a place in the window.
type delivered struct {
	task      Task
	outcome   Outcome
	handedOff bool
	took      time.Duration // the delivery
}

// New checks the configuration and registers the metrics.
func New(cfg Config) (*Scheduler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	window := windowPerWorker * cfg.Workers
	s := &Scheduler{
		cfg:      cfg,
		metrics:  m,
		log:      cfg.Logger,
		flights:  flights{until: map[ClaimID]time.Time{}},
		demand:   newDemand(2*window, cfg.Batch, cfg.Lease/8),
		limiter:  rate.NewLimiter(rate.Inf, 1),
		ticks:    make(chan struct{}, 1),
		queue:    make(chan queued, max(2*window, cfg.Batch)),
		ready:    make(chan composed, window),
		handed:   make(chan composed, window),
		outcomes: make(chan delivered, window),
	}
	if cfg.Rate > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(cfg.Rate), 1)
	}
	s.gate = newGate(cfg.Mailer.Probe, s.Poke, Backoff{Initial: probeInitial, Max: probeMax}, m.relayUp, cfg.Logger)
	s.policy.Store(cfg.Policy)
	s.started.Store(time.Now().UnixNano())
	return s, nil
}

// SetPolicy puts another policy in place for the passes to come.
func (s *Scheduler) SetPolicy(p *Policy) {
	s.policy.Store(p)
	s.Poke()
}

// Poke asks for a pass as soon as the present one is over.
func (s *Scheduler) Poke() {
	select {
	case s.ticks <- struct{}{}:
	default:
	}
}

// Run works until ctx ends, and then until everything that was handed off is recorded: it claims
// nothing new, gives back what is not handed off without burning an attempt, lets the open
// conversations end and records their outcomes. It returns an error only when it could not start.
func (s *Scheduler) Run(ctx context.Context) error {
	ticker, err := startTicker(s.cfg, s.Poke)
	if err != nil {
		return err
	}
	s.Poke()

	var inner sync.WaitGroup // ends by ctx
	inner.Go(func() { s.gate.run(ctx) })

	var renewer sync.WaitGroup // ends when nothing is in flight any more
	renewCtx, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	renewer.Go(func() { s.renewLeases(renewCtx) })

	var deliveries, settling sync.WaitGroup
	for range s.cfg.Workers {
		deliveries.Go(func() { s.deliverAll(ctx) })
	}
	settling.Go(func() { s.settleAll(ctx) })
	inner.Go(func() { s.composeAll(ctx) })

	s.passes(ctx) // until ctx ends
	s.stopping.Store(true)
	ticker.stop()
	close(s.queue)
	inner.Wait()
	deliveries.Wait()
	close(s.outcomes)
	settling.Wait()
	stopRenewing()
	renewer.Wait()
	return nil
}

// InFlight is how many claims this process works on, from the claim to the record of its end.
func (s *Scheduler) InFlight() int { return s.flights.count() }

// NotRecorded is how many outcomes of deliveries could not be recorded before the daemon gave up: they become
// unknown when the leases run out.
func (s *Scheduler) NotRecorded() int { return s.flights.losses() }

// Healthy says what is wrong when passes have stopped advancing. It touches no database.
func (s *Scheduler) Healthy() error {
	last := time.Unix(0, max(s.started.Load(), s.succeeded.Load()))
	if age := time.Since(last); age > s.cfg.StallAfter {
		return fmt.Errorf("no pass has ended well for %s", age.Round(time.Second))
	}
	return nil
}

// Ready says why this process is not at work: it has not finished its first pass, its last pass
// failed, or it is stopping.
func (s *Scheduler) Ready() error {
	switch {
	case s.stopping.Load():
		return errors.New("stopping")
	case s.succeeded.Load() == 0:
		return errors.New("the first pass is not over")
	case s.failing.Load():
		return errors.New("the last pass failed")
	}
	return nil
}
