package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/postgres"
	"nudged/scheduler"
)

// The requests of an address are those that have it and those whose mails went to it, whatever the
// case of its letters, the newest link first.
func TestRequestsOf(t *testing.T) {
	f := newFixture(t)
	for _, sql := range []string{
		`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES
			('old', 'a', 'completed', 'Ann@Example.com', 'T'), ('new', 'a', 'pending', ' ann@example.com ', 'T'),
			('moved', 'a', 'pending', 'bo@example.com', 'T'), ('other', 'a', 'pending', 'cy@example.com', 'T'),
			('bare', 'a', 'pending', 'ANN@EXAMPLE.COM', 'T')`,
		`INSERT INTO nudged.links (request_id, url, created_at) VALUES
			('old', 'https://example.com', '2026-01-01'), ('new', 'https://example.com', '2026-03-01'),
			('moved', 'https://example.com', '2026-02-01'), ('other', 'https://example.com', '2026-04-01')`,
		`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, recipient, message_id, handed_off_at, finished_at)
			SELECT id, '2026-02-01', '3d', '2026-02-04', 'sent', 'ann@EXAMPLE.com', 'm', '2026-02-04', '2026-02-04'
			FROM unnest('{moved,gone}'::text[]) id`,
	} {
		if _, err := f.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for address, want := range map[string][]string{
		"ann@example.com": {"new", "moved", "old", "bare", "gone"}, "BO@example.com": {"moved"}, "dan@example.com": nil, "": nil, "%": nil,
	} {
		got, all, err := f.store.RequestsOf(t.Context(), address, 10)
		if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 || err != nil || all != len(want) {
			t.Errorf("%q: %d in all, %v (-want +got):\n%s", address, all, err, diff)
		}
	}
	if some, all, err := f.store.RequestsOf(t.Context(), "ann@example.com", 2); len(some) != 2 || all != 5 || err != nil {
		t.Errorf("got %v of %d, %v, want two of five", some, all, err)
	}
}

// With the two indexes that docs/explain.md tells about, the question reads no table from end to end.
func TestRequestsOfWithIndexes(t *testing.T) {
	const many = 20_000
	f := newFixture(t)
	e := newExplainer(t, f.url)
	e.exec(`SET session_replication_role = replica`)
	for _, sql := range manyRows {
		e.exec(sql, many)
	}
	e.exec(`UPDATE nudged.reminders SET recipient = 'r' || substr(request_id, 3) || '@example.com'`)
	e.exec(`CREATE INDEX ON nudged.requests (lower(btrim(recipient_email)))`)
	e.exec(`CREATE INDEX ON nudged.reminders (lower(btrim(recipient)))`)
	e.exec(`ANALYZE`)
	if tables := e.custom(readStatement(t, "requests_of"), "R-1@Example.com", 20).readsAll(); len(tables) > 0 {
		t.Errorf("reads all of %v", tables)
	}
}

// What people did about a request is what names it, an address of it, or the whole database.
func TestEventsOfARequest(t *testing.T) {
	f := newFixture(t)
	for _, sql := range []string{
		`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('r', 'a', 'pending', 'Ann@Example.com', 'T')`,
		`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, recipient, message_id, handed_off_at, finished_at)
			VALUES ('r', '2026-02-01', '3d', '2026-02-04', 'sent', 'Former@example.com', 'm', '2026-02-04', '2026-02-04')`,
		`INSERT INTO nudged.events (created_at, actor, action, request_id, link_created_at, slot, address, detail, why) VALUES
			('2026-02-01', 'ann', 'pause', 'r', NULL, NULL, NULL, 'until infinity', 'a'),
			('2026-02-02', 'ann', 'pause', 'other', NULL, NULL, NULL, 'until infinity', 'b'),
			('2026-02-03', 'nudged', 'suppress', NULL, NULL, NULL, 'ann@example.com', NULL, 'c'),
			('2026-02-04', 'nudged', 'suppress', NULL, NULL, NULL, 'former@example.com', NULL, 'd'),
			('2026-02-05', 'nudged', 'suppress', NULL, NULL, NULL, 'another@example.com', NULL, 'e'),
			('2026-02-06', 'ann', 'adopt', NULL, NULL, NULL, NULL, 'test', 'f'),
			('2026-02-07', 'ann', 'resolve', 'r', '2026-02-01', '3d', NULL, 'sent', 'g')`,
	} {
		if _, err := f.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	day := func(d int) time.Time { return time.Date(2026, 2, d, 0, 0, 0, 0, time.UTC) }
	want := []scheduler.Event{
		{At: day(1), Actor: "ann", Action: "pause", Detail: "until infinity", Why: "a"},
		{At: day(3), Actor: "nudged", Action: "suppress", Address: "ann@example.com", Why: "c"},
		{At: day(4), Actor: "nudged", Action: "suppress", Address: "former@example.com", Why: "d"},
		{At: day(6), Actor: "ann", Action: "adopt", Detail: "test", Why: "f"},
		{At: day(7), Actor: "ann", Action: "resolve", LinkCreatedAt: day(1), Slot: "3d", Detail: "sent", Why: "g"},
	}
	got, err := f.store.Events(t.Context(), "r")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestInstallation(t *testing.T) {
	f := newFixture(t)
	if err := f.store.NotePlan(t.Context(), "abc zones"); err != nil {
		t.Fatal(err)
	}
	got, err := f.store.Installation(t.Context())
	if want := (postgres.Installation{Environment: "test", Same: true, PlannedWith: "abc zones"}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := f.db.Exec(t.Context(), `DELETE FROM nudged.installation`); err != nil {
		t.Fatal(err)
	}
	if got, err := f.store.Installation(t.Context()); got != (postgres.Installation{}) || err != nil {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
}
