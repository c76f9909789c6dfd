// Package migrations owns the schema `nudged`: its goose files, how they are applied, and which
// version of the schema this build knows.
//
// It may import goose, pgx and the standard library, and nothing of ours.
//
// Invariants:
//
//  1. A file that has been released is never edited; a change is a new file.
//  2. Files only add (expand) before a later one takes away (contract): each says by
//     nudged.schema_readers() how old a build may be that works on the schema it leaves behind.
//  3. There is no way down. A ledger that is dropped is a ledger that sends twice.
//  4. Several processes may apply them at once: a session lock lets one do the work.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// table records what was applied. It lies in the schema that it describes.
const table = "nudged.schema_migrations"

//go:embed *.sql
var files embed.FS

// Migration is one file and whether the database has it.
type Migration struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"` // UTC; zero: pending
}

// VersionError says that the schema of a database does not fit this build.
type VersionError struct {
	Have, Want int64
}

func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return "the database has no schema nudged: run `nudged migrate`"
	case e.Have < e.Want:
		return fmt.Sprintf("the schema is at version %d, this nudged needs %d: run `nudged migrate`", e.Have, e.Want)
	default:
		return fmt.Sprintf("the schema is at version %d, newer than the %d this nudged knows: install a newer nudged", e.Have, e.Want)
	}
}

// Latest is the version of the schema that this build knows: that of its newest file.
func Latest() (int64, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	return versionOf(entries[len(entries)-1].Name())
}

func versionOf(name string) (int64, error) {
	const digits = 5
	version, err := strconv.ParseInt(name[:min(digits, len(name))], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the version of migration %s: %w", name, err)
	}
	return version, nil
}

// Querier is what Check needs of a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns a *VersionError unless the schema is the one this build knows, or a newer one that
// says that this build may work on it.
func Check(ctx context.Context, db Querier) error {
	want, err := Latest()
	if err != nil {
		return err
	}
	var have int64
	err = db.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+table+" WHERE is_applied").Scan(&have)
	if code := sqlState(err); code == undefinedTable || code == invalidSchema {
		return &VersionError{Have: 0, Want: want}
	}
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have == want || have > want && readable(ctx, db, have, want) {
		return nil
	}
	return &VersionError{Have: have, Want: want}
}

// readable asks a newer schema whether it suits a build that knows an older one. A schema that
// cannot tell does not.
func readable(ctx context.Context, db Querier, have, known int64) bool {
	var version, oldest int64
	err := db.QueryRow(ctx, "SELECT version, oldest_reader FROM nudged.schema_readers()").Scan(&version, &oldest)
	return err == nil && version == have && oldest <= known
}

// Up applies every pending migration to the database at url and returns those it applied. It may
// be called by several processes at once. It needs a direct connection: the lock is a session's.
// A table that an open transaction of the application uses is waited for as long as ctx allows, but
// never longer than tableWait at a time, because every other writer has to wait with us.
func Up(ctx context.Context, url string) ([]Migration, error) {
	return UpTelling(ctx, url, func() {})
}

// UpTelling is Up, and tells once that a table has to be waited for.
func UpTelling(ctx context.Context, url string, waits func()) ([]Migration, error) {
	tell := sync.OnceFunc(waits)
	applied := []Migration{}
	err := withProvider(ctx, url, func(p *goose.Provider) error {
		for {
			results, err := p.Up(ctx)
			if partial, ok := errors.AsType[*goose.PartialError](err); ok {
				results = partial.Applied
			}
			for _, r := range results {
				applied = append(applied, Migration{Version: r.Source.Version, Name: r.Source.Path, AppliedAt: time.Now().UTC()})
			}
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return fmt.Errorf("apply migrations: %w", ctx.Err())
			case sqlState(err) != lockNotAvailable:
				return fmt.Errorf("apply migrations: %w", err)
			}
			tell()
			select {
			case <-ctx.Done():
				return fmt.Errorf("apply migrations: a table is in use: %w", ctx.Err())
			case <-time.After(tableRest):
			}
		}
	})
	return applied, err
}

// How long to wait for a table that is in use, and how long to let those pass who wait behind us.
const (
	tableWait = time.Second
	tableRest = 2 * time.Second
)

// waitBriefly bounds how long a session waits for a table. It is no startup parameter, which a
// pooler would refuse, and is for sessions of our own only.
func waitBriefly(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", tableWait.Milliseconds()))
	return err
}

// configOf reads the URL as the daemon does: the parameters of its pool are none of the server's.
func configOf(url string) (*pgx.ConnConfig, error) {
	config, err := pgxpool.ParseConfig(url)
	if bad, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		bad.ConnString = "…" // the driver shows it, and does not recognise every password in it
	}
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	return config.ConnConfig, nil
}

func withProvider(ctx context.Context, url string, use func(*goose.Provider) error) (err error) {
	config, err := configOf(url)
	if err != nil {
		return err
	}
	config.RuntimeParams["timezone"] = "UTC" // goose keeps times without a zone
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(waitBriefly))
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := createSchema(ctx, db); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEvery, lockTries))
	if err != nil {
		return fmt.Errorf("make the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(table), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return use(provider)
}

// How often a process asks for the lock that another one holds, in seconds, and how many times.
const (
	lockEvery = 1
	lockTries = 300
)

const (
	undefinedTable   = "42P01"
	invalidSchema    = "3F000"
	uniqueViolation  = "23505"
	lockNotAvailable = "55P03"
)

// createSchema makes the schema that goose's own table lies in. IF NOT EXISTS does not shield two
// sessions that create it in the same moment: the loser of that race sees a unique violation.
func createSchema(ctx context.Context, db *sql.DB) error {
	var exists bool
	if err := db.QueryRowContext(ctx, "SELECT to_regnamespace('nudged') IS NOT NULL").Scan(&exists); err != nil {
		return fmt.Errorf("connect to the database: %w", oneLine{err})
	}
	if exists {
		return nil
	}
	_, err := db.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS nudged;
		COMMENT ON SCHEMA nudged IS 'Document requests and the reminders that nudged sends for them.'`)
	if err != nil && sqlState(err) != uniqueViolation {
		return fmt.Errorf("create the schema nudged: %w", err)
	}
	return nil
}

// oneLine is an error of the driver, which puts each address that it tried on a line of its own and
// tries an address twice, with TLS and without.
type oneLine struct{ error }

func (e oneLine) Error() string {
	first, rest, _ := strings.Cut(e.error.Error(), "\n")
	if rest == "" {
		return first
	}
	tries := strings.Split(strings.ReplaceAll(rest, "\t", ""), "\n")
	return first + " " + strings.Join(slices.Compact(tries), "; ")
}

func (e oneLine) Unwrap() error { return e.error }

func sqlState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}
