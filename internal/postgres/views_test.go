package postgres_test

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/pgtest"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

// existingTables returns the SQL of docs/existing-tables.md, block by block. Roles are the whole
// cluster's, so their names are made this database's own.
func existingTables(t testing.TB, roles *strings.Replacer) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/existing-tables.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, roles.Replace(match[1]))
	}
	if len(blocks) != 8 {
		t.Fatalf("the document has %d blocks of SQL, want the tables, the roles and six steps", len(blocks))
	}
	return blocks
}

// overViews is a fixture whose requests, links and documents are views, as the document makes them.
// The store has the rights that the document gives it, and no other; so has the application.
type overViews struct {
	*fixture
	app string // the application's role
}

func newOverViews(t testing.TB) *overViews {
	t.Helper()
	target := pgtest.New(t)
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.TrimPrefix(parsed.Path, "/nudged_test")
	app, daemon := "app_role"+own, "nudged_role"+own
	admin := newExplainer(t, target)
	for _, sql := range existingTables(t, strings.NewReplacer("app_role", app, "nudged_role", daemon)) {
		admin.exec(sql)
	}
	admin.exec(`GRANT USAGE ON SCHEMA app TO ` + app)
	admin.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO ` + app)
	query := parsed.Query()
	query.Set("role", daemon)
	parsed.RawQuery = query.Encode()
	f := fixtureAt(t, parsed.String())
	// The test itself looks at everything.
	f.db.Close()
	f.db = openPool(t, target)
	t.Cleanup(func() {
		for _, role := range []string{app, daemon} {
			f.exec(`DROP OWNED BY ` + role)
			f.exec(`DROP ROLE ` + role)
		}
	})
	return &overViews{f, app}
}

// write is what the application does, with the application's rights.
func (v *overViews) write(sql string, args ...any) {
	v.t.Helper()
	tx, err := v.db.Begin(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(v.t.Context()) }()
	if _, err := tx.Exec(v.t.Context(), `SET LOCAL ROLE `+v.app); err != nil {
		v.t.Fatal(err)
	}
	if _, err := tx.Exec(v.t.Context(), sql, args...); err != nil {
		v.t.Fatalf("%s: %v", sql, err)
	}
	if err := tx.Commit(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
}

// case42 is a waiting case with an old and a live link, of which slot 3d fell due a minute ago.
func (v *overViews) case42() {
	v.t.Helper()
	v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, client_name, client_time_zone, subject, handled_by)
		VALUES (42, 7, 'returned', 'ann@example.com', 'Ann', 'UTC', 'Tax return', 'Bob'), (43, 7, 'complete', 'x@example.com', 'X', NULL, 'T', NULL)`)
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at, withdrawn_at) VALUES (42, 'https://example.com/old', now() - interval '9 days', now() - interval '4 days')`)
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at) SELECT id, 'https://example.com/' || id, now() - interval '3 days 1 minute' FROM app.cases`)
	v.write(`INSERT INTO app.papers (case_id, name, verdict, remark) VALUES (42, 'Passport', 'open', NULL), (42, 'Payslip', 'refused', 'blurred'), (42, 'Lease', 'accepted', NULL)`)
}

func TestReminderOverViews(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	v.case42()
	result := v.pass("a")
	if len(result.Tasks) != 1 || result.Fresh != 2 {
		t.Fatalf("got %d tasks of %d requests, want 1 of 2", len(result.Tasks), result.Fresh)
	}
	task := result.Tasks[0]
	want := scheduler.Request{
		ID: "42", AccountID: "7", Status: scheduler.StatusPendingResubmission, RecipientEmail: "ann@example.com",
		RecipientName: "Ann", Title: "Tax return", TimeZone: "UTC", SenderName: "Bob",
	}
	if diff := cmp.Diff(want, task.Request); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	documents := []scheduler.Document{
		{Title: "Passport", Required: true, State: scheduler.DocumentMissing},
		{Title: "Payslip", Required: true, State: scheduler.DocumentRejected, RejectionReason: "blurred"},
		{Title: "Lease", Required: true, State: scheduler.DocumentApproved},
	}
	if diff := cmp.Diff(documents, task.Documents); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if task.Link.URL != "https://example.com/42" || task.Slot.Name != "3d" {
		t.Errorf("got slot %s of %s, want 3d of the live link", task.Slot.Name, task.Link.URL)
	}
	v.exec(`SELECT nudged.touch('42')`)
	if again := v.pass("b"); len(again.Tasks) != 0 {
		t.Error("a claimed slot was claimed again")
	}
	if verdict := v.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}}); len(verdict) != 1 || verdict[task.ClaimID] != "" {
		t.Errorf("hand-off: got %v, want to go ahead", verdict)
	}
	v.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	v.wantRow("42", "3d", "sent/")
	if n := v.count(`SELECT count(*) FROM nudged.reminders`); n != 1 {
		t.Errorf("%d reminders, want 1", n)
	}
}

