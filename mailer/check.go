package mailer

import (
	"slices"
	"time"

	"nudged/cadence"
	"nudged/scheduler"
)

// CheckTemplates renders samples of every kind of mail in every language, besides what New has
// found already. The error is TemplateProblems.
func (m *Mailer) CheckTemplates() error {
	problems := slices.Clone(m.problems)
	for _, l := range m.sets {
		for _, task := range samples() {
			if _, err := l.render(m.templateData(task, l), &buffers{}); err != nil {
				problems = append(problems, problemOf(err))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems.sorted()
}

// samples are tasks that lead through the branches of a template: each tone with all there can be
// and with next to nothing, and deadlines near, far and past.
func samples() []scheduler.Task {
	full := scheduler.Task{
		Request: scheduler.Request{
			ID: "sample", RecipientEmail: "recipient@example.com", RecipientName: "Ada", Title: "Tax return",
			Message: "Thank you.\nGrace", SenderName: "Grace", ReplyTo: "grace@example.com",
			Deadline: cadence.Date{Year: 2026, Month: time.May, Day: 20},
		},
		Link: scheduler.Link{
			URL:       "https://example.com/upload",
			CreatedAt: time.Date(2026, time.May, 1, 9, 0, 0, 0, time.UTC),
			ExpiresAt: time.Date(2026, time.June, 1, 9, 0, 0, 0, time.UTC),
		},
		Slot: cadence.Slot{Name: "3d", Due: time.Date(2026, time.May, 4, 9, 0, 0, 0, time.UTC)},
		Documents: []scheduler.Document{
			{Title: "Identity card", Required: true, State: scheduler.DocumentRejected, RejectionReason: "The back is missing."},
			{Title: "Proof of address", Required: true, State: scheduler.DocumentRejected},
			{Title: "Salary statements", Description: "All of last year.", Required: true, State: scheduler.DocumentMissing},
			{Title: "Bank statement", Required: true, State: scheduler.DocumentMissing},
			{Title: "Receipts", Description: "If there are any.", State: scheduler.DocumentMissing},
			{Title: "Photo", State: scheduler.DocumentMissing},
		},
		Attempt: 1, Number: 1, Zone: time.UTC,
	}
	bare := scheduler.Task{
		Request: scheduler.Request{ID: "sample", RecipientEmail: "recipient@example.com"},
		Link:    scheduler.Link{URL: full.Link.URL, CreatedAt: full.Link.CreatedAt},
		Slot:    full.Slot, Attempt: 1, Number: 1,
	}
	var tasks []scheduler.Task
	for _, task := range []scheduler.Task{full, bare} {
		first, firm, last := task, task, task
		first.Slot.Name = "0d"
		firm.Number = 3
		last.Last = true
		tasks = append(tasks, first, task, firm, last)
	}
	for _, day := range []int{3, 4, 5} { // one day late, on the day, one day left
		task := full
		task.Request.Deadline.Day = day
		tasks = append(tasks, task)
	}
	return tasks
}
