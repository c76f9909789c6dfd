package devbox

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed sample.sql
var sample string

// Seed inserts the sample requests into a database that has no request at all. It wants the
// migrations applied. One of the samples becomes due ten seconds after the call.
func (b *Box) Seed(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.DatabaseURL())
	if err != nil {
		return fmt.Errorf("insert sample data: %w", err)
	}
	defer conn.Close(ctx)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var seeded bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM nudged.requests)").Scan(&seeded); err != nil || seeded {
			return err
		}
		_, err := tx.Exec(ctx, sample)
		return err
	})
	if err != nil {
		return fmt.Errorf("insert sample data: %w", err)
	}
	return nil
}
