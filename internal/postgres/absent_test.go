package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nudged/internal/postgres"

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

// TestNothingInAView: where an application has nothing to put in, its views say NULL, without a type. The
// reminder goes out, and a document that nothing is said of is one that is missing.
func TestNothingInAView(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	f.exec(`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport')`)
	for table, columns := range map[string]string{
		"requests": `id, NULL AS account_id, status, recipient_email, NULL AS recipient_name, NULL AS title, NULL AS message,
			NULL AS deadline, NULL AS cadence, NULL AS time_zone, NULL AS locale, NULL AS sender_name, NULL AS reply_to,
			NULL AS paused_until, NULL AS pause_reason, NULL AS opted_out_at, NULL AS created_at, NULL AS updated_at, NULL AS completed_at`,
		"links": `request_id, url, created_at, NULL AS expires_at, NULL AS revoked_at`,
		"documents": `request_id, position, NULL AS title, NULL AS description, NULL AS required, NULL AS state,
			NULL AS rejection_reason`,
	} {
		f.exec(`ALTER TABLE nudged.` + table + ` RENAME TO app_` + table)
		f.exec(`CREATE VIEW nudged.` + table + ` AS SELECT ` + columns + ` FROM nudged.app_` + table)
	}
	tasks := f.pass("a").Tasks
	if len(tasks) != 1 || len(tasks[0].Documents) != 1 {
		t.Fatalf("got %+v, want one task with one document", tasks)
	}
	want := scheduler.Document{Required: true, State: scheduler.DocumentMissing}
	if got := tasks[0].Documents[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
	f.wantRow("r-1", "3d", "sending/")
}

// TestSuppressedHoweverItIsSpelled: an address may be written with the name of its domain or with its
// A-labels, in the row as in the command.
func TestSuppressedHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const travels = "ana@xn--bcher-kva.example"
	by := postgres.Act{Actor: "ann", Why: "she asked"}
	for _, suppressed := range []string{"ana@bücher.example", "Ana@BÜCHER.example", travels} {
		f := newFixture(t)
		for i, spelled := range []string{"ana@bücher.example", "ANA@BÜCHER.example", travels, "ana@XN--bcher-kva.example"} {
			f.due1(fmt.Sprint("r-", i))
			f.exec(`UPDATE nudged.requests SET recipient_email = $1 WHERE id = $2`, spelled, fmt.Sprint("r-", i))
		}
		if changed, err := f.store.Suppress(t.Context(), suppressed, by); !changed || err != nil {
			t.Fatalf("suppress %s: %t, %v", suppressed, changed, err)
		}
		for _, task := range f.pass("a").Tasks { // a spelling that only the mail server makes out
			h := handOff(task)
			h.To = travels
			if verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{h}})[task.ClaimID]; verdict != scheduler.ReasonSuppressed {
				t.Errorf("%s is suppressed, %s is handed off: %q", suppressed, task.Request.RecipientEmail, verdict)
			}
		}
		if n := f.count(`SELECT count(*) FROM nudged.reminders WHERE reason = 'suppressed'`); n != 4 {
			t.Errorf("%s is suppressed: %d of 4 are skipped for that", suppressed, n)
		}
		if changed, err := f.store.Unsuppress(t.Context(), travels, by); !changed || err != nil {
			t.Errorf("unsuppress: %t, %v", changed, err)
		}
		if n := f.count(`SELECT count(*) FROM nudged.suppressions`); n != 0 {
			t.Errorf("%d spellings are still suppressed", n)
		}
	}
}

