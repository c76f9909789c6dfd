package postgres_test

import (
	"errors"
	"testing"
	"time"

	"nudged/cadence"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

// mailedLongAgo sends what is due, and makes it all older than the retention.
func (f *fixture) mailedLongAgo() {
	f.t.Helper()
	for _, task := range f.pass("a").Tasks {
		f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
		f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	}
	f.exec(`UPDATE nudged.reminders SET finished_at = now() - interval '401 days', handed_off_at = now() - interval '401 days'`)
}

func (f *fixture) purge(want int64) {
	f.t.Helper()
	if deleted, err := f.store.Purge(f.t.Context(), 400*24*time.Hour); err != nil || deleted != want {
		f.t.Fatalf("got %d deleted (%v), want %d", deleted, err, want)
	}
}

// A pending request that is older than the retention gets no second mail after a purge.
func TestPurgeKeepsWhatCanBeComputedAgain(t *testing.T) {
	f := newFixture(t)
	f.due(4)
	for _, task := range f.pass("a").Tasks {
		f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
		outcome := sent
		if task.Request.ID == "r-4" {
			outcome = scheduler.Outcome{State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost}
		}
		f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, outcome)}})
	}
	// r-1 stays open, r-2 is over, r-3 has a new link, r-4 is over but unknown.
	f.exec(`UPDATE nudged.reminders SET finished_at = now() - interval '401 days'`)
	f.exec(`UPDATE nudged.requests SET status = 'completed' WHERE id IN ('r-2', 'r-4')`)
	f.exec(`UPDATE nudged.links SET created_at = now() WHERE request_id = 'r-3'`)
	deleted, err := f.store.Purge(t.Context(), 400*24*time.Hour)
	if err != nil || deleted != 2 {
		t.Fatalf("got %d deleted (%v), want 2", deleted, err)
	}
	f.wantRow("r-1", "3d", "sent/")
	f.wantRow("r-4", "3d", "unknown/reply_lost")
	f.exec(`SELECT nudged.touch(id) FROM nudged.requests`)
	if result := f.pass("a"); len(result.Tasks) != 0 {
		t.Errorf("got %d claims after the purge, want none", len(result.Tasks))
	}
}

func TestPurgeKeepsWhatIsYoung(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.exec(`UPDATE nudged.requests SET status = 'completed'`)
	if deleted, err := f.store.Purge(t.Context(), 400*24*time.Hour); err != nil || deleted != 0 {
		t.Errorf("got %d deleted (%v), want none", deleted, err)
	}
}

// A link that the ledger was purged of gets no other mail, whatever is configured or changed afterwards: which of its
// slots went out nobody can tell.
func TestPurgedLinkIsOver(t *testing.T) {
	t.Parallel()
	reopen := `UPDATE nudged.requests SET status = 'pending_resubmission'`
	for name, changes := range map[string][]string{
		"opened again":              {reopen},
		"a later deadline":          {reopen, `UPDATE nudged.requests SET deadline = now()::date + 1`},
		"the link written back":     {reopen, `UPDATE nudged.links SET created_at = date_trunc('second', created_at)`},
		"deleted and restored":      {`DELETE FROM nudged.requests`, `DELETE FROM nudged.links`},
		"deleted before, restored":  {"before", `DELETE FROM nudged.requests`, `DELETE FROM nudged.links`},
		"its row is read elsewhere": {reopen, `UPDATE nudged.schedules SET wake_at = now()`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due(1)
			f.mailedLongAgo()
			f.exec(`CREATE TABLE nudged.backup_r AS TABLE nudged.requests`)
			f.exec(`CREATE TABLE nudged.backup_l AS TABLE nudged.links`)
			f.exec(`UPDATE nudged.requests SET status = 'completed'`)
			before := changes[0] == "before"
			if before {
				for _, sql := range changes[1:] {
					f.exec(sql)
				}
				f.pass("a") // which drops the schedule
			}
			f.purge(1)
			if !before {
				for _, sql := range changes {
					f.exec(sql)
					f.pass("a")
				}
			}
			f.exec(`INSERT INTO nudged.requests TABLE nudged.backup_r ON CONFLICT DO NOTHING`)
			f.exec(`INSERT INTO nudged.links TABLE nudged.backup_l ON CONFLICT DO NOTHING`)
			f.policy.Limits.MaxLateness = 1000 * 24 * time.Hour
			f.policy.Cadences = map[string]*cadence.Cadence{"default": parse(t, "2d", "3d", "4d")}
			f.exec(`SELECT nudged.touch('r-1')`)
			if result := f.pass("a"); len(result.Tasks) != 0 {
				t.Errorf("slot %s goes out", result.Tasks[0].Slot.Name)
			}
			if got := f.value(`SELECT problem || ' ' || coalesce(wake_at::text, 'NULL') FROM nudged.schedules`); got != "purged_link NULL" {
				t.Errorf("the schedule says %q, want the problem and no wake", got)
			}
			// A new link begins a new series.
			f.exec(`UPDATE nudged.links SET created_at = now() - interval '3 days 50 seconds'`)
			if result := f.pass("a"); len(result.Tasks) != 1 {
				t.Errorf("%d slots of a new link go out, want 1", len(result.Tasks))
			}
		})
	}
}

