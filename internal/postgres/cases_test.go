package postgres_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"nudged/scheduler"
)

// D10: a serialization failure on the outcome undoes nothing that was sent. The same commit is tried
// again until it succeeds.
func TestOutcomeSurvivesSerializationFailures(t *testing.T) {
	t.Parallel()
	const failures = 3
	f := newFixture(t)
	f.due(2)
	tasks := f.pass("a").Tasks
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
	f.exec(fmt.Sprintf(`
		CREATE SEQUENCE public.tries; -- what it counts is not rolled back
		CREATE FUNCTION public.fail_first() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.state = 'sent' AND nextval('public.tries') <= %d THEN
				RAISE EXCEPTION 'could not serialize access' USING ERRCODE = 'serialization_failure';
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail_first BEFORE UPDATE ON nudged.reminders FOR EACH ROW EXECUTE FUNCTION public.fail_first()`, failures))
	batch := scheduler.Batch{
		Lease:       time.Minute,
		Settlements: []scheduler.Settlement{settlement(tasks[0], sent)},
		HandOffs:    []scheduler.HandOff{handOff(tasks[1])},
	}
	for range failures {
		results, err := f.store.Settle(t.Context(), batch)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "40001" || results != nil {
			t.Fatalf("got %v, %v, want SQLSTATE 40001 and no verdict", results, err)
		}
		// All or nothing: the hand-off of the same commit did not happen either.
		f.wantRow(tasks[0].Request.ID, "3d", "sending/")
		f.wantRow(tasks[1].Request.ID, "3d", "claimed/")
	}
	if results, err := f.store.Settle(t.Context(), batch); err != nil || len(results) != 1 || results[0].Reason != "" {
		t.Fatalf("got %v, %v, want the hand-off to go ahead", results, err)
	}
	f.wantRow(tasks[1].Request.ID, "3d", "sending/")
	const right = `SELECT count(*) FROM nudged.reminders WHERE request_id = $1 AND state = 'sent' AND attempt = 1 AND smtp_code = 250
		AND smtp_reply = '2.0.0 queued' AND recipient IS NOT NULL AND message_id IS NOT NULL AND lease_until IS NULL AND finished_at >= handed_off_at`
	if n := f.count(right, tasks[0].Request.ID); n != 1 {
		t.Error("the row does not say what became of the mail")
	}
}

// The other half of a commit: an outcome is not recorded where the hand-off beside it fails.
func TestOutcomeAndHandOffAreOneCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(2)
	tasks := f.pass("a").Tasks
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
	f.exec(`ALTER TABLE nudged.suppressions RENAME TO gone`) // which the hand-off alone reads
	batch := scheduler.Batch{Lease: time.Minute, Settlements: []scheduler.Settlement{settlement(tasks[0], sent)}, HandOffs: []scheduler.HandOff{handOff(tasks[1])}}
	if _, err := f.store.Settle(t.Context(), batch); err == nil {
		t.Error("no error")
	}
	f.wantRow(tasks[0].Request.ID, "3d", "sending/")
	f.wantRow(tasks[1].Request.ID, "3d", "claimed/")
}

