package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"nudged/cadence"
	"nudged/internal/pgtest"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

// replan sweeps and says how many requests were touched.
func (f *fixture) replan(store *postgres.Store, fingerprint int32) int {
	f.t.Helper()
	n, err := store.Replan(f.t.Context(), fingerprint)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// passBy runs a pass of a replica with this fingerprint.
func (f *fixture) passBy(fingerprint int32) {
	f.t.Helper()
	_, err := f.store.RunPass(f.t.Context(), scheduler.Pass{
		Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan, PlannedBy: fingerprint,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestReplanTouchesWhatAnotherFingerprintComputed(t *testing.T) {
	t.Parallel()
	const many = 6000 // of each kind: more than a stretch
	f := newFixture(t)
	f.exec(`INSERT INTO nudged.schedules (request_id, wake_at, planned_by)
		SELECT kind || i, wake_at, planned_by FROM generate_series(1, $1::int) i, (VALUES
			('mine', now() + interval '1 day', 5), ('below', now() + interval '1 day', -3), ('above', now() + interval '1 day', 8),
			('without', now() - interval '1 day', NULL), ('over', NULL, 8), ('closed', NULL, NULL), ('fresh', '-infinity', 8)) AS v (kind, wake_at, planned_by)`, many)
	awake := func(kind string) int {
		return f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity' AND request_id LIKE $1`, kind+"%")
	}
	if n := f.replan(f.store, 5); n != 4*many {
		t.Errorf("%d are planned anew, want %d", n, 4*many)
	}
	for kind, want := range map[string]int{"mine": 0, "below": many, "above": many, "without": many, "over": many, "closed": 0, "fresh": many} {
		if n := awake(kind); n != want {
			t.Errorf("%s: %d of %d are awake, want %d", kind, n, many, want)
		}
	}
	if n := f.replan(f.store, 5); n != 0 {
		t.Errorf("%d are planned anew the second time", n)
	}
}

// In a rolling update, or when one is taken back, replicas with two configurations plan side by side.
// Whoever stays has everything planned by its own in the end.
func TestReplanAfterTwoConfigurations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(4)
	f.passBy(1)
	for _, step := range []struct {
		sweeps  int32
		touches int
		passes  int32
	}{
		{1, 0, 1}, {2, 4, 1}, // the older replica was quicker
		{2, 4, 2}, {2, 0, 2},
		{1, 4, 1}, // taken back
		{1, 0, 1},
	} {
		if n := f.replan(f.store, step.sweeps); n != step.touches {
			t.Errorf("%+v: touches %d", step, n)
		}
		f.passBy(step.passes)
	}
}

// Replicas that start together share the work, in transactions of many.
func TestReplansOfReplicasThatStartTogether(t *testing.T) {
	t.Parallel()
	const many = 20_000
	f := newFixture(t)
	f.exec(`INSERT INTO nudged.schedules (request_id, wake_at, planned_by)
		SELECT 'r-' || i, now() + interval '1 day', 1 FROM generate_series(1, $1::int) i`, many)
	before := f.count(`SELECT pg_current_xact_id()::text::int`)
	var replicas sync.WaitGroup
	for range 3 {
		store := openStore(t, f.url)
		replicas.Go(func() {
			if _, err := store.Replan(t.Context(), 2); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	f.replan(f.store, 2) // what one had locked while another looked
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`); n != many {
		t.Errorf("%d of %d requests are planned anew", n, many)
	}
	if n := f.count(`SELECT pg_current_xact_id()::text::int`) - before; n > 100 {
		t.Errorf("that took %d transactions", n)
	}
}

// Planning anew neither waits for a transaction of the application nor makes anybody wait.
func TestReplanMakesNobodyWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.passBy(1)
	app := f.begin(`UPDATE nudged.schedules SET problem = problem WHERE request_id = 'r-2'`)
	if n := f.replan(f.store, 2); n != 2 {
		t.Errorf("%d are planned anew beside the one that is locked, want 2", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), atOnce)
	defer cancel()
	if _, err := f.db.Exec(ctx, `SELECT nudged.touch('r-3')`); err != nil {
		t.Errorf("another transaction of the application: %v", err)
	}
	if err := app.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.replan(f.store, 2); n != 1 {
		t.Errorf("%d are planned anew once it is free, want 1", n)
	}
}

// An open request without a wake, by a cadence that is over or that the configuration lacks, may get one
// by another configuration. A closed one is left alone.
func TestReplanOfRequestsThatNeverWake(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.exec(`UPDATE nudged.requests SET cadence = 'lacking' WHERE id = 'r-1'`)
	f.exec(`UPDATE nudged.requests SET status = 'completed' WHERE id = 'r-3'`)
	over, err := cadence.Parse("default", cadence.Definition{After: []string{"2d"}})
	if err != nil {
		t.Fatal(err)
	}
	f.policy.Cadences["default"] = over
	f.policy.Limits.MaxLateness = time.Hour // the slot of r-2 is missed, and there is no other
	f.passBy(1)
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at IS NULL`); n != 3 {
		t.Fatalf("%d of 3 have no wake", n)
	}
	if n := f.replan(f.store, 1); n != 0 {
		t.Errorf("%d are planned anew by the same configuration", n)
	}
	if n := f.replan(f.store, 2); n != 2 {
		t.Errorf("%d are planned anew, want the two that are open", n)
	}
	f.passBy(2)
	if n := f.replan(f.store, 2); n != 0 {
		t.Errorf("%d are planned anew again", n)
	}
}

func TestReplanIsInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.passBy(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.store.Replan(ctx, 2); err == nil {
		t.Error("no error")
	}
	if n := f.replan(f.store, 2); n != 3 {
		t.Errorf("%d are planned anew afterwards, want 3", n)
	}
}

func TestNotePlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, with := range []string{"one", "one", "two"} {
		if err := f.store.NotePlan(t.Context(), with); err != nil {
			t.Fatal(err)
		}
		if got := f.value(`SELECT planned_with FROM nudged.installation`); got != with {
			t.Errorf("got %q, want %q", got, with)
		}
	}
	if err := openUnadopted(t, pgtest.New(t)).NotePlan(t.Context(), "early"); err != nil { // there is nothing to note it in yet
		t.Error(err)
	}
}

// C20 at the store: after a change of the cadence the next mail is the new cadence's.
func TestReplanMakesTheNewCadenceCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due1("r")
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.policy.Cadences["default"] = parse(t, "2d", "5d", "10d")
	if _, err := f.store.Replan(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if result := f.pass("a"); result.Fresh != 1 || len(result.Tasks) != 0 || len(result.Skipped) != 0 {
		t.Errorf("got %+v, want one look and nothing else", result)
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules, nudged.links WHERE wake_at = date_trunc('second', created_at) + interval '5 days'`); n != 1 {
		t.Error("the request does not wake for slot 5d")
	}
}
