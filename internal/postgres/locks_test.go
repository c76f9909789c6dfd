package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nudged/internal/postgres"
	"nudged/scheduler"
)

// atOnce bounds what must not wait for anybody: a wait for a lock would last until it ends.
const atOnce = 10 * time.Second

// begin opens a transaction of the application, which lasts until the test ends.
func (f *fixture) begin(statements ...string) pgx.Tx {
	f.t.Helper()
	tx, err := f.db.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	for _, sql := range statements {
		if _, err := tx.Exec(f.t.Context(), sql); err != nil {
			f.t.Fatalf("%s: %v", sql, err)
		}
	}
	return tx
}

// An open transaction of the application holds up no pass, no hand-off, no outcome and no renewal.
func TestApplicationHoldsNothingUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		locks   []string
		claimed []string // what the next pass can claim of a fresh r-3 and r-4 all the same
	}{
		"rows are locked": {[]string{`SELECT 1 FROM nudged.requests FOR UPDATE`, `SELECT 1 FROM nudged.links FOR UPDATE`,
			`SELECT 1 FROM nudged.documents FOR UPDATE`}, []string{"r-3", "r-4"}},
		"tables are locked": {[]string{`LOCK TABLE nudged.requests, nudged.links, nudged.documents IN EXCLUSIVE MODE`},
			[]string{"r-3", "r-4"}},
		"requests are changed": {[]string{`UPDATE nudged.requests SET status = 'completed' WHERE id IN ('r-1', 'r-2', 'r-3')`}, []string{"r-4"}},
		"links are changed":    {[]string{`UPDATE nudged.links SET revoked_at = now() WHERE request_id IN ('r-1', 'r-2', 'r-3')`}, []string{"r-4"}},
		"requests are deleted": {[]string{`DELETE FROM nudged.requests WHERE id IN ('r-1', 'r-2', 'r-3')`}, []string{"r-4"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due(4)
			f.exec(`UPDATE nudged.schedules SET wake_at = NULL WHERE request_id IN ('r-3', 'r-4')`)
			tasks := f.pass("a").Tasks
			if len(tasks) != 2 {
				t.Fatalf("got %d tasks, want r-1 and r-2", len(tasks))
			}
			// An address is corrected before the application's long transaction begins.
			f.exec(`UPDATE nudged.requests SET recipient_email = 'right@example.com' WHERE id = 'r-2'`)
			f.exec(`UPDATE nudged.schedules SET wake_at = CASE WHEN request_id > 'r-2' THEN '-infinity' ELSE '2999-01-01'::timestamptz END`)
			f.begin(tt.locks...)

			ctx, cancel := context.WithTimeout(t.Context(), atOnce)
			defer cancel()
			batch := scheduler.Batch{Lease: time.Minute, HandOffs: []scheduler.HandOff{handOff(tasks[0]), handOff(tasks[1])}}
			if results, err := f.store.Settle(ctx, batch); err != nil || len(results) != 2 {
				t.Errorf("hand-off: got %v, %v", results, err)
			}
			if _, err := f.store.Renew(ctx, []scheduler.ClaimID{tasks[0].ClaimID}, time.Minute); err != nil {
				t.Errorf("renewal: %v", err)
			}
			deferred := scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451}
			batch = scheduler.Batch{Lease: time.Minute, Settlements: []scheduler.Settlement{settlement(tasks[0], deferred)}}
			if _, err := f.store.Settle(ctx, batch); err != nil {
				t.Errorf("outcome: %v", err)
			}
			result, err := f.store.RunPass(ctx, scheduler.Pass{Worker: "b", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
			if err != nil {
				t.Errorf("pass: %v", err)
			}
			var claimed []string
			for _, task := range result.Tasks {
				if task.Request.ID > "r-2" {
					claimed = append(claimed, task.Request.ID)
				}
			}
			slices.Sort(claimed)
			if !slices.Equal(claimed, tt.claimed) {
				t.Errorf("claimed %v, want %v", claimed, tt.claimed)
			}
		})
	}
}

