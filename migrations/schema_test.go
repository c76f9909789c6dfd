package migrations_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/pgtest"
	"nudged/migrations"
)

var update = flag.Bool("update", false, "write testdata/schema.sql anew")

// The whole schema is in one file, so that a review sees what a migration changes.
func TestSchemaIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	const golden = "testdata/schema.sql"
	url := pgtest.Empty(t)
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	got := dump(t, connect(t, url))
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the schema differs from %s; if it is meant to, run go test ./migrations -update (-want +got):\n%s", golden, diff)
	}
}

// What a dump says about the programs that made it and the session that will read it are whole
// lines, such as no object of ours has.
var (
	noise = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n`)
	gaps  = regexp.MustCompile(`\n{3,}`)
)

// dump returns the schema as SQL that does not depend on the version of the server.
func dump(t *testing.T, db *database) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), pgDump(t, db), "--schema-only", "--schema=nudged", "--no-owner", "--no-privileges", "--dbname="+db.url)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, stderr.Bytes())
	}
	lines := gaps.ReplaceAllString(noise.ReplaceAllString(string(out), ""), "\n\n")
	return []byte(strings.TrimSpace(lines) + "\n")
}

// pgDump finds the pg_dump of the server's own version, or else any: an older one than the server
// refuses to work.
func pgDump(t *testing.T, db *database) string {
	t.Helper()
	for _, dir := range db.list(`SELECT setting FROM pg_config WHERE name = 'BINDIR'`) {
		if path, err := exec.LookPath(filepath.Join(dir, "pg_dump")); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("pg_dump")
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("no pg_dump found: install it (Debian: apt-get install postgresql-client; macOS: brew install postgresql)")
	}
	return path
}

func TestEverythingHasAComment(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	tests := map[string]struct {
		sql   string
		least int // so many there are at least: a query that finds nothing proves nothing
	}{
		"schema": {`SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'nudged'`, 1},
		"tables": {`SELECT relname, obj_description(oid, 'pg_class') FROM pg_class
			WHERE relnamespace = 'nudged'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')`, 9},
		"columns": {`SELECT c.relname || '.' || a.attname, col_description(c.oid, a.attnum) FROM pg_class c
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			WHERE c.relnamespace = 'nudged'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`, 60},
		"functions": {`SELECT proname, obj_description(oid, 'pg_proc') FROM pg_proc WHERE pronamespace = 'nudged'::regnamespace`, 7},
	}
	for name, tt := range tests {
		if n := db.count(`SELECT count(*) FROM (` + tt.sql + `) AS x`); n < tt.least {
			t.Errorf("%s: found %d, want at least %d", name, n, tt.least)
		}
		for _, bare := range db.list(`SELECT name FROM (` + tt.sql + `) AS x (name, comment) WHERE coalesce(comment, '') = '' ORDER BY name`) {
			t.Errorf("%s: %s has no comment", name, bare)
		}
	}
}

// The application's tables can be replaced by views: nothing may hang on them.
func TestNoForeignKeys(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	for _, name := range db.list(`SELECT conrelid::regclass || ' ' || conname FROM pg_constraint
		WHERE contype = 'f' AND 'nudged'::regnamespace IN (connamespace,
			(SELECT relnamespace FROM pg_class WHERE pg_class.oid = confrelid))`) {
		t.Errorf("there is a foreign key: %s", name)
	}
	db.exec(`DROP TABLE nudged.requests, nudged.links, nudged.documents RESTRICT`)
}

// Every instant has a zone, but for goose's own.
func TestEveryInstantHasAZone(t *testing.T) {
	t.Parallel()
	for _, column := range migrated(t).list(`SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'nudged' AND data_type IN ('timestamp without time zone', 'time without time zone')
		AND table_name <> 'schema_migrations'`) {
		t.Errorf("%s has no time zone", column)
	}
}
