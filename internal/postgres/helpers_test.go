package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/cadence"
	"nudged/internal/pgtest"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// fixture is one database with a store over it and a policy to plan with.
type fixture struct {
	t      testing.TB
	url    string
	store  *postgres.Store
	db     *pgxpool.Pool
	policy *scheduler.Policy
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return fixtureAt(t, pgtest.New(t))
}

func fixtureAt(t testing.TB, url string) *fixture {
	t.Helper()
	f := &fixture{t: t, url: url, store: openStore(t, url), db: openPool(t, url)}
	f.policy = &scheduler.Policy{
		Cadences:       map[string]*cadence.Cadence{"default": parse(t, "3d", "7d", "14d")},
		DefaultCadence: "default",
		DefaultZone:    time.UTC,
		Limits: scheduler.Limits{
			MaxLateness: 48 * time.Hour, MinGap: time.Hour, RetryFor: 24 * time.Hour,
			Backoff: scheduler.Backoff{Initial: time.Minute, Max: time.Hour}, Retention: 400 * 24 * time.Hour,
		},
	}
	return f
}

// parse returns the cadence with these slots and one each week from then on.
func parse(t testing.TB, after ...string) *cadence.Cadence {
	t.Helper()
	weekly := "7d"
	c, err := cadence.Parse("default", cadence.Definition{After: after, ThenEvery: &weekly})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openStore opens a store as a daemon does that has found its database.
func openStore(t testing.TB, url string) *postgres.Store {
	t.Helper()
	store := openUnadopted(t, url)
	if err := store.Adopt(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	return store
}

func openUnadopted(t testing.TB, url string) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(context.Background(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

// due inserts n pending requests r-1 … r-n whose slot 3d fell due a minute ago.
func (f *fixture) due(n int) {
	f.t.Helper()
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
	        SELECT 'r-' || i, 'a', 'pending', 'r' || i || '@example.com', 'Papers' FROM generate_series(1, $1::int) i`, n)
	f.exec(`INSERT INTO nudged.links (request_id, url, created_at)
	        SELECT 'r-' || i, 'https://example.com/u/' || i, now() - interval '3 days 1 minute' FROM generate_series(1, $1::int) i`, n)
}

// due1 inserts one pending request whose slot 3d fell due a minute ago.
func (f *fixture) due1(id string) {
	f.t.Helper()
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ($1, 'a', 'pending', 'r@example.com', 'Papers')`, id)
	f.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ($1, 'https://example.com/u', now() - interval '3 days 1 minute')`, id)
}

// eventually polls what no signal tells: what other sessions of the database are doing.
func (f *fixture) eventually(what string, holds func() bool) {
	f.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			f.t.Fatalf("not within 20 s: %s", what)
		case <-tick.C:
		}
	}
}

func (f *fixture) pass(worker string) scheduler.PassResult {
	f.t.Helper()
	return f.passOf(f.store, worker)
}

func (f *fixture) passOf(store *postgres.Store, worker string) scheduler.PassResult {
	f.t.Helper()
	result, err := store.RunPass(context.Background(), scheduler.Pass{
		Worker: worker, Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

func handOff(task scheduler.Task) scheduler.HandOff {
	return scheduler.HandOff{
		ClaimID: task.ClaimID, RequestID: task.Request.ID, LinkCreatedAt: task.Link.CreatedAt, Slot: task.Slot.Name,
		Recipient: task.Request.RecipientEmail, To: task.Request.RecipientEmail, MessageID: "m-" + task.Request.ID + "@example.com",
	}
}

func settlement(task scheduler.Task, outcome scheduler.Outcome) scheduler.Settlement {
	return scheduler.Settlement{
		ClaimID: task.ClaimID, RequestID: task.Request.ID, LinkCreatedAt: task.Link.CreatedAt, Slot: task.Slot.Name,
		Recipient: task.Request.RecipientEmail, Outcome: outcome,
	}
}

// settle makes one commit and fails the test where it does not succeed.
func (f *fixture) settle(b scheduler.Batch) map[scheduler.ClaimID]scheduler.Reason {
	f.t.Helper()
	b.Lease = time.Minute
	results, err := f.store.Settle(context.Background(), b)
	if err != nil {
		f.t.Fatal(err)
	}
	verdicts := map[scheduler.ClaimID]scheduler.Reason{}
	for _, r := range results {
		verdicts[r.ClaimID] = r.Reason
	}
	return verdicts
}

// row describes one ledger row as "state/reason".
func (f *fixture) row(requestID, slot string) string {
	f.t.Helper()
	var got string
	err := f.db.QueryRow(context.Background(), `SELECT state || '/' || coalesce(reason, '') FROM nudged.reminders
		WHERE request_id = $1 AND slot = $2`, requestID, slot).Scan(&got)
	if err != nil {
		return fmt.Sprint(err)
	}
	return got
}

func (f *fixture) wantRow(requestID, slot, want string) {
	f.t.Helper()
	if got := f.row(requestID, slot); got != want {
		f.t.Errorf("reminder %s %s: got %s, want %s", requestID, slot, got, want)
	}
}

func (f *fixture) count(sql string, args ...any) int {
	f.t.Helper()
	var n int
	if err := f.db.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fixture) value(sql string) string {
	f.t.Helper()
	var v string
	if err := f.db.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		f.t.Fatal(err)
	}
	return v
}
