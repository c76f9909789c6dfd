package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"nudged/internal/pgtest"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

func TestBadURLDoesNotTellThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://nudged:hunter2@localhost:port/app", "host=localhost password = hunter2 port=x", "postgres://nudged@localhost:hunter2/app"} {
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: url}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}

func TestAdoptNotesTheFirstTime(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	store, db := openUnadopted(t, url), openPool(t, url)
	if err := store.Adopt(t.Context(), "staging"); err != nil {
		t.Fatal(err)
	}
	var first, second time.Time
	const read = `SELECT adopted_at FROM nudged.installation WHERE environment = 'staging' AND not_before IS NULL`
	if err := db.QueryRow(t.Context(), read).Scan(&first); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(first); age < -time.Minute || age > time.Minute {
		t.Errorf("adopted %s ago", age)
	}
	if err := store.Adopt(t.Context(), "staging"); err != nil {
		t.Errorf("the same daemon again: %v", err)
	}
	if err := db.QueryRow(t.Context(), read).Scan(&second); err != nil || !second.Equal(first) {
		t.Errorf("adopted at %s, %v, want still %s", second, err, first)
	}
}

func TestAdoptRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change, environment, says string
	}{
		"another environment": {`SELECT 1`, "staging", `belongs to the environment "test" and the configuration says "staging"`},
		"a restored copy":     {`UPDATE nudged.installation SET identity = 'another database'`, "test", `is a copy of the one adopted for "test"`},
		"an unknown origin":   {`UPDATE nudged.installation SET identity = NULL`, "test", `is a copy`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(tt.change)
			err := f.store.Adopt(t.Context(), tt.environment)
			adoption, ok := errors.AsType[*postgres.AdoptionError](err)
			if !ok || adoption.Have != "test" || adoption.Want != tt.environment {
				t.Fatalf("got %v, want an *AdoptionError", err)
			}
			if text := err.Error(); !strings.Contains(text, tt.says) || !strings.Contains(text, "nudged adopt") || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line that says %q and what to do", text, tt.says)
			}
			if adopted, err := f.store.Readopt(t.Context(), tt.environment, false, postgres.Act{Actor: "ann", Why: "moved"}); !adopted || err != nil {
				t.Fatalf("adopted: %t, %v", adopted, err)
			}
			if err := f.store.Adopt(t.Context(), tt.environment); err != nil {
				t.Errorf("after a person adopted it: %v", err)
			}
		})
	}
}

// A database that is in service already is adopted anew only by force: its due slots would be lost.
func TestReadoptLeavesWhatIsInService(t *testing.T) {
	t.Parallel()
	f, by := newFixture(t), postgres.Act{Actor: "ann", Why: "to be sure"}
	const untouched = `SELECT count(*) FROM nudged.installation WHERE not_before IS NULL`
	const noted = `SELECT count(*) FROM nudged.events WHERE action = 'adopt' AND actor = 'ann' AND detail = 'test' AND why = 'to be sure'`
	if adopted, err := f.store.Readopt(t.Context(), "test", false, by); adopted || err != nil || f.count(untouched) != 1 || f.count(noted) != 0 {
		t.Errorf("adopted: %t, %v; want nothing changed", adopted, err)
	}
	if adopted, err := f.store.Readopt(t.Context(), "test", true, by); !adopted || err != nil || f.count(untouched) != 0 || f.count(noted) != 1 {
		t.Errorf("by force, adopted: %t, %v", adopted, err)
	}
	f.exec(`TRUNCATE nudged.installation`)
	if adopted, err := f.store.Readopt(t.Context(), "test", false, by); !adopted || err != nil || f.count(noted) != 2 {
		t.Errorf("before the first daemon, adopted: %t, %v", adopted, err)
	}
}

