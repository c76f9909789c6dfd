package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"sync/atomic"
)

// compareLedger measures the ledger protocol with a mailer that does nothing against river working
// jobs that do nothing, tuned for throughput.
func compareLedger(ctx context.Context, l *lab) ([]result, error) {
	r := result{
		Name: "ledger protocol, no-op mailer / river, no-op jobs", Unit: "1/s", Target: "≥ 1.0",
		Note: "100 workers each, window 200",
	}
	narrow := result{
		Name: "the same with 8 workers / the same 100 of river", Unit: "1/s", Note: "window 16",
	}
	for range l.size.Rounds {
		base, err := riverRound(ctx, l)
		if err != nil {
			return nil, err
		}
		ours, err := ledgerRound(ctx, l, 100)
		if err != nil {
			return nil, err
		}
		fewer, err := ledgerRound(ctx, l, 8)
		if err != nil {
			return nil, err
		}
		r.Ours, r.Base = append(r.Ours, ours), append(r.Base, base)
		narrow.Ours, narrow.Base = append(narrow.Ours, fewer), append(narrow.Base, base)
	}
	return []result{r, narrow}, nil
}

func ledgerRound(ctx context.Context, l *lab, workers int) (float64, error) {
	d, err := l.database(ctx)
	if err != nil {
		return 0, err
	}
	defer d.drop()
	if err := errors.Join(d.insert(ctx, l.size.Due, "3 days"), d.planned(ctx), d.analyze(ctx)); err != nil {
		return 0, err
	}
	return drive(ctx, d, nothing{}, l.size.Due, workers)
}

type noopArgs struct{}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	left *atomic.Int64
	done chan struct{}
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
	return nil
}

func riverRound(ctx context.Context, l *lab) (float64, error) {
	d, err := l.database(ctx)
	if err != nil {
		return 0, err
	}
	defer d.drop()
	config := d.pool.Config().Copy()
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	worker := &noopWorker{left: &atomic.Int64{}, done: make(chan struct{})}
	worker.left.Store(int64(l.size.Due))
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := river.NewClient[pgx.Tx](driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {
			MaxWorkers: 100, FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond,
		}},
		Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	jobs := make([]river.InsertManyParams, l.size.Due)
	for i := range jobs {
		jobs[i].Args = noopArgs{}
	}
	if _, err := client.InsertManyFast(ctx, jobs); err != nil {
		return 0, err
	}
	if _, err := d.pool.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	select {
	case <-worker.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := client.Stop(ctx); err != nil { // as ours, until everything is recorded
		return 0, err
	}
	return float64(l.size.Due) / time.Since(begun).Seconds(), nil
}
