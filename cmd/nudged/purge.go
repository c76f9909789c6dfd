package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"
)

// purgeAt is when the ledger is purged, in UTC: once a day, at an odd minute.
const purgeAt = "23 3 * * *"

// purges deletes old rows of the ledger once a day until ctx ends.
func (d *daemon) purges(ctx context.Context) error {
	logger := cronLogger{d.log}
	jobs := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(logger),
		cron.WithChain(cron.SkipIfStillRunning(logger), cron.Recover(logger)))
	_, err := jobs.AddFunc(purgeAt, func() {
		deleted, err := d.store.Purge(ctx, d.cfg.Load().Retention)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			d.log.Error("the ledger is not purged; it is tried again tomorrow", "err", err)
		default:
			d.log.Info("the ledger is purged", "count", deleted)
		}
	})
	if err != nil {
		return err
	}
	jobs.Start()
	<-ctx.Done()
	<-jobs.Stop().Done()
	return nil
}

// cronLogger lets robfig/cron speak through slog.
type cronLogger struct{ log *slog.Logger }

func (l cronLogger) Info(string, ...any) {}

func (l cronLogger) Error(err error, msg string, keysAndValues ...any) {
	l.log.Error("purge: "+msg, append(keysAndValues, "err", err)...)
}