// While a pass is under way the application may do anything to its own rows, but for what sets the
// wake of a request that the pass looks at.
func TestPassHoldsNoLockOfTheApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(2)
	f.exec(`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport')`)
	looked := false
	plan := func(in scheduler.Input) scheduler.Decision {
		if looked {
			return f.policy.Plan(in)
		}
		looked = true
		// Only the weakest of all locks, that of a reader, is held on the application's tables.
		const stronger = `SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
			WHERE c.relnamespace = 'nudged'::regnamespace AND c.relname ~ '^(requests|links|documents)'
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.mode <> 'AccessShareLock'`
		if n := f.count(stronger); n != 0 {
			t.Errorf("the pass holds %d locks on the application's tables", n)
		}
		f.exec(`SELECT 1 FROM nudged.requests FOR UPDATE NOWAIT`)
		f.exec(`SELECT 1 FROM nudged.links FOR UPDATE NOWAIT`)
		f.exec(`UPDATE nudged.requests SET title = 'Other papers' WHERE id = 'r-1'`)
		f.exec(`DELETE FROM nudged.documents WHERE request_id = 'r-1'`)
		f.due1("new")
		return f.policy.Plan(in)
	}
	result, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: plan})
	if err != nil || len(result.Tasks) != 2 {
		t.Fatalf("got %d tasks, %v", len(result.Tasks), err)
	}
	if again := f.pass("a").Tasks; len(again) != 1 || again[0].Request.ID != "new" {
		t.Errorf("got %v, want the request that was written meanwhile", again)
	}
}

// Two passes at once share what there is and do not wait for each other.
func TestPassDoesNotWaitForAPass(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(4)
	other := openStore(t, f.url)
	var second scheduler.PassResult
	once := false
	plan := func(in scheduler.Input) scheduler.Decision {
		if !once {
			once = true
			second = f.passOf(other, "b")
		}
		return f.policy.Plan(in)
	}
	first, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 3, Due: 3, Plan: plan})
	if err != nil || len(first.Tasks) != 3 || len(second.Tasks) != 1 {
		t.Errorf("the first claimed %d, the second inside it %d, %v; want 3 and 1", len(first.Tasks), len(second.Tasks), err)
	}
}

// A person settles an outcome at the very moment at which a pass repeats it: one comes first, and neither fails
// for the other's sake.
func TestResolveBesideAPassThatRepeats(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.RepeatWithin = 24 * time.Hour
	f.policy.Limits.Backoff.Initial = time.Nanosecond
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	doubt := scheduler.Outcome{State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost}
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, doubt)}})
	planned, resolving := make(chan struct{}), make(chan struct{})
	passed, resolved := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := f.store.RunPass(context.Background(), scheduler.Pass{
			Worker: "a", Lease: time.Minute, Fresh: 10, Due: 10, Plan: func(in scheduler.Input) scheduler.Decision {
				close(planned)
				<-resolving
				return f.policy.Plan(in)
			},
		})
		passed <- err
	}()
	<-planned
	go func() {
		resolved <- f.store.Resolve(context.Background(), "r-1", "3d", time.Time{}, true, postgres.Act{Actor: "ann", Why: "in its log"})
	}()
	f.eventually("the person waits for the pass", func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	close(resolving)
	if err := <-passed; err != nil {
		t.Errorf("the pass: %v", err)
	}
	if err := <-resolved; !errors.Is(err, postgres.ErrNotFound) {
		t.Errorf("the person is told %v, want that there is nothing to settle any more", err)
	}
	f.wantRow("r-1", "3d", "claimed/")
}

// A worker whose machine is gone in the middle of a pass says nothing any more. The server lets go of what the
// pass has locked when the worker would have given up.
func TestVanishedWorkerHoldsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	planning, free := make(chan struct{}), make(chan struct{})
	passed := make(chan error, 1)
	go func() {
		_, err := f.store.RunPass(ctx, scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 10, Due: 10, Plan: func(in scheduler.Input) scheduler.Decision {
			close(planning)
			<-free // says nothing more
			return f.policy.Plan(in)
		}})
		passed <- err
	}()
	<-planning
	unlocked := func() bool {
		tag, err := f.db.Exec(t.Context(), `SELECT 1 FROM nudged.schedules FOR UPDATE SKIP LOCKED`)
		return err == nil && tag.RowsAffected() == 1
	}
	if unlocked() {
		t.Error("the pass has locked nothing")
	}
	f.eventually("the server lets go", unlocked)
	close(free)
	if err := <-passed; err == nil {
		t.Error("the pass did not fail")
	}
}
