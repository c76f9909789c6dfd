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

// purgeStretch is how many rows of the ledger one short transaction walks.
const purgeStretch = 2000

// Purge walks the ledger once and deletes what can never be computed again and ended longer than
// the retention ago. It rests after each stretch as long as the stretch took, so that it never
// takes more than half of anything. It returns how many rows it deleted. A database that is no longer the adopted
// one is not this one's to purge: the error is an *AdoptionError.
func (s *Store) Purge(ctx context.Context, retention time.Duration) (int64, error) {
	var deleted int64
	request, slot := "", ""
	link := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}
	blamed := false
	for rows := purgeStretch; ; {
		begun := time.Now()
		if err := s.Ours(ctx); err != nil {
			return deleted, fmt.Errorf("purge the ledger: %w", err)
		}
		var n int64
		err := s.pool.QueryRow(ctx, purgeSQL, request, link, slot, rows, retention).Scan(&request, &link, &slot, &n)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return deleted, nil
		case failsForARow(err) && rows > 1: // it is among these
			rows /= 2
			continue
		case failsForARow(err) && !blamed: // it is this one, which the next try passes over
			if _, err := s.pool.Exec(ctx, blameSQL, request, link, slot); err != nil {
				return deleted, fmt.Errorf("purge the ledger: %w", err)
			}
			blamed = true
			continue
		case err != nil:
			return deleted, fmt.Errorf("purge the ledger: %w", ofAView(err))
		}
		blamed = false
		deleted += n
		rows = min(2*rows, purgeStretch)
		select {
		case <-ctx.Done():
			return deleted, fmt.Errorf("purge the ledger: %w", ctx.Err())
		case <-time.After(time.Since(begun)):
		}
	}
}

// purged has created_at of the newest link that the ledger was purged of, of those requests where it was of any.
type purged map[string]time.Time

func (p purged) note(requestID string, until pgtype.Timestamptz) {
	if until.Valid {
		p[requestID] = instant(until)
	}
}

// of reports whether nobody can tell what went out for a link.
func (p purged) of(requestID string, link *scheduler.Link) bool {
	until, noted := p[requestID]
	return noted && link != nil && link.CreatedAt.Before(until.Add(sameLink))
}

// readPurged reads them for some requests.
func readPurged(batch *pgx.Batch, ids []string) purged {
	found := purged{}
	batch.Queue(purgedSQL, ids).Query(func(rows pgx.Rows) error {
		var id string
		var until pgtype.Timestamptz
		_, err := pgx.ForEachRow(rows, []any{&id, &until}, func() error {
			found.note(id, until)
			return nil
		})
		return err
	})
	return found
}
