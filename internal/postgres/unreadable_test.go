package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/postgres"
	"nudged/scheduler"
)

// Views over the fixture's tables that fail for one row each: for r-2, whose deadline is no day, for r-3, whose link
// is shared by two, and for r-4, whose document has a division by zero.
func (f *fixture) failingViews() {
	f.t.Helper()
	for _, table := range []string{"requests", "links", "documents"} {
		f.exec(`ALTER TABLE nudged.` + table + ` RENAME TO app_` + table)
	}
	f.exec(`CREATE TABLE nudged.app_faults (request_id text, value text)`)
	f.exec(`CREATE VIEW nudged.requests AS
		SELECT id, account_id, status, recipient_email, recipient_name, title, message,
		       (SELECT value FROM nudged.app_faults f WHERE f.request_id = r.id AND value NOT IN ('0', 'twice'))::date AS deadline,
		       cadence, time_zone, locale, sender_name, reply_to, paused_until, pause_reason, opted_out_at,
		       created_at, updated_at, completed_at
		FROM nudged.app_requests r`)
	f.exec(`CREATE VIEW nudged.links AS
		SELECT request_id, url, created_at, (SELECT now() + interval '1 year' FROM nudged.app_faults f
		                                     WHERE f.request_id = l.request_id AND value = 'twice') AS expires_at, revoked_at
		FROM nudged.app_links l`)
	f.exec(`CREATE VIEW nudged.documents AS
		SELECT request_id, position, (1 / (SELECT value::int FROM nudged.app_faults f
		                                   WHERE f.request_id = d.request_id AND value = '0'))::text AS title,
		       description, required, state, rejection_reason
		FROM nudged.app_documents d`)
}

func (f *fixture) spoil(requestID, value string) {
	f.t.Helper()
	f.exec(`INSERT INTO nudged.app_faults VALUES ($1, $2)`, requestID, value)
	if value == "twice" {
		f.exec(`INSERT INTO nudged.app_faults VALUES ($1, $2)`, requestID, value)
	}
}

func mailed(tasks []scheduler.Task) []string {
	var ids []string
	for _, task := range tasks {
		ids = append(ids, task.Request.ID)
	}
	slices.Sort(ids)
	return ids
}

func named(requests []scheduler.Unreadable) []string {
	var ids []string
	for _, r := range requests {
		ids = append(ids, r.RequestID)
	}
	slices.Sort(ids)
	return ids
}

