package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// replanStretch is how many schedules one short transaction touches where there are so many, as replan.sql
// has it, and replanTimeout how long it may take: a database that does not answer must not hold anybody.
const (
	replanStretch = 1000
	replanTimeout = 30 * time.Second
)

// Replan makes every request be planned anew whose wake was computed by another fingerprint than this
// one, but for those whose schedule somebody has locked just now, and returns how many. Several
// replicas share the work. Where nothing is to do it costs a look into an index. In a database that is no
// longer the adopted one it touches nothing and returns an *AdoptionError.
func (s *Store) Replan(ctx context.Context, fingerprint int32) (int, error) {
	for all := 0; ; {
		n, err := s.replanStretch(ctx, fingerprint)
		all += n
		if err != nil {
			return all, fmt.Errorf("plan requests anew: %w", err)
		}
		if n < replanStretch { // the rest, if there is one, is locked, or being planned by another replica
			return all, nil
		}
	}
}

func (s *Store) replanStretch(ctx context.Context, fingerprint int32) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	if err := s.Ours(ctx); err != nil {
		return 0, err
	}
	batch := &pgx.Batch{}
	queuePin(ctx, batch, true)
	batch.Queue(replanSQL, fingerprint).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	err = s.pool.SendBatch(ctx, batch).Close()
	return n, err
}

// NotePlan writes down, for people and explanations, what requests are planned with from now on.
func (s *Store) NotePlan(ctx context.Context, with string) error {
	ctx, cancel := context.WithTimeout(ctx, replanTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, `UPDATE nudged.installation SET planned_with = $1 WHERE planned_with IS DISTINCT FROM $1`, with)
	if err != nil {
		return fmt.Errorf("note what requests are planned with: %w", err)
	}
	return nil
}