// An older link that came back into force is not over because a newer one was forgotten.
func TestPurgeKeepsNewerLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(1)
	f.mailedLongAgo()
	f.exec(`UPDATE nudged.links SET created_at = created_at - interval '1 day'`)
	f.purge(0)
	f.exec(`SELECT nudged.touch('r-1')`)
	if result := f.pass("a"); len(result.Tasks) != 1 {
		t.Errorf("%d slots go out, want that of the older link", len(result.Tasks))
	}
}

// What is beside a row that stays is kept with it: a request that has ended is forgotten whole or not at all.
func TestPurgeForgetsRequestsWhole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(3)
	f.mailedLongAgo()
	f.exec(`UPDATE nudged.requests SET status = 'completed'`)
	f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, finished_at)
		SELECT request_id, link_created_at, '7d', due_at, 'skipped', 'paused', 0, now() - interval '399 days' FROM nudged.reminders WHERE request_id = 'r-1'`)
	locked := f.begin(`SELECT FROM nudged.schedules WHERE request_id = 'r-2' FOR UPDATE`)
	f.purge(1) // r-3: r-1 is young still, r-2 is being looked at
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.purge(1)
	f.exec(`UPDATE nudged.reminders SET finished_at = now() - interval '401 days'`)
	f.purge(2)
	if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE purged_until IS NOT NULL`); n != 3 {
		t.Errorf("%d requests have a link that is noted, want 3", n)
	}
}

// One row that a view fails for does not keep the ledger from being purged of others, whether a pass has met it or not.
func TestPurgeBesideAnUnreadableRow(t *testing.T) {
	t.Parallel()
	for name, met := range map[string]bool{"met": true, "not met": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due(30)
			f.mailedLongAgo()
			f.exec(`UPDATE nudged.requests SET status = 'completed'`)
			f.pass("a")
			f.failingViews()
			f.exec(`ALTER TABLE nudged.app_requests RENAME COLUMN status TO word`)
			f.exec(`CREATE OR REPLACE VIEW nudged.requests AS SELECT id, account_id, CASE id WHEN 'r-7' THEN (1 / length(substr(word, 1, 0)))::text ELSE word END AS status,
				recipient_email, recipient_name, title, message, NULL::date AS deadline, cadence, time_zone, locale, sender_name, reply_to,
				paused_until, pause_reason, opted_out_at, created_at, updated_at, completed_at FROM nudged.app_requests`)
			if met {
				f.exec(`SELECT nudged.touch('r-7')`)
				if result := f.pass("a"); len(result.Unreadable) != 1 {
					t.Fatalf("%d rows are unreadable, want 1", len(result.Unreadable))
				}
			}
			f.purge(29)
			f.wantRow("r-7", "3d", "sent/")
			if result := f.pass("a"); !met && (len(result.Unreadable) != 1 || result.Unreadable[0].RequestID != "r-7") {
				t.Errorf("the next pass names %v, want r-7", named(result.Unreadable))
			}
		})
	}
}

// What another environment has adopted is not purged by this one's retention, but by the daemon it belongs to.
func TestPurgeLeavesWhatAnotherEnvironmentAdopted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(1)
	f.mailedLongAgo()
	f.exec(`UPDATE nudged.requests SET status = 'completed'`)
	by := postgres.Act{Actor: "ann", Why: "a rehearsal"}
	if _, err := f.store.Readopt(t.Context(), "staging", false, by); err != nil {
		t.Fatal(err)
	}
	deleted, err := f.store.Purge(t.Context(), time.Hour)
	if _, refused := errors.AsType[*postgres.AdoptionError](err); !refused || deleted != 0 {
		t.Errorf("adopted away: %d rows purged, %v; want none and an *AdoptionError", deleted, err)
	}
	if _, err := f.store.Readopt(t.Context(), "test", false, by); err != nil {
		t.Fatal(err)
	}
	f.purge(1)
}
