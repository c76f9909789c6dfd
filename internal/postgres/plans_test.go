package postgres_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// manyRows fills the tables as they look after a long time.
var manyRows = []string{
	`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
	 SELECT 'r-' || i, 'a', CASE i % 4 WHEN 0 THEN 'pending' ELSE 'completed' END, 'r' || i || '@example.com', 'Papers'
	 FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.links (request_id, url, created_at)
	 SELECT 'r-' || i, 'https://example.com/' || i, now() - interval '30 days' FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.documents (request_id, position, title) SELECT 'r-' || i, 1, 'Passport' FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, claim_id, claimed_by, lease_until, retry_at, handed_off_at, finished_at, attempt)
	 SELECT 'r-' || i, now() - interval '30 days', '3d', now() - interval '27 days', state,
	        CASE state WHEN 'deferred' THEN 'greylisted' WHEN 'unknown' THEN 'reply_lost' END,
	        gen_random_uuid(), 'a', CASE state WHEN 'claimed' THEN now() + interval '1 minute' END,
	        CASE state WHEN 'deferred' THEN now() + interval '1 minute' END,
	        CASE WHEN state IN ('sent', 'unknown') THEN now() END, CASE WHEN state IN ('sent', 'unknown') THEN now() END, 1
	 FROM generate_series(1, $1::int) i, LATERAL (SELECT CASE
	        WHEN i % 1000 = 0 THEN 'deferred' WHEN i % 1000 = 1 THEN 'claimed' WHEN i % 10000 = 2 THEN 'unknown' ELSE 'sent' END) s (state)`,
	`INSERT INTO nudged.suppressions (address, reason) SELECT 'gone' || i || '@example.com', 'no such user' FROM generate_series(1, $1::int / 10) i`,
}

// statement is one file of sql/ and arguments as the daemon gives them.
type statement struct {
	file string
	args []any
}

// key is a ledger row.
type key struct {
	request string
	link    time.Time
	claim   [16]byte
}

// statements are all there are, for n reminders at once.
func statements(n int) []statement {
	keys := make([]key, n)
	for i := range keys {
		keys[i] = key{fmt.Sprint("r-", i*7+1), time.Now(), [16]byte{byte(i), byte(i >> 8)}}
	}
	return statementsFor(keys)
}

// statementsFor are all there are, for these rows of the ledger.
func statementsFor(keys []key) []statement {
	n := len(keys)
	ids, links, claims := make([]string, n), make([]time.Time, n), make([][16]byte, n)
	for i, k := range keys {
		ids[i], links[i], claims[i] = k.request, k.link, k.claim
	}
	claimed, next := slices.Repeat([]string{"claimed"}, n), slices.Repeat([]string{"7d"}, n)
	slots, states := slices.Repeat([]string{"3d"}, n), slices.Repeat([]string{"deferred"}, n)
	reasons, emails := slices.Repeat([]string{"greylisted"}, n), slices.Repeat([]string{"x@example.com"}, n)
	numbers, keep, waits := make([]int32, n), make([]bool, n), make([]time.Duration, n)
	days := make([]time.Time, 8)
	for i := range days {
		days[i] = time.Now().Add(time.Duration(i) * 24 * time.Hour)
	}
	return []statement{
		{"adopt", []any{"test"}},
		{"backlog", nil},
		{"blame", []any{"r-1", time.Now(), "3d"}},
		{"claim_deferred", []any{ids, links, slots, numbers, claims, claims, "worker", time.Minute}},
		{"clock", nil},
		{"documents", []any{ids}},
		{"end_deferred", []any{ids, links, slots, states, reasons}},
		{"events", []any{"r-1"}},
		{"forget", []any{ids}},
		{"hand_off", []any{claims, ids, links, slots, emails, emails, time.Minute, emails}},
		{"installation", nil},
		{"insert_rows", []any{ids, links, next, links, claimed, make([]*string, n), claims, "worker", time.Minute}},
		{"heal", nil},
		{"ledger", []any{ids}},
		{"open_ids", []any{"r-1", 500}},
		{"open_requests", nil},
		{"pause", []any{"r-1", time.Now(), "pause", "ann", "why"}},
		{"pin", []any{true, int64(1000)}},
		{"purge", []any{"r-1", time.Now(), "3d", 2000, time.Hour}},
		{"purged", []any{ids}},
		{"readopt", []any{"test", "ann", "why", true}},
		{"recover", nil},
		{"renew", []any{claims, time.Minute}},
		{"replan", []any{2}},
		{"requests_of", []any{"R-1@Example.com", 20}},
		{"resolve", []any{"r-1", "3d", nil, true, "ann", "why"}},
		{"scheduled_ids", []any{"r-1", 500}},
		{"set_wakes", []any{ids, links, make([]*string, n), ids, numbers}},
		{"settle", []any{claims, ids, links, slots, states, reasons, numbers, reasons, keep, waits}},
		{"status_backlog", []any{time.Hour, 20_000}},
		{"status_mistakes", []any{20}},
		{"status_outcomes", []any{20}},
		{"status_unknown", []any{20}},
		{"status_upcoming", []any{days[:7], days[1:], 20_000}},
		{"subjects", []any{ids}},
		{"suppress", []any{emails, reasons}},
		{"suppress_address", []any{[]string{"x@example.com"}, "ann", "why"}},
		{"take", []any{500, 500}},
		{"take_turns", []any{ids}},
		{"turns", []any{2000, 100_000}},
		{"unknown", nil},
		{"unsuppress_address", []any{[]string{"x@example.com"}, "ann", "why"}},
		{"wake", []any{ids}},
	}
}

