package scheduler

import (
	"strings"
	"testing"
	"time"
)

// TestPurgedLink: nothing new goes out for a link that the ledger was purged of, and people are told.
func TestPurgedLink(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	in := Input{
		Now: now, AdoptedAt: now.Add(-365 * day), RequestID: "r",
		Request: &Request{ID: "r", Status: StatusPending, RecipientEmail: "r@example.com"},
		Link:    &Link{URL: "https://example.com/u", CreatedAt: now.Add(-3*day - time.Hour)},
	}
	p := newPolicy(t)
	if d := p.Plan(in); d.Claim == nil || d.Problem != ProblemNone {
		t.Fatalf("got %+v, want a claim where nothing is purged", d)
	}
	in.Purged = true
	if d := p.Plan(in); d.Claim != nil || len(d.Verdicts) != 0 || !d.Wake.IsZero() || d.Problem != ProblemPurgedLink {
		t.Errorf("got %+v, want the problem alone", d)
	}
	if slot, ok := p.NextSlot(in); ok {
		t.Errorf("slot %s comes next", slot.Name)
	}
	const want = "Nothing is sent: the ledger was purged of reminders of this link"
	if e := p.Explain(in, nil, 5); !strings.HasPrefix(e.Sentence, want) || len(e.Next) != 0 || e.Problem != ProblemPurgedLink {
		t.Errorf("got %q, next %v, problem %q", e.Sentence, e.Next, e.Problem)
	}

	// What is under way ends as ever.
	in.Reminders = []Reminder{{
		RequestID: "r", LinkCreatedAt: in.Link.CreatedAt, Slot: "3d", DueAt: now.Add(-time.Hour), State: StateDeferred,
		Reason: ReasonGreylisted, Attempt: 1, RetryAt: now, RetrySince: now.Add(-time.Hour),
	}}
	if d := p.Plan(in); d.Claim == nil || !d.Claim.Retry {
		t.Errorf("got %+v, want the retry", d)
	}

	// A closed request is told as one.
	in.Reminders, in.Request.Status = nil, "completed"
	e := p.Explain(in, nil, 5)
	if !strings.Contains(e.Sentence, `"completed"`) {
		t.Errorf("got %q, want the status", e.Sentence)
	}
	for _, f := range e.Slots {
		for _, evidence := range f.Evidence {
			if strings.Contains(evidence.Words, "it still goes out") {
				t.Errorf("slot %s: %s", f.Slot.Name, evidence.Words)
			}
		}
	}
}
