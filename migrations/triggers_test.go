package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

const (
	insertRequests = `INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT 'r-' || i, 'a', 'pending', 'r' || i || '@example.com', 'Papers' FROM generate_series(1, $1::int) i`
	insertLinks = `INSERT INTO nudged.links (request_id, url, created_at)
		SELECT 'r-' || i, 'https://example.com/' || i, '2026-05-01T10:00:00Z' FROM generate_series(1, $1::int) i`
)

// quiet makes no request be looked at, as after a pass.
func (d *database) quiet() {
	d.t.Helper()
	d.exec(`UPDATE nudged.schedules SET wake_at = '2999-01-01'`)
}

// touched lists the requests to be looked at by the next pass.
func (d *database) touched() []string {
	d.t.Helper()
	return d.list(`SELECT request_id FROM nudged.schedules WHERE wake_at = '-infinity' ORDER BY request_id`)
}

func (d *database) wantTouched(after string, want ...string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.touched()); diff != "" && len(want)+len(d.touched()) > 0 {
		d.t.Errorf("touched after %s (-want +got):\n%s", after, diff)
	}
}

// calls counts the trigger functions that a statement called, within its own transaction.
func (d *database) calls(sql string, args ...any) map[string]int {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	counts := map[string]int{}
	err := pgx.BeginFunc(ctx, d.Conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL track_functions = 'all'`); err != nil {
			return err
		}
		const calls = `SELECT funcname, calls::int FROM pg_stat_xact_user_functions WHERE schemaname = 'nudged'`
		read := func(sign int) error {
			rows, err := tx.Query(ctx, calls)
			if err != nil {
				return err
			}
			var name string
			var n int
			_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
				if counts[name] += sign * n; counts[name] == 0 {
					delete(counts, name)
				}
				return nil
			})
			return err
		}
		if err := read(-1); err != nil { // what this session called before and has not reported yet
			return err
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
		return read(1)
	})
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return counts
}

func (d *database) wantCalls(sql string, want map[string]int, args ...any) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.calls(sql, args...)); diff != "" {
		d.t.Errorf("functions called by %s (-want +got):\n%s", sql, diff)
	}
}

func TestBulkWritesCallEachTriggerOnce(t *testing.T) {
	t.Parallel()
	const many = 100_000
	db := migrated(t)
	db.wantCalls(insertRequests, map[string]int{"requests_inserted": 1}, many)
	if n := db.count(`SELECT count(*) FROM nudged.schedules`); n != 0 {
		t.Errorf("%d requests without a link are looked at", n)
	}
	db.wantCalls(insertLinks, map[string]int{"links_inserted": 1}, many)
	if n := db.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`); n != many {
		t.Errorf("%d of %d requests are looked at after the import", n, many)
	}
	db.wantCalls(`DELETE FROM nudged.links WHERE request_id LIKE '%1'`, map[string]int{"links_deleted": 1})
	db.wantCalls(`UPDATE nudged.links SET url = 'https://example.com/'`, map[string]int{"links_updated": 1})
}

func TestEachStatementCallsItsTriggerOnce(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	db.exec(insertLinks, 3)
	db.wantCalls(insertRequests, map[string]int{"requests_inserted": 1}, 3)
	db.wantCalls(`UPDATE nudged.requests SET status = 'paid'`, map[string]int{"requests_updated": 1})
	db.wantCalls(`UPDATE nudged.links SET expires_at = now()`, map[string]int{"links_updated": 1})
	db.wantCalls(`DELETE FROM nudged.requests`, map[string]int{"requests_deleted": 1})
	db.wantCalls(`DELETE FROM nudged.links`, map[string]int{"links_deleted": 1})
	db.wantCalls(`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport')`, map[string]int{})
}

