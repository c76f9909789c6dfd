package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nudged/migrations"
)

// A migration that has to wait for an open transaction of the application does not make everybody
// else wait for the end of that transaction with it.
func TestUpLetsTheApplicationWrite(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	db.exec(`DELETE FROM nudged.schema_migrations WHERE version_id >= 4;
		ALTER TABLE nudged.schedules DROP COLUMN account_id, DROP COLUMN planned_by;
		DROP TRIGGER nudged_update ON nudged.installation;
		DROP FUNCTION nudged.installation_updated();
		ALTER TABLE nudged.installation DROP COLUMN written_by;
		ALTER TABLE nudged.schedules DROP COLUMN purged_until;
		INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES
			('slow', 'a', 'pending', 'a@example.com', 'T'), ('quick', 'a', 'pending', 'b@example.com', 'T');
		INSERT INTO nudged.links (request_id, url) VALUES ('slow', 'https://example.com/1'), ('quick', 'https://example.com/2')`)
	slow, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close(context.Background())
	if _, err := slow.Exec(t.Context(), `BEGIN; UPDATE nudged.requests SET status = 'completed' WHERE id = 'slow'`); err != nil {
		t.Fatal(err)
	}
	ended, told := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := migrations.UpTelling(t.Context(), db.url, func() { close(told) })
		ended <- err
	}()
	waiting := func() bool {
		var n int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'nudged.schedules'::regclass`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	for deadline := time.Now().Add(10 * time.Second); !waiting(); {
		if time.Now().After(deadline) {
			t.Fatal("the migration does not wait for the table")
		}
	}
	const soon = 10 * time.Second // the lock is waited for a second at a time, on a busy machine
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := db.Exec(ctx, `UPDATE nudged.requests SET status = 'completed' WHERE id = 'quick'`); err != nil {
		t.Fatalf("the application cannot write while the migration waits: %v", err)
	}
	<-told
	select {
	case err := <-ended:
		t.Fatalf("the migration ended while the table was in use: %v", err)
	default:
	}
	if _, err := slow.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
