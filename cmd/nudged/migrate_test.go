package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A migration that waits for the application says so, and ends in one line when told to.
func TestMigrateTellsThatItWaits(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`DELETE FROM nudged.schema_migrations WHERE version_id >= 4;
		ALTER TABLE nudged.schedules DROP COLUMN account_id, DROP COLUMN planned_by;
		DROP TRIGGER nudged_update ON nudged.installation;
		DROP FUNCTION nudged.installation_updated();
		ALTER TABLE nudged.installation DROP COLUMN written_by`)
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE nudged.schedules IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	var stderr lockedBuffer
	migrate := exec.Command(s.binary, "migrate")
	migrate.Env, migrate.Stderr = s.env(), &stderr
	if err := migrate.Start(); err != nil {
		t.Fatal(err)
	}
	const waits = "nudged: waiting for a table that another transaction has in use (pg_stat_activity shows the old ones); interrupt to give up\n"
	s.wait("the migration to say that it waits", func() bool { return stderr.String() == waits })
	if err := migrate.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = migrate.Wait()
	if code := migrate.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
	if got := strings.TrimPrefix(stderr.String(), waits); got != "nudged: interrupted\n" {
		t.Errorf("it ended with %q", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("00006_", "migrate")
}
