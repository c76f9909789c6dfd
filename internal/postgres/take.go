package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// taken is what a pass took: request ids.
type taken struct {
	ids    []string // to look at; their schedules are locked
	purged purged
	woken  []string // that were restless,
	locked []string // and of these, those that still cannot be woken
	lost   []string // whose claim was lost, and that cannot be woken now

	offered int // whose turn it was, taken or not
}

// take settles lost claims, wakes who is restless, then locks the schedules to look at. It refuses
// a database that is no longer the adopted one.
func (s *Store) take(ctx context.Context, tx pgx.Tx, p scheduler.Pass, result *scheduler.PassResult) (got taken, err error) {
	var environment string
	var same, views bool
	got.purged = purged{}
	if got.woken, err = s.restless.list(ctx, tx); err != nil {
		return got, err
	}
	turns, err := s.turns.next(ctx, tx, p.Due)
	if err != nil {
		return got, err
	}
	got.offered = len(turns)
	batch := &pgx.Batch{}
	queuePin(ctx, batch, true)
	batch.Queue(clockSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&result.Now, &environment, &same, &views) })
	queueRecover(batch, &got, result)
	queueWake(batch, got.woken, func(locked []string) { got.locked = locked })
	queueTake(batch, p, turns, &got, result)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return got, fmt.Errorf("take schedules: %w", err)
	}
	s.overViews.Store(views)
	return got, s.judge(environment, *s.environment.Load(), same)
}

// queueRecover settles the claims of workers that went away.
func queueRecover(batch *pgx.Batch, got *taken, result *scheduler.PassResult) {
	batch.Queue(recoverSQL).Query(func(rows pgx.Rows) error {
		var r scheduler.Reminder
		var passedOver bool
		_, err := pgx.ForEachRow(rows, []any{&r.RequestID, &r.LinkCreatedAt, &r.Slot, &r.State, &r.Attempt, &r.ClaimedBy, &passedOver}, func() error {
			if r.State == scheduler.StateUnknown {
				r.LinkCreatedAt = r.LinkCreatedAt.UTC()
				result.Unknown = append(result.Unknown, r)
			} else {
				result.LeaseLost++
			}
			if passedOver {
				got.lost = append(got.lost, r.RequestID)
			}
			return nil
		})
		return err
	})
}

// queueTake takes who is due, by turns where there are any and else by age, and who waits to be
// planned.
func queueTake(batch *pgx.Batch, p scheduler.Pass, turns []string, got *taken, result *scheduler.PassResult) {
	due := p.Due
	if len(turns) > 0 {
		due = 0
		batch.Queue(takeTurnsSQL, turns).Query(func(rows pgx.Rows) error {
			var id string
			var until pgtype.Timestamptz
			_, err := pgx.ForEachRow(rows, []any{&id, &until}, func() error {
				got.ids = append(got.ids, id)
				got.purged.note(id, until)
				result.Due++
				return nil
			})
			return err
		})
	}
	batch.Queue(takeSQL, p.Fresh, due).Query(func(rows pgx.Rows) error {
		var id string
		var until pgtype.Timestamptz
		var fresh bool
		_, err := pgx.ForEachRow(rows, []any{&id, &until, &fresh}, func() error {
			got.ids = append(got.ids, id)
			got.purged.note(id, until)
			if fresh {
				result.Fresh++
			} else {
				result.Due++
			}
			return nil
		})
		return err
	})
}
