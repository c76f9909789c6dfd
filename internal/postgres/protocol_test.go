package postgres_test

import (
	"sync"
	"testing"
	"time"

	"nudged/scheduler"
)

var sent = scheduler.Outcome{State: scheduler.StateSent, SMTPCode: 250, SMTPReply: "2.0.0 queued"}

func TestOneReminderGoesOnce(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	f.exec(`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport'), ('r-1', 2, 'Payslip')`)

	result := f.pass("a")
	if len(result.Tasks) != 1 {
		t.Fatalf("got %d tasks, want 1: %+v", len(result.Tasks), result)
	}
	task := result.Tasks[0]
	if task.Slot.Name != "3d" || task.Attempt != 1 || task.Number != 1 || len(task.Documents) != 2 || task.Documents[1].Title != "Payslip" {
		t.Errorf("unexpected task %+v", task)
	}
	f.wantRow("r-1", "3d", "claimed/")
	if again := f.pass("b"); len(again.Tasks) != 0 {
		t.Fatal("a claimed slot was claimed again")
	}
	if verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}}); verdict[task.ClaimID] != "" || len(verdict) != 1 {
		t.Fatalf("hand-off: got %v, want to go ahead", verdict)
	}
	f.wantRow("r-1", "3d", "sending/")
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.wantRow("r-1", "3d", "sent/")
	if wake := f.count(`SELECT count(*) FROM nudged.schedules WHERE wake_at BETWEEN now() + interval '3 days' AND now() + interval '5 days'`); wake != 1 {
		t.Error("the request does not wake for slot 7d")
	}
	// The outcome may be recorded again after a commit of unknown fate.
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.wantRow("r-1", "3d", "sent/")
}

// D14, D13: several claimers at once; every slot goes to exactly one of them.
func TestEverySlotHasOneClaimer(t *testing.T) {
	f := newFixture(t)
	for round := range 5 {
		f.exec(`DELETE FROM nudged.requests; DELETE FROM nudged.links; DELETE FROM nudged.reminders; DELETE FROM nudged.schedules`)
		f.due(200)
		var mu sync.Mutex
		owners := map[string]int{}
		var claimers sync.WaitGroup
		for range 4 {
			store := openStore(t, f.url)
			claimers.Go(func() {
				for {
					result := f.passOf(store, "claimer")
					mu.Lock()
					for _, task := range result.Tasks {
						owners[task.Request.ID]++
					}
					mu.Unlock()
					if result.Fresh+result.Due == 0 {
						return
					}
				}
			})
		}
		claimers.Wait()
		if len(owners) != 200 {
			t.Fatalf("round %d: %d of 200 slots were claimed", round, len(owners))
		}
		for id, n := range owners {
			if n != 1 {
				t.Errorf("round %d: %s was claimed %d times", round, id, n)
			}
		}
	}
}

func TestLostClaimIsTriedAgainWithItsAttempt(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	first := f.pass("a").Tasks[0]
	f.exec(`UPDATE nudged.reminders SET lease_until = now() - interval '1 second'`)
	result := f.pass("b")
	if result.LeaseLost != 1 || len(result.Tasks) != 1 || result.Tasks[0].Attempt != 1 {
		t.Fatalf("got %+v, want the claim back with attempt 1", result)
	}
	if verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(first)}}); len(verdict) != 0 {
		t.Error("a worker that lost its claim was let to hand off")
	}
	if verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(result.Tasks[0])}}); len(verdict) != 1 {
		t.Error("the new owner was not let to hand off")
	}
}

// D09: a hand-off whose worker vanished becomes unknown, once, and nothing sends it again.
func TestLostHandOffIsUnknownForGood(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.exec(`UPDATE nudged.reminders SET lease_until = now() - interval '30 minutes', handed_off_at = now() - interval '30 minutes'`)
	if result := f.pass("b"); len(result.Unknown) != 1 || len(result.Tasks) != 0 {
		t.Fatalf("got %+v, want one unknown and no task", result)
	}
	f.wantRow("r-1", "3d", "unknown/worker_lost")
	for range 10 {
		f.exec(`SELECT nudged.touch('r-1')`)
		if result := f.pass("b"); len(result.Unknown) != 0 || len(result.Tasks) != 0 {
			t.Fatalf("got %+v, want nothing", result)
		}
	}
	// The worker was only slow, and knows: the truth replaces the doubt.
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.wantRow("r-1", "3d", "sent/")
}