// One row that a view fails for keeps nobody else from their mail, and is seen.
func TestUnreadableRowStopsNobody(t *testing.T) {
	f := newFixture(t)
	f.due(12)
	f.exec(`INSERT INTO nudged.documents (request_id, position, title) SELECT id, 1, 'Passport' FROM nudged.requests`)
	f.exec(`UPDATE nudged.requests SET status = 'completed' WHERE id = 'r-5'`)
	f.exec(`UPDATE nudged.links SET created_at = date_trunc('second', created_at)`)
	oldest := float64(f.count(`SELECT extract(epoch FROM min(created_at) + interval '3 days')::int FROM nudged.links`))
	f.failingViews()
	f.spoil("r-2", "soon, see https://example.com/u/2")
	f.spoil("r-3", "twice")
	f.spoil("r-4", "0")
	f.spoil("r-5", "never")
	result := f.pass("a")
	if diff := cmp.Diff([]string{"r-1", "r-10", "r-11", "r-12", "r-6", "r-7", "r-8", "r-9"}, mailed(result.Tasks)); diff != "" {
		t.Errorf("mailed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"r-2", "r-3", "r-4", "r-5"}, named(result.Unreadable)); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	states := map[string]string{"r-2": "22007", "r-3": "21000", "r-4": "22012", "r-5": "22007"}
	for _, r := range result.Unreadable {
		if err := r.Err.Error(); !strings.Contains(err, "SQLSTATE "+states[r.RequestID]) || strings.Contains(err, "https:") {
			t.Errorf("%s: got %q, want SQLSTATE %s and no link", r.RequestID, err, states[r.RequestID])
		}
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE problem = 'unreadable_row'
	                 AND wake_at BETWEEN now() + interval '59 minutes' AND now() + interval '1 hour'`); n != 4 {
		t.Errorf("%d requests are left alone for an hour, want 4", n)
	}
	f.gauges().want(map[string]float64{
		"nudged_requests_misconfigured unreadable_row": 4, "nudged_requests_open pending": 11, "nudged_slots_due": 8,
		"nudged_oldest_due_slot_timestamp_seconds": oldest,
	})
	if again := f.pass("a"); len(again.Tasks)+again.Fresh+again.Due != 0 {
		t.Errorf("the next pass looks at %d requests, want none", again.Fresh+again.Due)
	}

	// What is put right and touched is mailed.
	f.exec(`DELETE FROM nudged.app_faults`)
	f.exec(`SELECT nudged.touch(id) FROM nudged.app_requests WHERE id IN ('r-2', 'r-3', 'r-4', 'r-5') ORDER BY id`)
	result = f.pass("a")
	if diff := cmp.Diff([]string{"r-2", "r-3", "r-4"}, mailed(result.Tasks)); diff != "" || len(result.Unreadable) > 0 {
		t.Errorf("unreadable: %v; mailed (-want +got):\n%s", named(result.Unreadable), diff)
	}
}

// Where a view fails for everything, everything is seen to fail, a part of it in each pass.
func TestUnreadableRowsOnly(t *testing.T) {
	f := newFixture(t)
	f.due(250)
	f.failingViews()
	f.exec(`INSERT INTO nudged.app_faults SELECT id, 'soon' FROM nudged.app_requests`)
	for _, want := range []int{100, 100, 50} {
		if result := f.pass("a"); len(result.Unreadable) != want || len(result.Tasks) != 0 || !result.Partial {
			t.Errorf("%d unreadable, %d tasks, partial %t, want %d, none and true", len(result.Unreadable), len(result.Tasks), result.Partial, want)
		}
	}
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at < now() + interval '5 minutes'`); n != 250 {
		t.Errorf("%d requests are looked at again within five minutes, want all", n)
	}
	if result := f.pass("a"); result.Partial || len(result.Unreadable) > 0 {
		t.Errorf("%d unreadable at last, want none", len(result.Unreadable))
	}
}

// A row that cannot be read at the hand-off keeps no outcome from being recorded, and nothing else from going on.
func TestUnreadableRowAtTheHandOff(t *testing.T) {
	f := newFixture(t)
	f.due(4)
	f.failingViews()
	tasks := f.pass("a").Tasks
	if verdicts := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}}); verdicts[tasks[0].ClaimID] != "" {
		t.Fatalf("got %v, want to go ahead", verdicts)
	}
	f.spoil("r-3", "twice")
	got := f.settle(scheduler.Batch{
		Settlements: []scheduler.Settlement{settlement(tasks[0], sent)},
		HandOffs:    []scheduler.HandOff{handOff(tasks[1]), handOff(tasks[2]), handOff(tasks[3])},
	})
	want := map[scheduler.ClaimID]scheduler.Reason{
		tasks[1].ClaimID: "", tasks[2].ClaimID: scheduler.ReasonLeaseLost, tasks[3].ClaimID: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	for id, row := range map[string]string{"r-1": "sent/", "r-2": "sending/", "r-3": "claimed/", "r-4": "sending/"} {
		f.wantRow(id, "3d", row)
	}
	if result := f.pass("a"); len(result.Unreadable) != 1 || result.Unreadable[0].RequestID != "r-3" {
		t.Errorf("the next pass finds %v, want r-3", named(result.Unreadable))
	}
	f.exec(`UPDATE nudged.reminders SET lease_until = now() WHERE state = 'claimed'`)
	f.pass("b")
	f.wantRow("r-3", "3d", "deferred/lease_lost")
	f.exec(`DELETE FROM nudged.app_faults`)
	f.exec(`SELECT nudged.touch('r-3')`)
	if result := f.pass("b"); len(result.Tasks) != 1 || result.Tasks[0].Attempt != 1 {
		t.Errorf("%v is mailed, want r-3 by its first attempt", mailed(result.Tasks))
	}
}

