package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// ErrNotFound says that there is nothing of the kind to act on.
var ErrNotFound = errors.New("not found")

// Act is who does something and why; both go into an event.
type Act struct {
	Actor string
	Why   string
}

// Unknown lists the reminders whose fate is unknown, the oldest hand-off first.
func (s *Store) Unknown(ctx context.Context) ([]scheduler.Reminder, error) {
	rows, err := s.pool.Query(ctx, unknownSQL)
	if err != nil {
		return nil, fmt.Errorf("list unknown outcomes: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (scheduler.Reminder, error) {
		r := scheduler.Reminder{State: scheduler.StateUnknown}
		err := row.Scan(&r.RequestID, &r.LinkCreatedAt, &r.Slot, &r.DueAt, &r.Reason, &r.Attempt,
			&r.HandedOffAt, &r.FinishedAt, &r.ClaimedBy, &r.MessageID, &r.SMTPCode, &r.SMTPReply)
		r.LinkCreatedAt, r.DueAt = r.LinkCreatedAt.UTC(), r.DueAt.UTC()
		r.HandedOffAt, r.FinishedAt = r.HandedOffAt.UTC(), r.FinishedAt.UTC()
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list unknown outcomes: %w", err)
	}
	return list, nil
}

// Resolve settles the unknown outcome of one slot as a person says. The zero link means the only
// one there is; where several links have the slot unknown, it is refused.
func (s *Store) Resolve(ctx context.Context, requestID, slot string, link time.Time, sent bool, by Act) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var moved, touched int64
		err := tx.QueryRow(ctx, resolveSQL, requestID, slot, timestamp(link), sent, by.Actor, by.Why).Scan(&moved, &touched)
		switch {
		case err != nil:
			return fmt.Errorf("resolve %s of request %s: %w", slot, requestID, err)
		case moved == 0:
			return fmt.Errorf("request %s has no unknown outcome of slot %s: %w", requestID, slot, ErrNotFound)
		case moved > 1:
			return fmt.Errorf("request %s has slot %s unknown for %d links: name one with --link", requestID, slot, moved)
		}
		return nil
	})
}

// Pause keeps a request from being reminded before until; scheduler.Forever means until resumed.
func (s *Store) Pause(ctx context.Context, requestID string, until time.Time, by Act) error {
	at := timestamp(until)
	if until.Equal(scheduler.Forever()) {
		at = pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}
	}
	_, err := s.setPause(ctx, requestID, at, "pause", by)
	return err
}

// Resume ends a pause; it reports whether there was one.
func (s *Store) Resume(ctx context.Context, requestID string, by Act) (bool, error) {
	return s.setPause(ctx, requestID, pgtype.Timestamptz{}, "resume", by)
}

func (s *Store) setPause(ctx context.Context, requestID string, until pgtype.Timestamptz, action string, by Act) (bool, error) {
	var found, moved, touched int64
	err := s.pool.QueryRow(ctx, pauseSQL, requestID, until, action, by.Actor, by.Why).Scan(&found, &moved, &touched)
	if err != nil {
		return false, fmt.Errorf("%s request %s: %w", action, requestID, err)
	}
	if found == 0 {
		return false, fmt.Errorf("request %s: %w", requestID, ErrNotFound)
	}
	return moved > 0, nil
}

// Suppress keeps an address from being mailed, however its domain is spelled; it reports whether that is new.
func (s *Store) Suppress(ctx context.Context, address string, by Act) (bool, error) {
	return s.setSuppression(ctx, suppressAddressSQL, address, by)
}

// Unsuppress lets an address be mailed again; it reports whether it was suppressed.
func (s *Store) Unsuppress(ctx context.Context, address string, by Act) (bool, error) {
	return s.setSuppression(ctx, unsuppressAddressSQL, address, by)
}

func (s *Store) setSuppression(ctx context.Context, sql, address string, by Act) (bool, error) {
	var n int64
	err := s.pool.QueryRow(ctx, sql, spellings(address), by.Actor, by.Why).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("change the suppression: %w", err)
	}
	return n > 0, nil
}

// Readopt takes this database for an environment because a person says so. Slots due until now
// are never sent. A database that is in service for the environment already is left alone, unless it
// is forced; the result reports whether it was adopted.
func (s *Store) Readopt(ctx context.Context, environment string, force bool, by Act) (bool, error) {
	var adopted int64
	if err := s.pool.QueryRow(ctx, readoptSQL, environment, by.Actor, by.Why, force).Scan(&adopted); err != nil {
		return false, fmt.Errorf("adopt the database: %w", err)
	}
	return adopted > 0, nil
}

// EachOpen calls f with everything about each open request, in the order of their ids. Those that a view fails for
// are left out, and told by an *UnreadableError at the end.
func (s *Store) EachOpen(ctx context.Context, f func(scheduler.Input) error) error {
	const stretch = 500
	var failed []scheduler.Unreadable
	for last := ""; ; {
		ids, err := s.openIDs(ctx, last, stretch)
		if err != nil {
			return fmt.Errorf("list open requests: %w", ofAView(err))
		}
		if len(ids) == 0 {
			return failure(failed)
		}
		inputs, err := readInputs(ctx, s.pool, ids, false, nil)
		if failsForARow(err) {
			inputs, err = readOneByOne(ctx, s.pool, ids, &failed)
		}
		if err != nil {
			return ofAView(err)
		}
		for _, in := range inputs {
			if in.Request == nil || !in.Request.Status.Open() {
				continue
			}
			if err := f(in); err != nil {
				return err
			}
		}
		last = ids[len(ids)-1]
	}
}

// openIDs lists the next open requests. Where a view fails for the status of one, it lists all that there are.
func (s *Store) openIDs(ctx context.Context, last string, most int) ([]string, error) {
	list := func(sql string) ([]string, error) {
		rows, err := s.pool.Query(ctx, sql, last, most)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	}
	ids, err := list(openIDsSQL)
	if failsForARow(err) {
		return list(scheduledIDsSQL)
	}
	return ids, err
}
