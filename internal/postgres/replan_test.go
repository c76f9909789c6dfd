package postgres_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"nudged/internal/postgres"
)

// Of replicas that start together, as they do after an upgrade, one plans anew; and what a pass or
// another has locked for a moment costs no transaction of its own a request.
func TestReplansOfReplicasThatStartTogether(t *testing.T) {
	t.Parallel()
	const many = 20_000
	f := newFixture(t)
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT 'r-' || i, 'a', 'pending', 'x@example.com', 'T' FROM generate_series(1, $1::int) i`, many)
	f.exec(`INSERT INTO nudged.schedules (request_id, wake_at) SELECT id, now() + interval '1 day' FROM nudged.requests`)
	before := f.count(`SELECT pg_current_xact_id()::text::int`)
	var replicas sync.WaitGroup
	var did atomic.Int32
	for range 3 {
		store := openStore(t, f.url)
		replicas.Go(func() {
			changed, err := store.Replan(t.Context(), "new")
			if err != nil {
				t.Error(err)
			}
			if changed {
				did.Add(1)
			}
		})
	}
	replicas.Wait()
	if n := did.Load(); n != 1 {
		t.Errorf("%d replicas planned anew, want 1", n)
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`); n != many {
		t.Errorf("%d of %d requests are planned anew", n, many)
	}
	if n := f.count(`SELECT pg_current_xact_id()::text::int`) - before; n > 200 {
		t.Errorf("that took %d transactions", n)
	}
}

// In a rolling update a replica that still has the configuration from before goes on planning. The one
// whose configuration was noted last is told, and plans anew; the other is not.
func TestPlansOfTwoConfigurations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before, after := openStore(t, f.url), openStore(t, f.url)
	plan := func(s *postgres.Store, fingerprint string) {
		t.Helper()
		if did, err := s.Replan(t.Context(), fingerprint); !did || err != nil {
			t.Fatalf("planning with %s: %t, %v", fingerprint, did, err)
		}
	}
	mixed := func(wantBefore, wantAfter bool) {
		t.Helper()
		b, errBefore := before.Mixed(t.Context(), "before")
		a, errAfter := after.Mixed(t.Context(), "after")
		if err := errors.Join(errBefore, errAfter); b != wantBefore || a != wantAfter || err != nil {
			t.Errorf("mixed: got %t for the one before and %t for the one after, %v; want %t and %t", b, a, err, wantBefore, wantAfter)
		}
	}
	mixed(true, true) // nothing is known
	plan(before, "before")
	mixed(false, false)
	f.due1("r-1")
	f.passOf(before, "a")
	mixed(false, false)

	f.passOf(after, "b") // it has planned nothing of its own yet, and will
	plan(after, "after")
	mixed(false, false)
	f.passOf(after, "b")
	mixed(false, false)
	f.passOf(before, "a") // nothing to plan
	mixed(false, false)
	f.due1("r-2")
	f.passOf(before, "a")
	mixed(false, true)
	f.due1("r-3")
	f.passOf(before, "a")
	mixed(false, true)
	if got, err := after.Installation(t.Context()); got.PlannedWith != "after" || !got.Mixed || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}

	plan(after, "after")
	mixed(false, false)
	f.passOf(after, "b")
	mixed(false, false)
	if got, err := after.Installation(t.Context()); got.PlannedWith != "after" || got.Mixed || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}
