package postgres_test

import (
	"context"
	"testing"

	"nudged/internal/pgtest"
	"nudged/migrations"
	"nudged/scheduler"
)

// TestAsynchronousCommits: an application's database may trade its last commits for speed. What was handed
// off is in the ledger all the same when the server dies at once.
func TestAsynchronousCommits(t *testing.T) {
	server := pgtest.OwnServer(t)
	url := server.ConnString("postgres")
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	admin := openPool(t, url)
	for _, sql := range []string{`ALTER DATABASE postgres SET synchronous_commit = off`, `ALTER SYSTEM SET wal_writer_delay = '10s'`, `SELECT pg_reload_conf()`} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	f := fixtureAt(t, url)
	f.due(2)
	f.exec(`CHECKPOINT`)
	lost, kept := f.pass("a").Tasks[0], f.pass("a").Tasks
	if len(kept) != 0 {
		t.Fatalf("claimed %d again", len(kept))
	}
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(lost)}})
	f.exec(`UPDATE nudged.requests SET title = 'in doubt'`) // of the application: may be lost
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	f = fixtureAt(t, url)
	f.wantRow(lost.Request.ID, "3d", "sending/")
	if again := f.pass("b").Tasks; len(again) != 0 {
		t.Errorf("claimed %d again after the crash", len(again))
	}
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(lost, sent)}})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	fixtureAt(t, url).wantRow(lost.Request.ID, "3d", "sent/")
}
