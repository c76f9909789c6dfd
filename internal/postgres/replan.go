package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// replanStretch is how many schedules one short transaction walks, and replanTimeout how long one of them
// may take: a database that does not answer must not hold anybody.
const (
	replanStretch = 5000
	replanTimeout = 30 * time.Second
)

// A pass locks schedules for a moment: whoever is locked is looked at again so many times, so long after.
const (
	replanTries = 20
	replanPause = 50 * time.Millisecond
)

// One replica plans anew at a time; the others ask so often whether it has done so. What it has begun
// is left to it for this long after each stretch.
const (
	planningAsk   = time.Second
	planningLease = 30 * time.Second
)

// mixed stands behind the fingerprint once a replica with another one has written wakes.
const mixed = " mixed"

// Replan makes every open request be planned anew unless the wakes were planned with this very
// fingerprint. It may be interrupted: the fingerprint is noted last. It reports whether it did.
func (s *Store) Replan(ctx context.Context, fingerprint string) (did bool, err error) {
	defer func() {
		if err == nil {
			s.fingerprint.Store(&fingerprint)
		}
	}()
	for {
		if planned, err := s.plannedWith(ctx, fingerprint); planned || err != nil {
			return false, err
		}
		if mine, err := s.planning(ctx, false); err != nil {
			return false, err
		} else if mine {
			break
		}
		if err := pause(ctx, planningAsk); err != nil {
			return false, err
		}
	}
	if err := s.touchOpen(ctx); err != nil {
		s.leavePlanning(ctx)
		return false, fmt.Errorf("plan open requests anew: %w", err)
	}
	noting, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	if _, err := s.pool.Exec(noting, `UPDATE nudged.installation SET planned_with = $1, planning_until = NULL`, fingerprint); err != nil {
		return false, fmt.Errorf("note the fingerprint of the plan: %w", err)
	}
	return true, nil
}

// planning takes the right to plan all open requests anew, or keeps it.
func (s *Store) planning(ctx context.Context, mine bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, planningSQL, planningLease, mine)
	if err != nil {
		return false, fmt.Errorf("take it on to plan open requests anew: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// leavePlanning lets another replica begin at once where this one was interrupted, if the database
// still answers.
func (s *Store) leavePlanning(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), planningAsk)
	defer cancel()
	_, _ = s.pool.Exec(ctx, `UPDATE nudged.installation SET planning_until = NULL`)
}

// Mixed reports whether passes of a replica with another fingerprint have written wakes since all open
// requests were planned with this one, or nothing is known of what they were planned with. The replica
// whose fingerprint was noted last is the one to plan them anew.
func (s *Store) Mixed(ctx context.Context, fingerprint string) (bool, error) {
	have, err := s.plannings(ctx)
	return err == nil && (have == fingerprint+mixed || have == ""), err
}

func (s *Store) plannedWith(ctx context.Context, fingerprint string) (bool, error) {
	have, err := s.plannings(ctx)
	return err == nil && have == fingerprint, err
}

// plannings is what open requests were last planned with; empty: nothing is known.
func (s *Store) plannings(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	var have pgtype.Text
	if err := s.pool.QueryRow(ctx, `SELECT planned_with FROM nudged.installation`).Scan(&have); err != nil {
		return "", fmt.Errorf("read the fingerprint of the plan: %w", err)
	}
	return have.String, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// touchOpen touches all open requests: stretch by stretch, then those that were locked, and at last
// one at a time those that stay locked, so that whoever is waited for waits for nobody.
func (s *Store) touchOpen(ctx context.Context) error {
	var busy []string
	for last := (pgtype.Text{Valid: true}); last.Valid; {
		open, err := s.nextStretch(ctx, &last)
		if err != nil {
			return err
		}
		locked, err := s.touchFree(ctx, open)
		if err != nil {
			return err
		}
		if _, err := s.planning(ctx, true); err != nil {
			return err
		}
		busy = append(busy, locked...)
	}
	for try := 0; len(busy) > 0 && try < replanTries; try++ {
		if err := pause(ctx, replanPause); err != nil {
			return err
		}
		var err error
		if busy, err = s.touchFree(ctx, busy); err != nil {
			return err
		}
	}
	for _, id := range busy {
		if _, err := s.pool.Exec(ctx, `SELECT nudged.touch($1)`, id); err != nil {
			return fmt.Errorf("request %s: %w", id, err)
		}
	}
	return nil
}

// nextStretch lists the open requests of the next stretch, and moves last to its end.
func (s *Store) nextStretch(ctx context.Context, last *pgtype.Text) (open []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, replanSQL, last.String, replanStretch).Scan(last, &open)
	return open, err
}

// touchFree touches those of the given requests whose schedule nobody has locked, and returns the
// others.
func (s *Store) touchFree(ctx context.Context, ids []string) (locked []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	batch := &pgx.Batch{}
	queuePin(ctx, batch, true)
	batch.Queue(replanTouchSQL, ids).Query(func(rows pgx.Rows) (err error) {
		locked, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	err = s.pool.SendBatch(ctx, batch).Close()
	return locked, err
}
