package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// many is how many requests, links, schedules and reminders the plans are made for.
const many = 200_000

// manyRows fills the tables as they look after a long time. The triggers are not what is tested.
var manyRows = []string{
	`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
	 SELECT 'r-' || i, 'a', CASE WHEN i % 4 = 0 THEN 'completed' ELSE 'pending' END, 'r' || i || '@example.com', 'Papers'
	 FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.links (request_id, url, created_at)
	 SELECT 'r-' || i, 'https://example.com/' || i, now() - interval '30 days' FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.documents (request_id, position, title)
	 SELECT 'r-' || i, 1, 'Passport' FROM generate_series(1, $1::int) i`,
	`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, claim_id, claimed_by, lease_until, retry_at, handed_off_at, finished_at, attempt)
	 SELECT 'r-' || i, now() - interval '30 days', '3d', now() - interval '27 days', s.state,
	        CASE s.state WHEN 'deferred' THEN 'greylisted' WHEN 'unknown' THEN 'reply_lost' END,
	        gen_random_uuid(), 'a', CASE s.state WHEN 'claimed' THEN now() + interval '1 minute' END,
	        CASE s.state WHEN 'deferred' THEN now() + interval '1 minute' END,
	        CASE WHEN s.state IN ('sent', 'unknown') THEN now() END, CASE WHEN s.state IN ('sent', 'unknown') THEN now() END, 1
	 FROM generate_series(1, $1::int) i,
	      LATERAL (SELECT CASE WHEN i % 1000 = 0 THEN 'deferred' WHEN i % 1000 = 1 THEN 'claimed' WHEN i % 10000 = 2 THEN 'unknown' ELSE 'sent' END) s (state)`,
	`INSERT INTO nudged.suppressions (address, reason) SELECT 'gone' || i || '@example.com', 'no such user' FROM generate_series(1, $1::int / 10) i`,
}

// What the schedules can look like: a statement must not suit only one of these.
var wakes = map[string]string{
	"idle":     `CASE WHEN i % 4 > 0 THEN now() + interval '1 hour' + i * interval '1 second' END`,
	"imported": `'-infinity'`,
	"all due":  `now() - i * interval '1 second'`,
	"mixed":    `CASE i % 100 WHEN 0 THEN '-infinity' WHEN 1 THEN now() - i * interval '1 second' ELSE now() + i * interval '1 second' END`,
}

type planFixture struct {
	*fixture
	conn *pgx.Conn
}

func newPlanFixture(t *testing.T) *planFixture {
	f := newFixture(t)
	conn, err := pgx.Connect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	p := &planFixture{fixture: f, conn: conn}
	p.on(`SET session_replication_role = replica`)
	for _, sql := range manyRows {
		b := time.Now(); p.on(sql, many); p.t.Log(sql[:40], time.Since(b))
	}
	return p
}

func (p *planFixture) on(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.conn.Exec(context.Background(), sql, args...); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *planFixture) schedule(wake string) {
	p.t.Helper()
	p.on(`TRUNCATE nudged.schedules`)
	p.on(`INSERT INTO nudged.schedules (request_id, wake_at, problem)
	      SELECT 'r-' || i, `+wake+`, CASE WHEN i % 10000 = 0 THEN 'unknown_zone' END FROM generate_series(1, $1::int) i`, many)
	p.on(`ANALYZE`)
}

// node is one step of a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node `json:"Plans"`
}

func (n node) walk(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.walk(visit)
	}
}

func (p *planFixture) explain(sql string, args ...any) (node, string) {
	p.t.Helper()
	var text string
	if err := p.conn.QueryRow(context.Background(), sql, args...).Scan(&text); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		p.t.Fatal(err)
	}
	return plans[0].Plan, text
}

// statement is one file of sql/ and arguments as the daemon gives them.
type statement struct {
	file string
	args []any
}

func statements(n int) []statement {
	var (
		ids, slots, states, emails, reasons = make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		links                               = make([]time.Time, n)
		claims                              = make([][16]byte, n)
		codes                               = make([]int32, n)
		keep                                = make([]bool, n)
		waits                               = make([]time.Duration, n)
	)
	for i := range n {
		ids[i], slots[i], states[i], emails[i], reasons[i] = fmt.Sprint("r-", i*7+1), "3d", "deferred", "x@example.com", "greylisted"
		links[i], claims[i] = time.Now(), [16]byte{byte(i), byte(i >> 8)}
	}
	lease := time.Minute
	return []statement{
		{"take", []any{500, 500}},
		{"recover", nil},
		{"subjects", []any{ids}},
		{"ledger", []any{ids}},
		{"documents", []any{ids}},
		{"insert_rows", []any{ids, links, slots, links, states, reasons, claims, "worker", lease}},
		{"claim_deferred", []any{ids, links, slots, codes, claims, claims, "worker", lease}},
		{"end_deferred", []any{ids, links, slots, states, reasons}},
		{"set_wakes", []any{ids, links, reasons}},
		{"forget", []any{ids}},
		{"settle", []any{claims, ids, links, slots, states, reasons, codes, reasons, keep, waits}},
		{"suppress", []any{emails, reasons}},
		{"hand_off", []any{claims, ids, links, slots, emails, emails, lease}},
		{"renew", []any{claims, lease}},
		{"open_requests", nil},
		{"backlog", nil},
		{"replan", []any{"r-1", 5000}},
		{"adopt", []any{"test"}},
	}
}

func TestPlansReadNoTableFromEndToEnd(t *testing.T) {
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(statements(1)); n != len(files) {
		t.Errorf("there are %d statements in sql/, this test knows %d", len(files), n)
	}
	p := newPlanFixture(t)
	for name, wake := range wakes {
		p.schedule(wake)
		for _, n := range []int{16, 500} {
			for _, s := range statements(n) {
				text, err := os.ReadFile("sql/" + s.file + ".sql")
				if err != nil {
					t.Fatal(err)
				}
				custom, raw := p.explain("EXPLAIN (FORMAT JSON) "+string(text), s.args...)
				p.wantIndexes(fmt.Sprintf("%s, custom plan for %d, %s", s.file, n, name), custom, raw)
				if n == 16 {
				generic, raw := p.generic(s.file, string(text), len(s.args))
				p.wantIndexes(fmt.Sprintf("%s, generic plan, %s", s.file, name), generic, raw)
				}
			}
		}
	}
}

// generic explains the plan that PostgreSQL makes without looking at the arguments.
func (p *planFixture) generic(name, sql string, args int) (node, string) {
	p.t.Helper()
	p.on(`SET plan_cache_mode = force_generic_plan`)
	defer p.on(`RESET plan_cache_mode`)
	p.on(`PREPARE ` + name + ` AS ` + sql)
	defer p.on(`DEALLOCATE ` + name)
	call := `EXPLAIN (FORMAT JSON) EXECUTE ` + name
	if args > 0 {
		call += `(` + strings.Join(slices.Repeat([]string{"NULL"}, args), ", ") + `)`
	}
	return p.explain(call)
}

func (p *planFixture) wantIndexes(what string, plan node, raw string) {
	p.t.Helper()
	plan.walk(func(n node) {
		if n.Type == "Seq Scan" && n.Relation != "installation" {
			p.t.Errorf("%s: reads all of %s", what, n.Relation)
			_ = raw
		}
	})
}