// S08, O03: what closes a request after the claim is seen at the hand-off.
func TestHandOffReadsTheRequestAgain(t *testing.T) {
	tests := map[string]struct{ change, row string }{
		"completed":         {`UPDATE nudged.requests SET status = 'completed'`, "skipped/request_closed"},
		"archived":          {`UPDATE nudged.requests SET status = 'archived'`, "skipped/request_closed"},
		"deleted":           {`DELETE FROM nudged.requests`, "skipped/request_closed"},
		"paused":            {`UPDATE nudged.requests SET paused_until = 'infinity'`, "skipped/paused"},
		"opted out":         {`UPDATE nudged.requests SET opted_out_at = now()`, "skipped/opted_out"},
		"link refreshed":    {`UPDATE nudged.links SET created_at = now()`, "skipped/link_replaced"},
		"link expired":      {`UPDATE nudged.links SET expires_at = now()`, "skipped/link_expired"},
		"link revoked":      {`UPDATE nudged.links SET revoked_at = now()`, "skipped/link_revoked"},
		"link deleted":      {`DELETE FROM nudged.links`, "skipped/link_revoked"},
		"suppressed":        {`INSERT INTO nudged.suppressions (address, reason) VALUES ('r1@example.com', 'bounced')`, "skipped/suppressed"},
		"address corrected": {`UPDATE nudged.requests SET recipient_email = 'right@example.com'`, "deferred/recipient_changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.due(1)
			task := f.pass("a").Tasks[0]
			f.exec(tt.change)
			verdict := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
			if reason, ok := verdict[task.ClaimID]; !ok || reason == "" {
				t.Errorf("the hand-off went ahead: %v", verdict)
			}
			f.wantRow("r-1", "3d", tt.row)
			again := f.pass("a").Tasks
			if tt.row != "deferred/recipient_changed" {
				if len(again) != 0 {
					t.Error("it was claimed again")
				}
				return
			}
			if len(again) != 1 || again[0].Request.RecipientEmail != "right@example.com" || again[0].Attempt != 1 {
				t.Errorf("got %+v, want the slot for the corrected address", again)
			}
		})
	}
}

func TestDeferredReminderComesBackWhenItsTimeHasCome(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	st := settlement(task, scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451})
	st.RetryIn = 10 * time.Minute
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{st}})
	f.wantRow("r-1", "3d", "deferred/greylisted")
	if result := f.pass("a"); result.Due != 0 {
		t.Fatalf("got %+v: it was looked at before its time", result)
	}
	f.exec(`UPDATE nudged.reminders SET retry_at = now(); UPDATE nudged.schedules SET wake_at = now() - interval '1 second'`)
	again := f.pass("a").Tasks
	if len(again) != 1 || again[0].Attempt != 2 || again[0].ClaimID == task.ClaimID {
		t.Fatalf("got %+v, want attempt 2 under a new claim", again)
	}
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.wantRow("r-1", "3d", "claimed/")
}

// M10: an address that does not exist is not mailed again until it is edited.
func TestRefusedAddressIsSuppressed(t *testing.T) {
	f := newFixture(t)
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
		State: scheduler.StateFailed, Reason: scheduler.ReasonRecipientRefused, SMTPCode: 550, SMTPReply: "5.1.1 no such user", Suppress: true,
	})}})
	f.exec(`UPDATE nudged.links SET created_at = now() - interval '3 days 2 minutes'`)
	if result := f.pass("a"); len(result.Tasks) != 0 || result.Skipped[scheduler.ReasonSuppressed] != 1 {
		t.Errorf("got %+v, want a skip for suppression", result)
	}
	if n := f.count(`SELECT count(*) FROM nudged.events WHERE action = 'suppress' AND actor = 'nudged'`); n != 1 {
		t.Errorf("got %d suppress events, want 1", n)
	}
	f.exec(`UPDATE nudged.requests SET recipient_email = 'new@example.com'`)
	f.exec(`UPDATE nudged.links SET created_at = now() - interval '3 days 3 minutes'`)
	if result := f.pass("a"); len(result.Tasks) != 1 {
		t.Errorf("got %+v, want the edited address mailed", result)
	}
}

