package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nudged/scheduler"
)

// counting lets a mailer's deliveries be counted, and tells when the last one has ended.
type counting struct {
	scheduler.Mailer
	left atomic.Int64
	done chan struct{}
}

func (c *counting) Deliver(ctx context.Context, m scheduler.Message, notAfter time.Time) scheduler.Outcome {
	outcome := c.Mailer.Deliver(ctx, m, notAfter)
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
	return outcome
}

// drive runs the whole pipeline of this process over a database until n deliveries have ended and
// are recorded, and returns how many a second that was.
func drive(ctx context.Context, d *database, mailer scheduler.Mailer, n, workers int) (float64, error) {
	store, err := d.store(ctx)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	return driveOver(ctx, store, mailer, n, workers)
}

// driveOver does so over any ledger.
func driveOver(ctx context.Context, store scheduler.Store, mailer scheduler.Mailer, n, workers int) (float64, error) {
	p, err := policy()
	if err != nil {
		return 0, err
	}
	counted := &counting{Mailer: mailer, done: make(chan struct{})}
	counted.left.Store(int64(n))
	s, err := scheduler.New(scheduler.Config{
		Store: store, Mailer: counted, Policy: p, Worker: "bench", Every: time.Second, StallAfter: time.Minute,
		Batch: 500, Lease: 5 * time.Minute, Workers: workers,
		Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-counted.done:
	case <-ctx.Done():
		return 0, errors.New("the deliveries did not end in time")
	}
	stop()
	if err := <-ended; err != nil { // Run returns when everything is recorded
		return 0, err
	}
	return float64(n) / time.Since(begun).Seconds(), nil
}

// nothing accepts every message at once.
type nothing struct{}

func (nothing) Compose(t scheduler.Task) (scheduler.Message, error) {
	return scheduler.Message{From: "a@example.com", To: t.Request.RecipientEmail, MessageID: t.Request.ID + "@example.com"}, nil
}

func (nothing) Deliver(context.Context, scheduler.Message, time.Time) scheduler.Outcome {
	return scheduler.Outcome{State: scheduler.StateSent, SMTPCode: 250, SMTPReply: "2.0.0 Ok"}
}

func (nothing) Probe(context.Context) error { return nil }
