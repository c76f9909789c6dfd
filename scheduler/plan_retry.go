package scheduler

import (
	"time"

	"nudged/cadence"
)

// planRetry decides about deferred reminders where no newer slot is due. Only the newest of them
// may be tried again.
func (p *Policy) planRetry(d *Decision, in Input, led ledger, series Series) {
	if len(led.deferred) == 0 {
		return
	}
	last := led.deferred[len(led.deferred)-1]
	if last.inDoubt() { // it is the latest mail itself, to be repeated
		led.mails--
		led.lastMail = time.Time{}
	}
	for _, r := range led.deferred[:len(led.deferred)-1] {
		d.end(r, StateFailed, ReasonRetriesExhausted)
	}
	slot := cadence.Slot{Name: last.Slot, Due: last.DueAt}
	switch reason := p.obstacle(in, led, series, last.DueAt); {
	case reason != "":
		d.end(last, StateSkipped, reason)
	case last.inDoubt() && !p.repeatable(in, last):
		d.end(last, StateUnknown, ReasonReplyLost)
	case last.DueAt.Before(in.NotBefore) && !last.settledSince(in.NotBefore):
		d.end(last, StateSkipped, ReasonBeforeAdoption)
	case p.late(in, last.DueAt):
		d.end(last, StateSkipped, ReasonMissed)
	case led.frontier.After(last.DueAt), !in.Now.Before(last.RetrySince.Add(p.Limits.RetryFor)):
		d.end(last, StateFailed, ReasonRetriesExhausted)
	case in.Now.Before(last.RetryAt):
		d.wakeBy(last.RetryAt)
	case in.Now.Before(led.lastMail.Add(p.Limits.MinGap)):
		d.wakeBy(led.lastMail.Add(p.Limits.MinGap))
	default:
		d.Claim = series.claim(in, slot, led.mails+1, last.RetrySince).after(last)
	}
}

// settledSince reports whether a person found after an instant that the reminder was not sent, or it
// was attempted since by such a finding. A copy of the ledger may hold an older one, and lack the mail
// that went out by it.
func (r *Reminder) settledSince(t time.Time) bool {
	return r.Reason == ReasonNotSent && r.RetrySince.After(t) || r.HandedOffAt.After(t)
}

// planRepeat repeats the latest slot if its fate is unknown and the relay drops what it has had
// already: same key, same address, within the time that the relay remembers and that retries have.
// Otherwise the outcome stays unknown, and a person settles it.
func (p *Policy) planRepeat(d *Decision, in Input, led ledger, series Series) {
	if !p.repeats(in, led, series) {
		return
	}
	last := led.unknown
	led.mails-- // it is the mail in question
	if at := last.FinishedAt.Add(p.Limits.Backoff.Initial); in.Now.Before(at) {
		d.wakeBy(at)
		return
	}
	slot := cadence.Slot{Name: last.Slot, Due: last.DueAt}
	d.Claim = series.claim(in, slot, led.mails+1, last.RetrySince).after(last)
}

// repeats reports whether nothing but time keeps the latest slot of unknown fate from being repeated.
func (p *Policy) repeats(in Input, led ledger, series Series) bool {
	last := led.unknown
	if last == nil {
		return false
	}
	led.mails-- // it is the mail in question
	return p.repeatable(in, last) && !led.frontier.After(last.DueAt) && p.obstacle(in, led, series, last.DueAt) == ""
}

// repeatable reports whether a slot that may have been accepted may be attempted again.
func (p *Policy) repeatable(in Input, r *Reminder) bool {
	return in.Now.Before(r.UnknownSince.Add(p.RepeatWithin)) && r.Recipient == in.Request.RecipientEmail &&
		in.Now.Before(r.RetrySince.Add(p.Limits.RetryFor)) && !p.late(in, r.DueAt) && !r.DueAt.Before(in.NotBefore)
}
