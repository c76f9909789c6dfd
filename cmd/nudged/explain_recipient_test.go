package main

import (
	"testing"
	"time"

	"nudged/scheduler"
)

// What is under way is told once: as a mail where it has left, or else as what comes next. What waits in
// vain does not come.
func TestRecipientCountsOnce(t *testing.T) {
	due := stamp{time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
	const mail = ", the last Mon 2026-05-04 10:00:00 +00:00"
	for name, row := range map[string]struct {
		slot explainedSlot
		want string
	}{
		"claimed":       {explainedSlot{State: scheduler.StateClaimed, Fate: scheduler.FateInFlight}, "0 mails; slot 3d of request r comes next, due Mon 2026-05-04 10:00:00 +00:00."},
		"handed off":    {explainedSlot{State: scheduler.StateSending, Fate: scheduler.FateInFlight}, "1 mail" + mail + "; nothing comes next."},
		"never settled": {explainedSlot{State: scheduler.StateSending, Fate: scheduler.FateUnknown}, "0 mails and 1 of unknown fate" + mail + "; nothing comes next."},
		"never left":    {explainedSlot{State: scheduler.StateClaimed, Fate: scheduler.FateRetry}, "0 mails; slot 3d of request r comes next, due Mon 2026-05-04 10:00:00 +00:00."},
		"in vain":       {explainedSlot{Fate: scheduler.FateWaits, Reason: scheduler.ReasonLinkExpired}, "0 mails; nothing comes next."},
	} {
		t.Run(name, func(t *testing.T) {
			row.slot.Slot, row.slot.Due, row.slot.HandedOffAt, row.slot.Recipient = "3d", due, due, "ana@example.net"
			one := explanation{RequestID: "r", Recipient: "ana@example.net", Slots: []explainedSlot{row.slot}, zone: time.UTC}
			r := recipientExplanation{Recipient: "ana@example.net", Found: 1, Requests: []explanation{one}}
			if got, want := r.sentence(), "ana@example.net: 1 request, "+row.want; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
