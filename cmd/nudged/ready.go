package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nudged/migrations"
)

const databaseRetry = time.Second

// waitForDatabase returns when the schema fits and the environment is this one. A schema that does
// not fit is an error; a database that is away or belongs elsewhere is waited for.
func (d *daemon) waitForDatabase(ctx context.Context) error {
	for said := ""; ; {
		err := d.store.CheckSchema(ctx)
		if _, misfit := errors.AsType[*migrations.VersionError](err); misfit {
			return err
		}
		if err == nil {
			err = d.store.Adopt(ctx, d.started.Environment)
		}
		if err == nil && said != "" {
			d.log.Info("the database is there: sending begins")
		}
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop: what the database says no longer matters
		}
		if err.Error() != said {
			said = err.Error()
			d.log.Error("nothing is sent yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(databaseRetry):
		}
	}
}

// atWork says why nothing is sent, but for the mail server, and in which words the database refuses.
func (d *daemon) atWork() error {
	err := d.loop.Ready()
	if refusal := d.store.Refusal(); err != nil && refusal != nil {
		return fmt.Errorf("%w: %w", err, refusal)
	}
	return err
}

// ready is what /-/ready reports.
func (d *daemon) ready() error {
	if err := d.atWork(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return d.store.CheckSchema(ctx)
}