// A copy that is put in place of the database under a running daemon stops it, and nothing is written.
func TestPassRefusesACopy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(2)
	f.pass("a")
	f.exec(`UPDATE nudged.reminders SET lease_until = now() - interval '1 second'`)
	f.exec(`UPDATE nudged.installation SET identity = 'another database'`)
	f.due1("new")
	_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
	if _, refused := errors.AsType[*postgres.AdoptionError](err); !refused {
		t.Fatalf("got %v, want an *AdoptionError", err)
	}
	if n := f.count(`SELECT count(*) FROM nudged.reminders WHERE state = 'claimed'`); n != 2 {
		t.Errorf("%d claims are as they were, want 2", n)
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`); n != 1 {
		t.Error("the new request was looked at")
	}
}

// Several daemons meet a database at the same moment: one environment wins, and each daemon of
// another one is told so.
func TestAdoptionIsARaceThatOneWins(t *testing.T) {
	t.Parallel()
	const racers = 4
	f := newFixture(t)
	stores := make([]*postgres.Store, racers)
	for i := range racers {
		stores[i] = openUnadopted(t, f.url)
	}
	for round := range 10 {
		f.exec(`TRUNCATE nudged.installation`)
		// A lock holds all of them up just before the decision.
		gate := f.begin(`LOCK TABLE nudged.installation IN ACCESS EXCLUSIVE MODE`)
		outcomes := make([]error, racers)
		var racing sync.WaitGroup
		for i, store := range stores {
			racing.Go(func() { outcomes[i] = store.Adopt(t.Context(), fmt.Sprint("environment-", i%2)) })
		}
		f.eventually("all wait at the gate", func() bool {
			return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == racers
		})
		if err := gate.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		racing.Wait()
		won := f.value(`SELECT environment FROM nudged.installation`)
		for i, err := range outcomes {
			adoption, refused := errors.AsType[*postgres.AdoptionError](err)
			switch mine := fmt.Sprint("environment-", i%2); {
			case mine == won && err != nil:
				t.Errorf("round %d: a daemon of the environment that won: %v", round, err)
			case mine != won && (!refused || adoption.Have != won || adoption.Want != mine):
				t.Errorf("round %d: a daemon of the other environment: got %v, want an *AdoptionError", round, err)
			}
		}
	}
}

func TestReplanTouchesOpenRequestsOnce(t *testing.T) {
	t.Parallel()
	const many = 12_000 // more than two stretches
	f := newFixture(t)
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT 'r-' || i, 'a', (ARRAY['pending', 'pending_resubmission', 'completed', 'archived'])[i % 4 + 1], 'x@example.com', 'T' FROM generate_series(1, $1::int) i`, many)
	sleep := func() {
		f.exec(`INSERT INTO nudged.schedules (request_id, wake_at) SELECT id, CASE WHEN id LIKE '%7' THEN NULL ELSE '2999-01-01'::timestamptz END FROM nudged.requests
			ON CONFLICT (request_id) DO UPDATE SET wake_at = excluded.wake_at`)
		f.exec(`INSERT INTO nudged.schedules (request_id, wake_at) VALUES ('gone', NULL) ON CONFLICT (request_id) DO UPDATE SET wake_at = NULL`)
	}
	sleep()
	awake := func() int { return f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`) }
	steps := []struct {
		fingerprint string
		changed     bool
		awake       int
	}{{"one", true, many / 2}, {"one", false, 0}, {"two", true, many / 2}, {"one", true, many / 2}}
	for i, step := range steps {
		sleep()
		changed, err := f.store.Replan(t.Context(), step.fingerprint)
		if err != nil || changed != step.changed || awake() != step.awake {
			t.Errorf("step %d: got %t, %v, %d touched; want %t, %d", i, changed, err, awake(), step.changed, step.awake)
		}
		if got := f.value(`SELECT planned_with FROM nudged.installation`); got != step.fingerprint {
			t.Errorf("step %d: planned with %q is noted, want %q", i, got, step.fingerprint)
		}
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules s LEFT JOIN nudged.requests r ON r.id = s.request_id
		WHERE s.wake_at = '-infinity' AND coalesce(r.status, '') NOT IN ('pending', 'pending_resubmission')`); n != 0 {
		t.Errorf("%d requests that are not open were touched", n)
	}
}

// What interrupts a replan makes it begin anew: the fingerprint is noted last.
func TestReplanThatIsInterruptedBeginsAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.pass("a")
	f.begin(`SELECT nudged.touch('r-2')`) // it waits for this
	ctx, cancel := context.WithCancel(t.Context())
	var changed bool
	var err error
	var replanning sync.WaitGroup
	replanning.Go(func() { changed, err = f.store.Replan(ctx, "new") })
	f.eventually("the replan waits", func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	cancel()
	replanning.Wait()
	if changed || !errors.Is(err, context.Canceled) {
		t.Errorf("got %t, %v, want that it was cancelled", changed, err)
	}
	if n := f.count(`SELECT count(*) FROM nudged.installation WHERE planned_with IS NULL`); n != 1 {
		t.Error("the fingerprint is noted all the same")
	}
}

func TestReplanBeforeAdoption(t *testing.T) {
	t.Parallel()
	store := openUnadopted(t, pgtest.New(t))
	if changed, err := store.Replan(t.Context(), "new"); changed || err == nil {
		t.Errorf("got %t, %v, want an error", changed, err)
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
	if _, err := f.store.Replan(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	if result := f.pass("a"); result.Fresh != 1 || len(result.Tasks) != 0 || len(result.Skipped) != 0 {
		t.Errorf("got %+v, want one look and nothing else", result)
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules, nudged.links WHERE wake_at = date_trunc('second', created_at) + interval '5 days'`); n != 1 {
		t.Error("the request does not wake for slot 5d")
	}
}