// TestRefusedAddressIsTheOneSuppressed: what a server refuses for good is held, as it was written and however
// it travelled, and no other address is.
func TestRefusedAddressIsTheOneSuppressed(t *testing.T) {
	t.Parallel()
	refused := scheduler.Outcome{State: scheduler.StateFailed, Reason: scheduler.ReasonRecipientRefused, SMTPCode: 550, SMTPReply: "no such user", Suppress: true}
	for written, travels := range map[string]string{
		"ana@example.com": "ana@example.com", "\u00a0ana@example.com": "\u00a0ana@example.com",
		`"Ana Smith"@example.com`: "Ana Smith@example.com", "Ana@STRA\u1e9eE.example": "Ana@strasse.example",
	} {
		f := newFixture(t)
		f.due(2)
		f.exec(`UPDATE nudged.requests SET recipient_email = $1`, written)
		tasks := f.pass("a").Tasks
		first, second := handOff(tasks[0]), handOff(tasks[1])
		first.To, second.To = travels, travels
		f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{first}})
		f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(tasks[0], refused)}})
		if verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{second}})[tasks[1].ClaimID]; verdict != scheduler.ReasonSuppressed {
			t.Errorf("%q was refused, and is handed off again: %q", written, verdict)
		}
		f.due1("later")
		f.exec(`UPDATE nudged.requests SET recipient_email = $1 WHERE id = 'later'`, written)
		if result := f.pass("a"); len(result.Tasks) != 0 {
			t.Errorf("%q was refused, and is claimed again", written)
		}
		if n := f.count(`SELECT count(*) FROM nudged.suppressions WHERE address = 'ana@example.com'`); n > 0 && written != "ana@example.com" {
			t.Errorf("%q was refused, and ana@example.com is suppressed", written)
		}
	}
}

// TestValueThatDoesNotFit: a view of the application may give anything. The mistake is told with the request
// and the column.
func TestValueThatDoesNotFit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(2)
	f.exec(`ALTER TABLE nudged.requests ALTER COLUMN paused_until TYPE text`)
	f.exec(`UPDATE nudged.requests SET paused_until = 'soon' WHERE id = 'r-2'`)
	_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
	if err == nil || !strings.Contains(err.Error(), `request "r-2": `) || !strings.Contains(err.Error(), "nudged.requests.paused_until") {
		t.Errorf("got %v", err)
	}
}

// TestIdOfAnotherType: a view that forgets to make its ids text is told of in words of views.
func TestIdOfAnotherType(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.due(1)
	f.exec(`ALTER TABLE nudged.links RENAME TO app_links`)
	f.exec(`CREATE VIEW nudged.links AS SELECT 7 AS request_id, url, created_at, expires_at, revoked_at FROM nudged.app_links`)
	_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
	if err == nil || !strings.Contains(err.Error(), "an id that is not text") || !strings.Contains(err.Error(), "operator does not exist: integer = text") {
		t.Errorf("got %v", err)
	}
}

// TestDeadlineIsADay: an instant has a day in each zone, and nudged would have to guess which is meant.
func TestDeadlineIsADay(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	for _, kind := range []string{"timestamptz", "timestamp"} {
		f.exec(`ALTER TABLE nudged.requests ALTER COLUMN deadline TYPE ` + kind)
		_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
		if err == nil || !strings.Contains(err.Error(), "nudged.requests.deadline is an instant: make it a day") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// TestInstantIsNoDay: a day begins at another moment in each zone, and nudged would have to guess in which.
func TestInstantIsNoDay(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"links.created_at", "links.expires_at", "links.revoked_at", "requests.paused_until", "requests.opted_out_at"} {
		f := newFixture(t)
		f.due(1)
		table, name, _ := strings.Cut(column, ".")
		f.exec(`ALTER TABLE nudged.` + table + ` ALTER COLUMN ` + name + ` TYPE date`)
		_, err := f.store.RunPass(t.Context(), scheduler.Pass{Worker: "a", Lease: time.Minute, Fresh: 500, Due: 500, Plan: f.policy.Plan})
		if err == nil || !strings.Contains(err.Error(), "nudged."+column+" is a day: make it an instant in the view") {
			t.Errorf("%s: got %v", column, err)
		}
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