// What the application does to its own tables is seen: by its trigger at the next pass, and without
// one at the hand-off.
func TestChangesUnderViews(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ change, row string }{
		"case complete":  {`UPDATE app.cases SET stage = 'complete' WHERE id = 42`, "skipped/request_closed"},
		"case deleted":   {`DELETE FROM app.cases WHERE id = 42`, "skipped/request_closed"},
		"on hold":        {`UPDATE app.cases SET on_hold_until = 'infinity' WHERE id = 42`, "skipped/paused"},
		"opted out":      {`UPDATE app.cases SET no_reminders_since = now() WHERE id = 42`, "skipped/opted_out"},
		"new address":    {`UPDATE app.cases SET client_email = 'b@example.com' WHERE id = 42`, "deferred/recipient_changed"},
		"new link":       {`INSERT INTO app.upload_links (case_id, address) VALUES (42, 'https://example.com/new')`, "skipped/link_replaced"},
		"link withdrawn": {`UPDATE app.upload_links SET withdrawn_at = now() WHERE case_id = 42`, "skipped/link_revoked"},
		"link over":      {`UPDATE app.upload_links SET valid_until = now() WHERE case_id = 42`, "skipped/link_expired"},
		"links deleted":  {`DELETE FROM app.upload_links WHERE case_id = 42`, "skipped/link_revoked"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newOverViews(t)
			v.case42()
			tasks := v.pass("a").Tasks
			if len(tasks) != 1 {
				t.Fatalf("got %d tasks, want 1", len(tasks))
			}
			v.write(tt.change)
			if n := v.count(`SELECT count(*) FROM nudged.schedules WHERE request_id = '42' AND wake_at = '-infinity'`); n != 1 {
				t.Error("the change touched nothing")
			}
			v.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
			v.wantRow("42", "3d", tt.row)
		})
	}
}

// Everything else that the daemon and a person do works through the views as well.
func TestTheRestOverViews(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	v.case42()
	v.pass("a")
	ctx, by := t.Context(), postgres.Act{Actor: "ann", Why: "on holiday"}
	if err := v.store.CheckSchema(ctx); err != nil {
		t.Error(err)
	}
	if err := v.store.Pause(ctx, "42", scheduler.Forever(), by); err != nil {
		t.Error(err)
	}
	if n := v.count(`SELECT count(*) FROM app.cases WHERE id = 42 AND on_hold_until = 'infinity' AND hold_reason = 'on holiday'`); n != 1 {
		t.Error("the pause is not in the application's table")
	}
	for _, paused := range []bool{true, false} {
		if was, err := v.store.Resume(ctx, "42", by); was != paused || err != nil {
			t.Errorf("resumed: %t, %v, want %t", was, err, paused)
		}
	}
	v.exec(`UPDATE nudged.schedules SET wake_at = now() + interval '1 day'`)
	if n, err := v.store.Replan(ctx, 1); n == 0 || err != nil {
		t.Errorf("replan: %d, %v", n, err)
	}
	open := 0
	if err := v.store.EachOpen(ctx, func(scheduler.Input) error { open++; return nil }); err != nil || open != 1 {
		t.Errorf("%d open requests, %v", open, err)
	}
	if _, err := v.store.Purge(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if _, err := v.store.Suppress(ctx, "ann@example.com", by); err != nil {
		t.Error(err)
	}
	if adopted, err := v.store.Readopt(ctx, "test", true, by); !adopted || err != nil {
		t.Errorf("adopted: %t, %v", adopted, err)
	}
	if in, documents, err := v.store.Load(ctx, "42"); err != nil || !in.Suppressed || len(documents) != 3 {
		t.Errorf("load: suppressed %t, %d documents, %v", in.Suppressed, len(documents), err)
	}
	v.exec(`UPDATE nudged.schedules SET wake_at = NULL`)
	v.gauges().want(map[string]float64{"nudged_requests_open pending_resubmission": 1, "nudged_slots_due": 1,
		"nudged_oldest_due_slot_timestamp_seconds": float64(v.count(`SELECT extract(epoch FROM min(due_at))::int FROM nudged.reminders`))})
}

// The look-ups go through the indexes on the text form of the ids.
func TestPlansOverViews(t *testing.T) {
	t.Parallel()
	const many = 50_000
	v := newOverViews(t)
	e := newExplainer(t, v.db.Config().ConnString())
	e.exec(`SET session_replication_role = replica`)
	e.exec(`INSERT INTO app.cases (id, office_id, stage, client_email, subject)
		SELECT i, 1, CASE i % 4 WHEN 0 THEN 'waiting' ELSE 'complete' END, 'c' || i || '@example.com', 'T' FROM generate_series(1, $1::int) i`, many)
	e.exec(`INSERT INTO app.upload_links (case_id, address, created_at)
		SELECT i, 'https://example.com/' || i, now() - j * interval '30 days' FROM generate_series(1, $1::int) i, generate_series(1, 2) j`, many)
	e.exec(`INSERT INTO app.papers (case_id, name) SELECT i, 'Passport' FROM generate_series(1, $1::int) i, generate_series(1, 2)`, many)
	e.exec(`INSERT INTO nudged.schedules (request_id, wake_at) SELECT id::text, now() + interval '1 day' FROM app.cases`)
	e.exec(`ANALYZE`)
	readers := []string{"subjects", "documents", "hand_off", "open_ids", "pause", "purge"}
	for _, n := range []int{16, 500} {
		for _, s := range statements(n) {
			if !slices.Contains(readers, s.file) {
				continue
			}
			sql := readStatement(t, s.file)
			for kind, plan := range map[string]node{"custom": e.custom(sql, s.args...), "generic": e.generic(sql, len(s.args))} {
				for _, relation := range plan.readsAll() {
					if slices.Contains([]string{"cases", "upload_links", "papers"}, relation) {
						t.Errorf("%s, %s plan for %d: reads all of app.%s", s.file, kind, n, relation)
					}
				}
			}
		}
	}
	// The document's own check finds the same.
	for check := range strings.Lines(existingTables(t, strings.NewReplacer())[7]) {
		if plan := e.custom(strings.TrimPrefix(strings.TrimSpace(check), "EXPLAIN ")); len(plan.readsAll()) > 0 {
			t.Errorf("%s reads all of %v", check, plan.readsAll())
		}
	}
}