func TestCopyIsSeenToo(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	db.exec(insertRequests, 2)
	rows := [][]any{{"r-1", "https://example.com/1"}, {"r-2", "https://example.com/2"}}
	if _, err := db.CopyFrom(t.Context(), pgx.Identifier{"nudged", "links"}, []string{"request_id", "url"}, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	db.wantTouched("a COPY", "r-1", "r-2")
}

// An update of a column that the plan reads touches the changed rows and no other; an update of
// any other column touches none. A new column has to be entered here.
func TestUpdateTouchesWhatItChanges(t *testing.T) {
	t.Parallel()
	const relevant, irrelevant = true, false
	tables := map[string]struct {
		key     string
		columns map[string]bool
	}{
		"requests": {"id", map[string]bool{
			"account_id": irrelevant, "status": relevant, "recipient_email": relevant, "recipient_name": irrelevant,
			"title": irrelevant, "message": irrelevant, "deadline": relevant, "cadence": relevant, "time_zone": relevant,
			"locale": relevant, "sender_name": irrelevant, "reply_to": relevant, "paused_until": relevant,
			"pause_reason": irrelevant, "opted_out_at": relevant, "created_at": irrelevant, "updated_at": irrelevant,
			"completed_at": irrelevant,
		}},
		"links": {"request_id", map[string]bool{
			"url": irrelevant, "created_at": relevant, "expires_at": relevant, "revoked_at": relevant,
		}},
	}
	values := map[string]string{"text": `'changed'`, "timestamp with time zone": `'2026-06-01T10:00:00.000001Z'::timestamptz`, "date": `'2026-06-01'::date`}
	for table, tt := range tables {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			db := migrated(t)
			db.exec(insertRequests, 4)
			db.exec(insertLinks, 4)
			columns := db.list(`SELECT column_name || ':' || data_type FROM information_schema.columns
				WHERE table_schema = 'nudged' AND table_name = $1 AND column_name <> $2`, table, tt.key)
			if len(columns) != len(tt.columns) {
				t.Errorf("the table has %d columns, this test knows %d", len(columns), len(tt.columns))
			}
			for _, column := range columns {
				name, kind, _ := strings.Cut(column, ":")
				value, known := values[kind]
				matters, listed := tt.columns[name]
				if !known || !listed {
					t.Errorf("this test has no value for a %s or does not know the column %s", kind, name)
					continue
				}
				var want []string
				if matters {
					want = []string{"r-2", "r-3"}
				}
				// r-1 has the value already: it is written and not changed.
				db.exec(fmt.Sprintf(`UPDATE nudged.%s SET %s = %s WHERE %s = 'r-1'`, table, name, value, tt.key))
				db.quiet()
				db.exec(fmt.Sprintf(`UPDATE nudged.%s SET %s = %s WHERE %s <> 'r-4'`, table, name, value, tt.key))
				db.wantTouched(name+" got a value", want...)
				db.quiet()
				db.exec(fmt.Sprintf(`UPDATE nudged.%[1]s SET %[2]s = %[2]s`, table, name))
				db.wantTouched(name + " was written as it is")
			}
			// The columns that may be NULL, back to it.
			for _, name := range db.list(`SELECT column_name FROM information_schema.columns
				WHERE table_schema = 'nudged' AND table_name = $1 AND is_nullable = 'YES'`, table) {
				db.quiet()
				db.exec(fmt.Sprintf(`UPDATE nudged.%s SET %s = NULL WHERE %s = 'r-2'`, table, name, tt.key))
				if tt.columns[name] {
					db.wantTouched(name+" became NULL", "r-2")
				} else {
					db.wantTouched(name + " became NULL")
				}
			}
		})
	}
}

func TestWritesThatTouch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change string
		want   []string
	}{
		{"a request is deleted", `DELETE FROM nudged.requests WHERE id = 'r-1'`, []string{"r-1"}},
		{"a link is deleted", `DELETE FROM nudged.links WHERE request_id = 'r-2'`, []string{"r-2"}},
		{"nothing is deleted", `DELETE FROM nudged.links WHERE request_id = 'r-9'`, nil},
		{"nothing is updated", `UPDATE nudged.requests SET status = 'paid' WHERE id = 'r-9'`, nil},
		{"a request gets another id", `UPDATE nudged.requests SET id = 'r-9' WHERE id = 'r-1'`, []string{"r-9"}},
		{"a link goes to another request", `UPDATE nudged.links SET request_id = 'r-9' WHERE request_id = 'r-1'`, []string{"r-9"}},
		{"a refresh by upsert", `INSERT INTO nudged.links (request_id, url) VALUES ('r-1', 'https://example.com/new'), ('r-9', 'https://example.com/9')
			ON CONFLICT (request_id) DO UPDATE SET url = excluded.url, created_at = excluded.created_at, expires_at = excluded.expires_at`, []string{"r-1", "r-9"}},
		{"an upsert that changes nothing", `INSERT INTO nudged.links (request_id, url) VALUES ('r-1', 'https://example.com/new')
			ON CONFLICT (request_id) DO UPDATE SET url = excluded.url`, nil},
		{"an upsert that does nothing", `INSERT INTO nudged.links (request_id, url) VALUES ('r-1', 'https://example.com/new') ON CONFLICT DO NOTHING`, nil},
		{"a touch by hand", `SELECT nudged.touch('r-3')`, []string{"r-3"}},
		{"a touch of a request that is not there", `SELECT nudged.touch('r-9')`, []string{"r-9"}},
		{"two touches", `SELECT nudged.touch('r-1'), nudged.touch('r-1')`, []string{"r-1"}},
		{"a document", `INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport')`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := migrated(t)
			db.exec(insertRequests, 3)
			db.exec(insertLinks, 3)
			db.quiet()
			db.exec(tt.change)
			db.wantTouched(tt.name, tt.want...)
			db.exec(`UPDATE nudged.schedules SET wake_at = NULL`) // as where nothing is to come
			if strings.Contains(tt.change, "touch(") {
				db.exec(tt.change)
				db.wantTouched(tt.name+" of a request without a wake", tt.want...)
			}
		})
	}
}

// Whichever transaction commits last, a request and its link lead to a look at both.
func TestRequestAndLinkInSeparateTransactions(t *testing.T) {
	t.Parallel()
	orders := map[string][]string{
		"request, then link":       {"begin r", "insert r", "commit r", "begin l", "insert l", "commit l"},
		"link, then request":       {"begin l", "insert l", "commit l", "begin r", "insert r", "commit r"},
		"at once, request is last": {"begin r", "insert r", "begin l", "insert l", "commit l", "commit r"},
		"at once, link is last":    {"begin l", "insert l", "begin r", "insert r", "commit r", "commit l"},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := migrated(t)
			writers := map[string]*database{"r": connect(t, db.url), "l": connect(t, db.url)}
			for _, step := range order {
				verb, who, _ := strings.Cut(step, " ")
				switch {
				case verb != "insert":
					writers[who].exec(verb)
				case who == "r":
					writers[who].exec(insertRequests, 1)
				default:
					writers[who].exec(insertLinks, 1)
				}
			}
			db.wantTouched(name, "r-1")
		})
	}
}
