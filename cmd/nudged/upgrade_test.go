package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
	"nudged/migrations"
)

// A rolling upgrade with a migration in between: the older replica goes on working on the newer
// schema, which says that it may, while the newer one joins in. Nothing is sent twice.
func TestRollingUpgrade(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.rate = 100
	s.configure("")
	known, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%05d_priority.sql", known+1)
	newer := buildWithMigration(t, name, `-- +goose Up
ALTER TABLE nudged.requests ADD COLUMN priority integer;
`+readers(known+1, known)+`;
`)
	s.due(300)
	older := s.start().ready()
	s.wait("50 messages", func() bool { return len(s.smtp.Accepted()) >= 50 })

	s.binary = newer
	s.want(name, "migrate")
	s.start().ready()
	s.wait("requests to be planned anew", func() bool {
		var with string
		err := s.db.QueryRow(t.Context(), `SELECT coalesce(planned_with, '') FROM nudged.installation`).Scan(&with)
		return err == nil && strings.HasSuffix(with, fmt.Sprintf("schema %d", known+1))
	})
	s.wait("150 messages", func() bool { return len(s.smtp.Accepted()) >= 150 })
	older.ready() // on the newer schema
	older.stop()
	s.waitRows("sent/", 300)
	if n := s.acceptedOnce(); n != 300 || len(s.smtp.Accepted()) != 300 {
		t.Errorf("the server accepted %d messages, want 300", len(s.smtp.Accepted()))
	}

	// A schema that has left the older build behind is refused by it.
	s.exec(readers(known+1, known+1))
	s.binary = os.Getenv("NUDGED_TEST_BINARY")
	s.refuseRun(fmt.Sprintf("newer than the %d this nudged knows", known))
}

// A rolling update of the configuration: the older replica goes on planning by the cadence from before
// while the newer one is there already. In the end everything is planned by the new one.
func TestRollingUpdateOfTheConfiguration(t *testing.T) {
	const many = 200
	s := newSite(t, smtptest.Config{})
	s.configure(`cadences: {default: {after: [30d]}}`)
	s.due(many)
	older := s.start().ready()
	s.waitPlanned()
	s.configure(`cadences: {default: {after: [3d, 30d]}}`)
	newer := s.start().ready()
	s.wait("the newer replica to plan", func() bool {
		return strings.Contains(newer.log.String(), "requests that were planned with another configuration are planned anew")
	})
	older.stop()
	s.waitRows("sent/", many)
	if n := s.acceptedOnce(); n != many {
		t.Errorf("the server accepted %d messages, want %d", n, many)
	}
}

// A rollout that is taken back: the older replica was there all the time, and what the newer one has
// planned by its cadence is planned anew by the older.
func TestRolloutThatIsTakenBack(t *testing.T) {
	const many = 100
	s := newSite(t, smtptest.Config{})
	s.configure(`cadences: {default: {after: [4d, 30d]}}`)
	s.due(many)
	s.start().ready()
	s.waitPlanned()
	s.configure(`cadences: {default: {after: [30d]}}`)
	newer := s.start().ready()
	s.wait("the newer replica to plan", func() bool {
		return strings.Contains(newer.log.String(), "requests that were planned with another configuration are planned anew")
	})
	newer.kill()
	s.exec(`UPDATE nudged.schedules SET wake_at = now() + interval '26 days', planned_by = planned_by + 1`) // all of them, to be sure
	s.wait("every request to be planned by the older one", func() bool {
		var n int
		if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.schedules WHERE wake_at < now() + interval '2 days' AND wake_at > now()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == many
	})
}

// readers is how a schema says which builds may work on it.
func readers(version, oldest int64) string {
	return fmt.Sprintf(`CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
		LANGUAGE sql IMMUTABLE AS 'SELECT %d::bigint, %d::bigint'`, version, oldest)
}

// buildWithMigration builds the next release: this one and one more migration.
func buildWithMigration(t *testing.T, name, sql string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("../../migrations")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(folder, name): file}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "nudged")
	if out, err := exec.Command("go", "build", "-overlay", overlayFile, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "version").CombinedOutput(); err != nil || !strings.Contains(string(out), "nudged") {
		t.Fatalf("version: %v\n%s", err, out)
	}
	return binary
}
