package migrations_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nudged/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// patience bounds every statement of these tests.
const patience = 30 * time.Second

// database is a connection to one database of a test.
type database struct {
	*pgx.Conn
	t   testing.TB
	url string
}

// migrated connects to a fresh database that has every migration.
func migrated(t testing.TB) *database {
	t.Helper()
	return connect(t, pgtest.New(t))
}

func connect(t testing.TB, url string) *database {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &database{Conn: conn, t: t, url: url}
}

func (d *database) exec(sql string, args ...any) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := d.Exec(ctx, sql, args...); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// list returns the values of a query's only column.
func (d *database) list(sql string, args ...any) []string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := d.Query(ctx, sql, args...)
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return values
}

func (d *database) count(sql string, args ...any) int {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var n int
	if err := d.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return n
}
