package main

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/internal/config"
	"nudged/internal/pgtest"
	"nudged/internal/postgres"
)

// What another environment has adopted is not purged by this one's retention, but by the daemon it belongs to.
func TestPurgeLeavesWhatAnotherEnvironmentAdopted(t *testing.T) {
	url := pgtest.New(t)
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	d := &daemon{}
	d.cfg.Store(&config.Config{Retention: 24 * time.Hour})
	if d.store, err = postgres.Open(t.Context(), postgres.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.store.Close)
	if err := d.store.Adopt(t.Context(), "production"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, attempt, state, reason, finished_at)
		VALUES ('gone', '2020-01-01', '3d', '2020-01-04', 1, 'skipped', 'request_closed', '2020-01-04')`); err != nil {
		t.Fatal(err)
	}
	by := postgres.Act{Actor: "ann", Why: "a rehearsal"}
	if _, err := d.store.Readopt(t.Context(), "staging", false, by); err != nil {
		t.Fatal(err)
	}
	deleted, err := d.purge(t.Context())
	if _, refused := errors.AsType[*postgres.AdoptionError](err); !refused || deleted != 0 {
		t.Errorf("adopted away: %d rows purged, %v; want none and an *AdoptionError", deleted, err)
	}
	if _, err := d.store.Readopt(t.Context(), "production", false, by); err != nil {
		t.Fatal(err)
	}
	if deleted, err := d.purge(t.Context()); deleted != 1 || err != nil {
		t.Errorf("adopted back: %d rows purged, %v; want 1", deleted, err)
	}
}
