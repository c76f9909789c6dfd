package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Status lists every migration of this build and when it was applied, oldest first. It only reads, so that a
// role without other rights may ask, and a database that has nothing is left that way.
func Status(ctx context.Context, url string) ([]Migration, error) {
	config, err := configOf(url)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", oneLine{err})
	}
	defer conn.Close(context.WithoutCancel(ctx))
	applied, err := appliedTo(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("read migration status: %w", err)
	}
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	list := make([]Migration, 0, len(entries))
	for _, entry := range entries {
		version, err := versionOf(entry.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, Migration{Version: version, Name: entry.Name(), AppliedAt: applied[version]})
	}
	return list, nil
}

// appliedTo returns when each migration was applied; none where nothing was.
func appliedTo(ctx context.Context, conn *pgx.Conn) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	rows, err := conn.Query(ctx, "SELECT version_id, max(tstamp) FROM "+table+" WHERE is_applied GROUP BY version_id")
	if err == nil {
		var version int64
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
			applied[version] = at.UTC()
			return nil
		})
	}
	if code := sqlState(err); code == undefinedTable || code == invalidSchema {
		return applied, nil
	}
	return applied, err
}
