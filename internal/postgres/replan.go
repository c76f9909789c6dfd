package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// replanStretch is how many schedules one short transaction walks.
const replanStretch = 5000

// Replan makes every open request be planned anew unless the wakes were planned with this very
// fingerprint. It may be interrupted: the fingerprint is noted last. It reports whether it did.
func (s *Store) Replan(ctx context.Context, fingerprint string) (bool, error) {
	var have pgtype.Text
	err := s.pool.QueryRow(ctx, `SELECT planned_with FROM nudged.installation`).Scan(&have)
	if err != nil {
		return false, fmt.Errorf("read the fingerprint of the plan: %w", err)
	}
	if have.String == fingerprint {
		return false, nil
	}
	var busy []string // requests whose schedule somebody else had locked
	for last := (pgtype.Text{Valid: true}); last.Valid; {
		var some []string
		if err := s.pool.QueryRow(ctx, replanSQL, last.String, replanStretch).Scan(&last, &some); err != nil {
			return false, fmt.Errorf("plan open requests anew: %w", err)
		}
		busy = append(busy, some...)
	}
	for _, id := range busy { // one at a time, so that whoever is waited for waits for nobody
		if _, err := s.pool.Exec(ctx, `SELECT nudged.touch($1)`, id); err != nil {
			return false, fmt.Errorf("plan request %s anew: %w", id, err)
		}
	}
	if _, err := s.pool.Exec(ctx, `UPDATE nudged.installation SET planned_with = $1`, fingerprint); err != nil {
		return false, fmt.Errorf("note the fingerprint of the plan: %w", err)
	}
	return true, nil
}
