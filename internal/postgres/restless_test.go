package postgres_test

import (
	"testing"
	"time"

	"nudged/scheduler"
)

// An application that holds a schedule while an outcome is recorded, and then rolls back, delays
// nothing: the retry comes when its time has come, not with the next slot.
func TestRolledBackApplicationLosesNoRetry(t *testing.T) {
	outcomes := map[string]func(f *fixture, task scheduler.Task){
		"deferred": func(f *fixture, task scheduler.Task) {
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
				State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451,
			})}})
		},
		"address corrected": func(f *fixture, task scheduler.Task) {
			h := handOff(task)
			h.Recipient = "wrong@example.com" // as it had been claimed before it was corrected
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{h}})
		},
		"lease lost": func(f *fixture, _ scheduler.Task) {
			f.exec(`UPDATE nudged.reminders SET lease_until = now() - interval '1 second'`)
			f.pass("b")
		},
	}
	for name, outcome := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.due(1)
			task := f.pass("a").Tasks[0]
			application := f.begin(`UPDATE nudged.requests SET deadline = '2030-01-01' WHERE id = 'r-1'`)
			outcome(f, task)
			f.pass("a") // it is locked still
			if err := application.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.exec(`UPDATE nudged.reminders SET retry_at = now() WHERE retry_at IS NOT NULL`)
			var tasks []scheduler.Task
			for range 2 { // one pass wakes it, one takes it at the latest
				tasks = append(tasks, f.pass("a").Tasks...)
			}
			if len(tasks) != 1 {
				t.Errorf("got %d claims, want the retry", len(tasks))
			}
		})
	}
}

// What a crash made of the list of restless requests, the next daemon finds in the ledger.
func TestNextDaemonFindsRestlessRequests(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
		State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451,
	})}})
	f.exec(`UPDATE nudged.reminders SET retry_at = now()`)
	f.exec(`UPDATE nudged.schedules SET wake_at = $1`, time.Now().Add(96*time.Hour))
	next := openStore(t, f.url)
	if tasks := f.passOf(next, "b").Tasks; len(tasks) != 1 {
		t.Errorf("got %d claims, want the retry", len(tasks))
	}
}
