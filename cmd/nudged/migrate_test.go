package main_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"nudged/internal/pgtest"
	"nudged/internal/smtptest"
	"nudged/migrations"
)

// To ask for the migrations writes nothing, and needs no more than to read.
func TestMigrateStatusOnlyReads(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	migrated := s.url
	s.url = pgtest.Empty(t)
	empty, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close(context.Background())
	all, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	const nothing = " pending\nnothing has been applied: `nudged migrate` does it\n"
	for name, setting := range map[string]string{"empty": "off", "empty, read only": "on"} {
		if _, err := empty.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = `+setting+`', current_database()); END $$`); err != nil {
			t.Fatal(err)
		}
		if out, stderr, status := s.command("migrate", "--status"); status != 0 || !strings.HasSuffix(out, nothing) || strings.Count(out, "pending\n") != int(all) {
			t.Errorf("%s: status %d, %s%s", name, status, out, stderr)
		}
		var there bool
		if err := empty.QueryRow(t.Context(), `SELECT to_regnamespace('nudged') IS NOT NULL`).Scan(&there); err != nil || there {
			t.Fatalf("%s: the schema nudged is there: %t, %v", name, there, err)
		}
	}
	s.url = migrated
	role := "reader_" + strings.ToLower(rand.Text())
	s.exec(`CREATE ROLE ` + role + ` LOGIN; GRANT USAGE ON SCHEMA nudged TO ` + role + `; GRANT SELECT ON nudged.schema_migrations TO ` + role)
	defer s.exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role)
	s.url = strings.Replace(migrated, "//postgres@", "//"+role+"@", 1)
	if out, stderr, status := s.command("migrate", "--status"); status != 0 || strings.Count(out, "  applied 20") != int(all) || strings.Contains(out, "nothing") {
		t.Errorf("a role that may only read: status %d, %s%s", status, out, stderr)
	}
}

// A migration that waits for the application says so, and ends in one line when told to.
func TestMigrateTellsThatItWaits(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`DELETE FROM nudged.schema_migrations WHERE version_id >= 4;
		ALTER TABLE nudged.schedules DROP COLUMN account_id, DROP COLUMN planned_by, DROP COLUMN purged_until;
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
