package postgres_test

import (
	"context"
	"testing"
	"time"

	"nudged/scheduler"
)

// A view that needs its tables hashed, because a column that it joins by has no index, is slow by its
// nature; how passes pin their plans must not turn that into no mail at all.
func TestViewWithoutAnIndexStillMails(t *testing.T) {
	t.Parallel()
	const cases = 5000
	f := newFixture(t)
	f.exec(`CREATE SCHEMA app;
		CREATE TABLE app.cases (id bigint PRIMARY KEY, number text UNIQUE, email text);
		CREATE TABLE app.links (id bigint PRIMARY KEY, case_id bigint, token text, created_at timestamptz);
		CREATE TABLE app.tokens (token text, url text);
		CREATE INDEX ON app.links (case_id)`)
	for _, sql := range []string{
		`INSERT INTO app.cases SELECT i, 'N' || i, 'c' || i || '@example.com' FROM generate_series(1, $1::int) i`,
		`INSERT INTO app.links SELECT i, 1 + i % ($1::int / 2), 't' || i, now() - interval '3 days 1 minute' FROM generate_series(1, $1::int) i`,
		`INSERT INTO app.tokens SELECT 't' || i, 'https://example.com/' || i FROM generate_series(1, $1::int) i`,
	} {
		f.exec(sql, cases)
	}
	f.exec(`ANALYZE;
		DROP TABLE nudged.requests, nudged.links;
		CREATE VIEW nudged.requests AS
		SELECT number AS id, 'a'::text AS account_id, 'pending'::text AS status, email AS recipient_email, NULL::text AS recipient_name,
		       'T'::text AS title, NULL::text AS message, NULL::date AS deadline, NULL::text AS cadence, NULL::text AS time_zone,
		       NULL::text AS locale, NULL::text AS sender_name, NULL::text AS reply_to, NULL::timestamptz AS paused_until,
		       NULL::text AS pause_reason, NULL::timestamptz AS opted_out_at
		FROM app.cases;
		CREATE VIEW nudged.links AS
		SELECT c.number AS request_id, l.url, l.created_at, NULL::timestamptz AS expires_at, NULL::timestamptz AS revoked_at
		FROM app.cases c JOIN (
		    SELECT DISTINCT ON (case_id) case_id, t.url, k.created_at FROM app.links k JOIN app.tokens t USING (token)
		    ORDER BY case_id, k.created_at DESC) l ON l.case_id = c.id`)
	f.exec(`SELECT nudged.touch('N' || i) FROM generate_series(1, 5) i`)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	result, err := f.store.RunPass(ctx, scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
	if err != nil || len(result.Tasks) != 5 {
		t.Fatalf("%d claims: %v", len(result.Tasks), err)
	}
	results, err := f.store.Settle(ctx, scheduler.Batch{Lease: time.Minute, HandOffs: []scheduler.HandOff{handOff(result.Tasks[0])}})
	if err != nil || len(results) != 1 || results[0].Reason != "" {
		t.Errorf("the hand-off ended with %+v, %v", results, err)
	}
}

// What a pass asked for ends on the server too when the pass gives up: it would hold its locks, and the
// passes behind it would find nothing to do and call that success.
func TestPassThatGivesUpEndsOnTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(1)
	f.exec(`ALTER TABLE nudged.links RENAME TO slow_links;
		CREATE VIEW nudged.links AS SELECT l.request_id, l.url, l.created_at, l.expires_at, l.revoked_at FROM nudged.slow_links l, LATERAL (SELECT pg_sleep(60) WHERE l.request_id IS NOT NULL) s`)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := f.store.RunPass(ctx, scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan}); err == nil {
		t.Fatal("the pass ended well")
	}
	f.eventually("the statement to end", func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`) == 0
	})
	f.exec(`DROP VIEW nudged.links; ALTER TABLE nudged.slow_links RENAME TO links`)
	if result := f.pass("a"); len(result.Tasks) != 1 {
		t.Errorf("%d claims afterwards, want 1", len(result.Tasks))
	}
}

// A connection that breaks while requests are read is an error like any other.
func TestConnectionThatBreaksWhileRequestsAreRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.exec(`ALTER TABLE nudged.links RENAME TO real_links;
		CREATE VIEW nudged.links AS SELECT l.request_id, l.url, l.created_at, l.expires_at, l.revoked_at
		FROM nudged.real_links l WHERE pg_terminate_backend(pg_backend_pid())`)
	pass := scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan}
	if _, err := f.store.RunPass(t.Context(), pass); err == nil {
		t.Error("a pass whose connection broke ended well")
	}
	if _, _, err := f.store.Load(t.Context(), "r-1"); err == nil {
		t.Error("a request was read over a connection that broke")
	}
	f.exec(`DROP VIEW nudged.links; ALTER TABLE nudged.real_links RENAME TO links`)
	if result := f.pass("a"); len(result.Tasks) != 3 {
		t.Errorf("%d claims afterwards, want 3", len(result.Tasks))
	}
}
