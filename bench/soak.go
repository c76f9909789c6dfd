package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// soak works off the same requests again and again, each time with a refreshed link, and purges what
// the refresh left behind: what many claims do to the size of the tables and of their indexes. It is
// run by name alone, for it takes minutes.
func soak(ctx context.Context, l *lab) ([]result, error) {
	const turn = 20_000
	d, err := l.database(ctx)
	if err != nil {
		return nil, err
	}
	defer d.drop()
	if err := errors.Join(d.insert(ctx, turn, "3 days 1 hour"), d.analyze(ctx)); err != nil {
		return nil, err
	}
	rounds := max(2, l.size.Soak/turn)
	reminders := result{Name: "soak: reminders and its indexes, a tenth of the way each", Unit: "MB", Target: "level"}
	schedules := result{Name: "soak: schedules and its indexes, a tenth of the way each", Unit: "MB", Target: "level"}
	for round := 1; round <= rounds; round++ {
		if _, err := drive(ctx, d, nothing{}, turn, 8); err != nil {
			return nil, err
		}
		if err := d.refresh(ctx); err != nil {
			return nil, err
		}
		if round%max(1, rounds/10) > 0 {
			continue
		}
		sizes, err := d.sizes(ctx)
		if err != nil {
			return nil, err
		}
		reminders.Ours, schedules.Ours = append(reminders.Ours, sizes[0]), append(schedules.Ours, sizes[1])
		fmt.Fprintf(os.Stderr, "soak: %8d claims, reminders %.1f MB, schedules %.1f MB\n", round*turn, sizes[0], sizes[1])
	}
	return []result{reminders, schedules}, nil
}

// refresh gives every request another link, whose first slot is due too, and purges the rows of the old one.
func (d *database) refresh(ctx context.Context) error {
	if _, err := d.pool.Exec(ctx, `UPDATE nudged.links SET created_at = created_at + interval '2 seconds'`); err != nil {
		return err
	}
	store, err := d.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Purge(ctx, time.Nanosecond)
	return err
}

// sizes are those of reminders and schedules in MB, with their indexes.
func (d *database) sizes(ctx context.Context) (mb [2]float64, err error) {
	err = d.pool.QueryRow(ctx, `SELECT pg_total_relation_size('nudged.reminders') / 1e6::float8, pg_total_relation_size('nudged.schedules') / 1e6::float8`).
		Scan(&mb[0], &mb[1])
	return mb, err
}
