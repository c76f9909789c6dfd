package postgres_test

import (
	"testing"

	"nudged/scheduler"
)

// An application that saves the row it read may cut or round created_at, as every language whose clock
// counts milliseconds does. That is no refresh: what went out for the link stays gone out.
func TestLinkWrittenBackIsTheSameLink(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]string{
		"cut to milliseconds":     `date_trunc('milliseconds', created_at)`,
		"cut to seconds":          `date_trunc('second', created_at)`,
		"rounded to seconds":      `date_trunc('second', created_at + interval '500 milliseconds')`,
		"cut, then written again": `date_trunc('second', created_at) + interval '1 microsecond'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.policy.Limits.MinGap = 0 // which would only put the second mail off
			f.due(1)
			f.exec(`UPDATE nudged.links SET created_at = date_trunc('second', created_at) + interval '600400 microseconds'`)
			task := f.pass("a").Tasks[0]
			f.exec(`UPDATE nudged.links SET created_at = ` + created)
			if verdicts := f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}}); len(verdicts) != 1 || verdicts[task.ClaimID] != "" {
				t.Errorf("the hand-off of the same link ended with %v", verdicts)
			}
			f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
			if result := f.pass("a"); result.Fresh != 1 || len(result.Tasks) != 0 || len(result.Skipped) != 0 {
				t.Errorf("%d looked at, %d claims, %v skipped; want one, and nothing done", result.Fresh, len(result.Tasks), result.Skipped)
			}
			in, _, err := f.store.Load(t.Context(), "r-1")
			if err != nil {
				t.Fatal(err)
			}
			if !in.Link.CreatedAt.Equal(task.Link.CreatedAt) {
				t.Errorf("the link counts as created at %s, want %s as in the ledger", in.Link.CreatedAt, task.Link.CreatedAt)
			}
		})
	}
}

func TestLinkRefreshedASecondLaterIsAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.Limits.MinGap = 0
	f.due(1)
	task := f.pass("a").Tasks[0]
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(task)}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(task, sent)}})
	f.exec(`UPDATE nudged.links SET created_at = created_at + interval '1 second'`)
	if result := f.pass("a"); len(result.Tasks) != 1 || result.Tasks[0].Link.CreatedAt.Equal(task.Link.CreatedAt) {
		t.Errorf("got %+v, want the slot of the new link", result.Tasks)
	}
}