// Whatever PostgreSQL calls it that a view fails for one row.
func TestUnreadableRowByAnyName(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"check of a domain": `recipient_email::nudged.short`,
		"raised":            `nudged.raises(recipient_email, 'raise_exception')`,
		"raised as another": `nudged.raises(recipient_email, 'check_violation')`,
		"raised as its own": `nudged.raises(recipient_email, 'AB123')`,
		"external routine":  `nudged.raises(recipient_email, '39000')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due(3)
			f.exec(`CREATE DOMAIN nudged.short AS text CHECK (length(VALUE) < 5)`)
			f.exec(`CREATE FUNCTION nudged.raises(value text, code text) RETURNS text LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'no mail for %', value USING ERRCODE = code; END $$`)
			f.exec(`ALTER TABLE nudged.requests RENAME TO app_requests`)
			f.exec(`CREATE VIEW nudged.requests AS SELECT id, account_id, status,
				CASE id WHEN 'r-2' THEN (` + value + `)::text ELSE recipient_email END AS recipient_email,
				recipient_name, title, message, deadline, cadence, time_zone, locale, sender_name, reply_to,
				paused_until, pause_reason, opted_out_at, created_at, updated_at, completed_at FROM nudged.app_requests`)
			result := f.pass("a")
			if diff := cmp.Diff([]string{"r-1", "r-3"}, mailed(result.Tasks)); diff != "" {
				t.Errorf("mailed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"r-2"}, named(result.Unreadable)); diff != "" {
				t.Errorf("unreadable (-want +got):\n%s", diff)
			}
			if _, _, err := f.store.RequestsOf(t.Context(), "x@example.com", 10); err == nil || strings.Contains(err.Error(), "@") {
				t.Errorf("who asks for an address hears %v, want no other address", err)
			}
		})
	}
}

// Where the status itself cannot be read, the other open requests still are.
func TestOpenRequestsBesideAnUnreadableStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.exec(`UPDATE nudged.requests SET status = 'completed' WHERE id = 'r-1'`)
	f.exec(`ALTER TABLE nudged.requests RENAME TO app_requests`)
	f.exec(`CREATE VIEW nudged.requests AS SELECT id, account_id,
		CASE id WHEN 'r-2' THEN recipient_email::int::text ELSE status END AS status,
		recipient_email, recipient_name, title, message, deadline, cadence, time_zone, locale, sender_name, reply_to,
		paused_until, pause_reason, opted_out_at, created_at, updated_at, completed_at FROM nudged.app_requests`)
	var read []string
	err := f.store.EachOpen(t.Context(), func(in scheduler.Input) error { read = append(read, in.RequestID); return nil })
	if diff := cmp.Diff([]string{"r-3"}, read); diff != "" {
		t.Errorf("open requests that are read (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), `request "r-2" cannot be read`) || strings.Contains(err.Error(), "@") {
		t.Errorf("got %v, want r-2 named, without its address", err)
	}
}

// The page that shows what is wrong does not read what cannot be read.
func TestStatusOfUnreadableRows(t *testing.T) {
	f := newFixture(t)
	f.due(2)
	f.exec(`ALTER TABLE nudged.links RENAME TO app_links`)
	f.exec(`CREATE VIEW nudged.links AS
		SELECT request_id, url, created_at + CASE request_id WHEN 'r-1' THEN 'x' ELSE '0 s' END::text::interval AS created_at,
		       expires_at, revoked_at FROM nudged.app_links`)
	f.pass("a")
	want := []postgres.Mistake{{RequestID: "r-1", Problem: scheduler.ProblemUnreadable}}
	if diff := cmp.Diff(want, f.status(postgres.StatusQuery{Rows: 10, Count: 10, Days: hours(2)}).Mistakes); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	var read []string
	_, _, loading := f.store.Load(t.Context(), "r-1")
	listing := f.store.EachOpen(t.Context(), func(in scheduler.Input) error { read = append(read, in.RequestID); return nil })
	for want, err := range map[string]error{"fails for a row": loading, `request "r-1" cannot be read: `: listing} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), `"x"`) {
			t.Errorf("got %v, want %q without the value", err, want)
		}
	}
	if diff := cmp.Diff([]string{"r-2"}, read); diff != "" {
		t.Errorf("open requests that are read (-want +got):\n%s", diff)
	}
}