func TestEveryStatementIsKnownToTheseTests(t *testing.T) {
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file[:len(file)-len(".sql")])
		if !slices.ContainsFunc(statements(1), func(s statement) bool { return s.file == name }) {
			t.Errorf("%s has no plan looked at: enter it in statements", file)
		}
	}
}

// No statement reads a big table from end to end, however the schedules are spread and whichever
// kind of plan PostgreSQL chooses, and what passes and commits do costs so many pages and no more.
func TestPlansAtAMillionRequests(t *testing.T) {
	t.Parallel()
	const many = 1_000_000
	big := []string{"requests", "links", "documents", "schedules", "reminders", "suppressions"}
	f := newFixture(t)
	e := newExplainer(t, f.url)
	e.exec(`SET session_replication_role = replica`) // the triggers have tests of their own
	for _, table := range big {
		e.exec(`ALTER TABLE nudged.` + table + ` SET UNLOGGED`) // quicker to fill, and planned alike
	}
	for _, sql := range manyRows {
		e.exec(sql, many)
	}
	e.exec(`ANALYZE`)
	spreads := []struct{ name, wake string }{
		{"all planned", `CASE WHEN i % 4 = 0 THEN now() + interval '1 hour' + i * interval '1 second' END`},
		{"all imported", `'-infinity'`},
		{"all due", `now() - i * interval '1 second'`},
	}
	for _, spread := range spreads {
		e.exec(`TRUNCATE nudged.schedules`)
		e.exec(`INSERT INTO nudged.schedules (request_id, wake_at, problem, planned_by)
			SELECT 'r-' || i, `+spread.wake+`, CASE WHEN i % 10000 = 0 THEN 'unknown_zone' END, 1 FROM generate_series(1, $1::int) i`, many)
		e.exec(`ANALYZE nudged.schedules`)
		t.Run(spread.name, func(t *testing.T) {
			check := func(file, kind string, plan node) {
				for _, relation := range plan.readsAll() {
					if slices.Contains(big, relation) {
						t.Errorf("%s, %s plan: reads all of %s", file, kind, relation)
					}
				}
			}
			for _, s := range statements(16) {
				if s.file == "backlog" && spread.name == "all due" || s.file == "requests_of" {
					continue // it counts them all; it is the one question without an index
				}
				check(s.file, "generic", e.generic(readStatement(t, s.file), len(s.args)))
				check(s.file, "custom", e.custom(readStatement(t, s.file), s.args...))
			}
			for _, s := range statements(500) {
				if s.file != "backlog" && s.file != "requests_of" {
					check(s.file, "custom", e.custom(readStatement(t, s.file), s.args...))
				}
			}
		})
		if spread.name == "all planned" {
			t.Run("a poll with nothing due", func(t *testing.T) {
				const few = 20 // pages: a way down each index
				for s, args := range map[string][]any{"take": {500, 500}, "recover": nil, "replan": {1}} {
					for _, pinned := range []bool{true, false} {
						e.exec(`BEGIN`)
						e.exec(readStatement(t, "pin"), pinned, int64(60_000))
						n := e.buffers(readStatement(t, s), args...)
						e.exec(`ROLLBACK`)
						if n > few {
							t.Errorf("%s, pinned %t, touches %d pages, want at most %d", s, pinned, n, few)
						}
					}
				}
			})
		}
	}
	t.Run("a full batch", func(t *testing.T) {
		rows := f.claimedRows()
		// Pages for each row: the way down an index or two, the row, and where it is written its
		// place in each index.
		most := map[string]int{
			"take": 4, "take_turns": 8, "subjects": 14, "ledger": 8, "documents": 6, "set_wakes": 18,
			"insert_rows": 14, "claim_deferred": 8, "end_deferred": 8, "settle": 18, "hand_off": 24, "wake": 12, "renew": 16, "replan": 24,
		}
		for _, s := range statementsFor(rows) {
			if most[s.file] == 0 {
				continue
			}
			e.exec(`BEGIN`)
			e.exec(readStatement(t, "pin"), true, int64(60_000))
			pages := e.buffers(readStatement(t, s.file), s.args...)
			e.exec(`ROLLBACK`)
			n := len(rows)
			if s.file == "replan" {
				n = 1000 // as many as it takes
			}
			t.Logf("%s: %d pages for %d rows", s.file, pages, n)
			if pages > most[s.file]*n {
				t.Errorf("%s touches %d pages for %d rows, want at most %d", s.file, pages, n, most[s.file]*n)
			}
		}
	})
	t.Run("whose turn it is", func(t *testing.T) {
		const among = 100_000
		if pages := e.buffers(readStatement(t, "turns"), 2000, among); pages > 2*among {
			t.Errorf("turns touches %d pages to line up %d", pages, among)
		}
	})
}

// claimedRows returns 500 rows that a worker holds.
func (f *fixture) claimedRows() []key {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), `SELECT request_id, link_created_at, claim_id FROM nudged.reminders WHERE state = 'claimed' LIMIT 500`)
	if err != nil {
		f.t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k key, err error) {
		err = row.Scan(&k.request, &k.link, &k.claim)
		return k, err
	})
	if err != nil || len(keys) != 500 {
		f.t.Fatalf("%d rows are claimed: %v", len(keys), err)
	}
	return keys
}
