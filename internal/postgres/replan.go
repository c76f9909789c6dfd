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
	for last := (pgtype.Text{Valid: true}); last.Valid; {
		if err := s.pool.QueryRow(ctx, replanSQL, last.String, replanStretch).Scan(&last); err != nil {
			return false, fmt.Errorf("plan open requests anew: %w", err)
		}
	}
	if _, err := s.pool.Exec(ctx, `UPDATE nudged.installation SET planned_with = $1`, fingerprint); err != nil {
		return false, fmt.Errorf("note the fingerprint of the plan: %w", err)
	}
	return true, nil
}
