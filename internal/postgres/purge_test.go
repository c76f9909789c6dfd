package postgres_test

import (
	"testing"
	"time"

	"nudged/scheduler"
)

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
