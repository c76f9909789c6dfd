package postgres_test

import (
	"testing"

	"nudged/scheduler"
)

// TestDeletedDuringTheDelivery: request and link are deleted while a mail is on its way. What becomes of it is
// still looked at, and ends.
func TestDeletedDuringTheDelivery(t *testing.T) {
	f := newFixture(t)
	f.due(2)
	greylisted := scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451}
	tasks := f.pass("a").Tasks
	for _, task := range tasks {
		f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	}
	f.exec(`DELETE FROM nudged.requests`)
	f.exec(`DELETE FROM nudged.links`)
	f.pass("a") // looks while both are in flight
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(tasks[0], greylisted), settlement(tasks[1], sent)}})
	f.pass("a")
	f.wantRow(tasks[0].Request.ID, "3d", "skipped/request_closed")
	f.wantRow(tasks[1].Request.ID, "3d", "sent/")
	f.exec(`UPDATE nudged.schedules SET wake_at = now() WHERE wake_at IS NOT NULL`) // the leases are over
	f.pass("a")
	if n := f.count(`SELECT count(*) FROM nudged.schedules`); n != 0 {
		t.Errorf("%d schedules are left of what is gone", n)
	}
}

// TestAddressDeletedBeforeTheHandOff: a view may lose the address between claim and hand-off.
func TestAddressDeletedBeforeTheHandOff(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	f.exec(`ALTER TABLE nudged.requests RENAME TO app_requests`)
	f.exec(`CREATE TABLE nudged.contacts AS SELECT id, recipient_email AS email FROM nudged.app_requests`)
	f.exec(`CREATE VIEW nudged.requests AS
		SELECT r.id, r.account_id, r.status, c.email AS recipient_email, r.recipient_name, r.title, r.message, r.deadline,
		       r.cadence, r.time_zone, r.locale, r.sender_name, r.reply_to, r.paused_until, r.pause_reason, r.opted_out_at,
		       r.created_at, r.updated_at, r.completed_at
		FROM nudged.app_requests r LEFT JOIN nudged.contacts c ON c.id = r.id`)
	task := f.pass("a").Tasks[0]
	f.exec(`DELETE FROM nudged.contacts`)
	verdicts := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	if got := verdicts[task.ClaimID]; got != scheduler.ReasonRecipientChanged {
		t.Errorf("got %q, want %q", got, scheduler.ReasonRecipientChanged)
	}
	f.wantRow("r-1", "3d", "deferred/recipient_changed")
}
