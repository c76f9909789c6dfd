package postgres_test

import (
	"crypto/rand"
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
	for _, url := range []string{
		"postgres://nudged:hunter2@localhost:port/app", "host=localhost password = hunter2 port=x", "postgres://nudged@localhost:hunter2/app",
		"host=localhost password=two hunter2 port=1", "postgres://nudged:%zzhunter2@localhost/app", "postgres://localhost/app?target_session_attrs=a:hunter2@db/app",
	} {
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
		"another environment": {`SELECT 1`, "staging", `is adopted for the environment "test" and the configuration says "staging"`},
		"a restored copy":     {`UPDATE nudged.installation SET identity = 'another database'`, "test", `is a copy of the one adopted for "test"`},
		"an unknown origin":   {`UPDATE nudged.installation SET identity = NULL`, "test", `is a copy`},
		"a copy for staging":  {`UPDATE nudged.installation SET identity = '1'`, "staging", `is a copy of the one adopted for "test", and the configuration says "staging"`},
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

// A dump that is restored in place leaves the database what it was, and the ledger what it was once. Who wrote
// the rows tells: a person adopts them, and until then nothing else makes them look sound.
func TestDumpRestoredInPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pass := func() error {
		_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
		return err
	}
	note := func() {
		if err := f.store.NotePlan(t.Context(), rand.Text()); err != nil {
			t.Fatal(err)
		}
	}
	note() // as the daemon does from time to time
	f.exec(`VACUUM FULL nudged.installation`)
	f.exec(`VACUUM FREEZE nudged.installation`)
	if err := errors.Join(f.store.Adopt(t.Context(), "test"), pass()); err != nil {
		t.Fatalf("before any restore: %v", err)
	}
	f.exec(`CREATE TABLE dumped AS TABLE nudged.installation`)
	f.exec(`TRUNCATE nudged.installation`)
	f.exec(`INSERT INTO nudged.installation TABLE dumped`)
	for range 2 {
		for name, err := range map[string]error{"a new daemon": f.store.Adopt(t.Context(), "test"), "a running one": pass()} {
			if _, refused := errors.AsType[*postgres.AdoptionError](err); !refused {
				t.Errorf("%s: got %v, want an *AdoptionError", name, err)
			}
		}
		note()
	}
	if adopted, err := f.store.Readopt(t.Context(), "test", false, postgres.Act{Actor: "ann", Why: "restored"}); !adopted || err != nil {
		t.Errorf("adopted: %t, %v", adopted, err)
	}
	note()
	if err := errors.Join(f.store.Adopt(t.Context(), "test"), pass()); err != nil {
		t.Errorf("after a person adopted it: %v", err)
	}
	f.exec(`UPDATE nudged.installation SET written_by = NULL`) // by the trigger it is not
	if n := f.count(`SELECT count(*) FROM nudged.installation WHERE written_by = xmin`); n != 1 {
		t.Error("the row is not marked by who wrote it")
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

// A pass tells what has become of the database under a running daemon, each in its own words, and so do the
// store and the installation when asked.
func TestPassTellsWhoseDatabaseItIs(t *testing.T) {
	t.Parallel()
	const wrong = "the database url or the environment of the configuration is wrong"
	tests := map[string]struct {
		change, says string
		want         postgres.AdoptionError
	}{
		"adopted for another environment": {`UPDATE nudged.installation SET environment = 'staging'`, wrong, postgres.AdoptionError{Have: "staging", Want: "test"}},
		"a copy":                          {`UPDATE nudged.installation SET identity = '1'`, "its ledger may lack mails", postgres.AdoptionError{Have: "test", Want: "test", Copy: true}},
		"a copy of another environment":   {`UPDATE nudged.installation SET environment = 'staging', identity = '1'`, `is a copy of the one adopted for "staging"`, postgres.AdoptionError{Have: "staging", Want: "test", Copy: true}},
		"forgotten":                       {`TRUNCATE nudged.installation`, "for no environment any more", postgres.AdoptionError{Want: "test", Copy: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.pass("a")
			if err := f.store.Refusal(); err != nil {
				t.Errorf("before: %v", err)
			}
			f.exec(tt.change)
			_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
			if got, ok := errors.AsType[*postgres.AdoptionError](err); !ok || *got != tt.want {
				t.Fatalf("got %#v, want %#v", err, tt.want)
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "copy") != (tt.want.Copy && tt.want.Have != "") {
				t.Errorf("it says %q, want %q", err, tt.says)
			}
			if refusal := f.store.Refusal(); refusal == nil || !strings.HasSuffix(err.Error(), refusal.Error()) {
				t.Errorf("the store says %v, want %v", refusal, err)
			}
			installed, err := f.store.Installation(t.Context())
			if got := installed.Refusal("test"); err != nil || (got == nil) != (tt.want.Have == "") || got != nil && got.Error() != f.store.Refusal().Error() {
				t.Errorf("the installation says %v (%v), want %v", got, err, f.store.Refusal())
			}
			if _, err := f.store.Readopt(t.Context(), "test", false, postgres.Act{Actor: "ann", Why: "back"}); err != nil {
				t.Fatal(err)
			}
			if f.pass("a"); f.store.Refusal() != nil {
				t.Errorf("after a person adopted it: %v", f.store.Refusal())
			}
		})
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
