package migrations_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"nudged/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

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
	if _, err := d.Exec(context.Background(), sql, args...); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// list returns the values of a query's only column.
func (d *database) list(sql string, args ...any) []string {
	d.t.Helper()
	rows, err := d.Query(context.Background(), sql, args...)
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
	var n int
	if err := d.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return n
}