func TestRenewKeepsOnlyWhatIsHeld(t *testing.T) {
	f := newFixture(t)
	f.due(2)
	tasks := f.pass("a").Tasks
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(tasks[0], sent)}})
	kept, err := f.store.Renew(t.Context(), []scheduler.ClaimID{tasks[0].ClaimID, tasks[1].ClaimID}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 1 || kept[0] != tasks[1].ClaimID {
		t.Errorf("got %v, want only the claim in flight", kept)
	}
}

// B04: instants do not depend on the session's time zone.
func TestInstantsDoNotDependOnTheSessionZone(t *testing.T) {
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/New_York"} {
		t.Run(zone, func(t *testing.T) {
			f := newFixture(t)
			f.exec(`ALTER DATABASE ` + f.value(`SELECT quote_ident(current_database())`) + ` SET timezone = '` + zone + `'`)
			f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('z', 'a', 'pending', 'z@example.com', 'P')`)
			f.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('z', 'https://example.com', '2026-05-01T10:00:00Z')`)
			in, _, err := openStore(t, f.url).Load(t.Context(), "z")
			if err != nil {
				t.Fatal(err)
			}
			if want := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC); !in.Link.CreatedAt.Equal(want) {
				t.Errorf("got %s, want %s", in.Link.CreatedAt, want)
			}
		})
	}
}

// The very worker that was given up comes back with a certain answer: the doubt is over.
func TestLateTruthReplacesTheDoubt(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome scheduler.Outcome
		row     string
		again   int // claims afterwards
	}{
		"sent":     {sent, "sent/", 0},
		"failed":   {scheduler.Outcome{State: scheduler.StateFailed, Reason: scheduler.ReasonMessageRefused, SMTPCode: 554}, "failed/message_refused", 0},
		"deferred": {scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonLeaseLost}, "deferred/lease_lost", 1},
		"unknown":  {scheduler.Outcome{State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost}, "unknown/reply_lost", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.due(1)
			task := f.pass("a").Tasks[0]
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
			f.exec(`UPDATE nudged.reminders SET lease_until = now() - interval '1 second'`)
			f.pass("b")
			f.wantRow("r-1", "3d", "unknown/worker_lost")
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, tt.outcome)}})
			f.wantRow("r-1", "3d", tt.row)
			if n := len(f.pass("b").Tasks); n != tt.again {
				t.Errorf("got %d claims afterwards, want %d", n, tt.again)
			}
		})
	}
}

// A repetition under an idempotency key that is refused, or given up, leaves the first attempt in
// doubt.
func TestRefusedRepetitionStaysUnknown(t *testing.T) {
	for name, end := range map[string]func(f *fixture, task scheduler.Task){
		"refused": func(f *fixture, task scheduler.Task) {
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
				State: scheduler.StateFailed, Reason: scheduler.ReasonMessageRefused, SMTPCode: 554,
			})}})
		},
		"cannot be composed": func(f *fixture, task scheduler.Task) {
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
				State: scheduler.StateFailed, Reason: scheduler.ReasonTemplateError,
			})}})
		},
		"closed at the hand-off": func(f *fixture, task scheduler.Task) {
			f.exec(`UPDATE nudged.requests SET status = 'completed'`)
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
		},
		"deferred, then closed": func(f *fixture, task scheduler.Task) {
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, scheduler.Outcome{
				State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451,
			})}})
			f.exec(`UPDATE nudged.requests SET status = 'completed'`)
			f.pass("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.policy.RepeatWithin = 20 * time.Hour
			f.due(1)
			first := f.pass("a").Tasks[0]
			f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(first)}})
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(first, scheduler.Outcome{
				State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost,
			})}})
			f.exec(`UPDATE nudged.reminders SET finished_at = finished_at - interval '2 minutes'`)
			f.exec(`SELECT nudged.touch('r-1')`)
			tasks := f.pass("a").Tasks
			if len(tasks) != 1 || tasks[0].Attempt != 2 {
				t.Fatalf("got %+v, want the repetition", tasks)
			}
			end(f, tasks[0])
			f.wantRow("r-1", "3d", "unknown/reply_lost")
		})
	}
}
