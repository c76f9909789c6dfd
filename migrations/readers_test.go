package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"nudged/internal/pgtest"
	"nudged/migrations"
)

// Each migration says for itself how old a build may be that works on the schema.
func TestSchemaSaysWhoMayReadIt(t *testing.T) {
	db, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	var version, oldest int64
	if err := db.QueryRow(t.Context(), `SELECT version, oldest_reader FROM nudged.schema_readers()`).Scan(&version, &oldest); err != nil {
		t.Fatal(err)
	}
	if version != latest || oldest > latest || oldest < 1 {
		t.Errorf("schema_readers says %d and %d; the newest migration is %d", version, oldest, latest)
	}
}