// D16: what is due is decided by the database's clock: nothing goes before its instant by it.
func TestNothingIsClaimedBeforeItsInstant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due1("r")
	// The next whole second but half a second away at least; a due instant has no fraction.
	f.exec(`UPDATE nudged.links SET created_at = date_trunc('second', now() + interval '1.5 seconds') - interval '3 days'`)
	var due time.Time
	if err := f.db.QueryRow(t.Context(), `SELECT created_at + interval '3 days' FROM nudged.links`).Scan(&due); err != nil {
		t.Fatal(err)
	}
	first := f.pass("a")
	if len(first.Tasks) != 0 || !first.Now.Before(due) {
		t.Fatalf("at %s: %d claims of what is due at %s", first.Now, len(first.Tasks), due)
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = $1`, due); n != 1 {
		t.Error("the request does not wake at the very instant")
	}
	other := openStore(t, f.url)
	f.eventually("the slot falls due", func() bool {
		for _, store := range []scheduler.PassResult{f.pass("a"), f.passOf(other, "b")} {
			if len(store.Tasks) == 0 {
				continue
			}
			if store.Now.Before(due) {
				t.Errorf("claimed at %s what is due at %s", store.Now, due)
			}
			return true
		}
		return false
	})
	if n := f.count(`SELECT count(*) FROM nudged.reminders WHERE state = 'claimed' AND created_at >= due_at AND due_at = $1`, due); n != 1 {
		t.Error("there is not the one claim of the slot")
	}
}

// Infinite instants mean what they say, and none of them stops a pass.
func TestInfiniteInstants(t *testing.T) {
	t.Parallel()
	const nothing = "no rows in result set"
	tests := []struct{ change, row string }{
		{`UPDATE nudged.requests SET paused_until = 'infinity'`, "skipped/paused"},
		{`UPDATE nudged.requests SET paused_until = '20000-01-01T00:00:00Z'`, "skipped/paused"},
		{`UPDATE nudged.requests SET paused_until = '-infinity'`, "sending/"},
		{`UPDATE nudged.requests SET opted_out_at = '-infinity'`, "skipped/opted_out"},
		{`UPDATE nudged.requests SET opted_out_at = 'infinity'`, "skipped/opted_out"},
		{`UPDATE nudged.requests SET deadline = 'infinity'`, "sending/"},
		{`UPDATE nudged.requests SET deadline = '-infinity'`, "sending/"},
		{`UPDATE nudged.links SET expires_at = 'infinity'`, "sending/"},
		{`UPDATE nudged.links SET expires_at = '20000-01-01T00:00:00Z'`, "sending/"},
		{`UPDATE nudged.links SET expires_at = '-infinity'`, "skipped/link_expired"},
		{`UPDATE nudged.links SET revoked_at = '-infinity'`, "skipped/link_revoked"},
		{`UPDATE nudged.links SET revoked_at = 'infinity'`, "skipped/link_revoked"},
		{`UPDATE nudged.links SET created_at = 'infinity'`, nothing},
	}
	f := newFixture(t)
	for i, tt := range tests {
		id := fmt.Sprint("r-", i)
		f.due1(id)
		key := ` WHERE id = $1`
		if strings.Contains(tt.change, "nudged.links") {
			key = ` WHERE request_id = $1`
		}
		f.exec(tt.change+key, id)
		if _, _, err := f.store.Load(t.Context(), id); err != nil {
			t.Errorf("%s: %v", tt.change, err)
		}
	}
	// The hand-off reads the instants in SQL, and has to agree with the plan.
	var batch scheduler.Batch
	for _, task := range f.pass("a").Tasks {
		batch.HandOffs = append(batch.HandOffs, handOff(task))
	}
	f.settle(batch)
	for i, tt := range tests {
		if got := f.row(fmt.Sprint("r-", i), "3d"); got != tt.row {
			t.Errorf("%s: got %s, want %s", tt.change, got, tt.row)
		}
	}
}

// B04: where an instant of the application has no zone, nothing guesses one. The mistake is told with
// the name of the column, and AT TIME ZONE in the view puts it right, in whatever zone the session is.
func TestInstantWithoutZoneIsRefused(t *testing.T) {
	t.Parallel()
	columns := map[string]string{
		"paused_until": "requests", "opted_out_at": "requests",
		"created_at": "links", "expires_at": "links", "revoked_at": "links",
	}
	for column, table := range columns {
		t.Run(table+"."+column, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due1("r")
			view := func(expression string) {
				list := f.value(`SELECT string_agg(CASE attname WHEN '` + column + `' THEN '` + expression + ` AS ' || attname ELSE attname::text END, ', ')
					FROM pg_attribute WHERE attrelid = 'public.` + table + `'::regclass AND attnum > 0`)
				f.exec(`DROP VIEW IF EXISTS nudged.` + table)
				f.exec(`CREATE VIEW nudged.` + table + ` AS SELECT ` + list + ` FROM public.` + table)
			}
			f.exec(`ALTER TABLE nudged.` + table + ` SET SCHEMA public`)
			f.exec(`ALTER TABLE public.` + table + ` ALTER COLUMN ` + column + ` TYPE timestamp USING ` + column + ` AT TIME ZONE 'UTC'`)
			view(column)
			_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
			if err == nil {
				t.Fatal("the instant is taken for one of some zone")
			}
			if text := err.Error(); strings.ContainsAny(text, "\n") || !strings.Contains(text, "nudged."+table+"."+column) || !strings.Contains(text, "without time zone") {
				t.Errorf("got %q, want it to name nudged.%s.%s", text, table, column)
			}
			view(column + ` AT TIME ZONE ''UTC''`)
			// A daemon that runs has the statement prepared for the old type: each connection fails once.
			var tasks []scheduler.Task
			for range 6 {
				result, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
				if tasks = result.Tasks; err == nil {
					break
				}
			}
			if len(tasks) != 1 {
				t.Errorf("got %d tasks with the zone in the view, want 1", len(tasks))
			}
		})
	}
}

// A request that has had thousands of reminders is planned about as quickly as any other.
func TestLongLedger(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due1("r")
	f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, recipient, message_id, handed_off_at, finished_at, attempt)
		SELECT 'r', now() - interval '20 years', i || 'h', now() - interval '20 years' + i * interval '1 hour', 'sent', 'r@example.com', i || '@example.com',
		       now() - interval '10 years', now() - interval '10 years', 1
		FROM generate_series(1, 2000) i`)
	begun := time.Now()
	result := f.pass("a")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the pass took %s", took)
	}
	if len(result.Tasks) != 1 || result.Tasks[0].Slot.Name != "3d" {
		t.Errorf("got %+v, want slot 3d of the present link", result.Tasks)
	}
}

// What requests with thousands of reminders take in memory does not grow with their number.
func TestManyLongLedgers(t *testing.T) {
	f := newFixture(t)
	const requests, rows, most = 100, 2000, 40 << 20 // bytes; all rows at once take more than a hundred
	f.due(requests)
	f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, recipient, message_id, handed_off_at, finished_at, attempt)
		SELECT 'r-' || r, now() - interval '20 years', i || 'h', now() - interval '20 years' + i * interval '1 hour', 'sent', 'r@example.com', i || '@example.com',
		       now() - interval '10 years', now() - interval '10 years', 1
		FROM generate_series(1, $1::int) r, generate_series(1, $2::int) i`, requests, rows)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, seen := heap(), 0
	result, err := f.store.RunPass(t.Context(), scheduler.Pass{
		Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: func(in scheduler.Input) scheduler.Decision {
			if seen++; seen%10 == 5 {
				if held := heap() - before; held > most {
					t.Errorf("at request %d the pass holds %d MB", seen, held>>20)
				}
			}
			return f.policy.Plan(in)
		},
	})
	if err != nil || len(result.Tasks) != requests {
		t.Errorf("got %d tasks, %v; want %d", len(result.Tasks), err, requests)
	}
}
