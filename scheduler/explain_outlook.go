package scheduler

import (
	"time"

	"nudged/cadence"
)

// outlook is how a request with a link and a cadence stands.
type outlook struct {
	led      ledger
	series   Series
	decision Decision
	due      []cadence.Slot // fell due and have no row
	again    *Reminder      // attempted again, now or later: certainly not accepted, or dropped where it was
	over     time.Time      // when that ends
	pending  *cadence.Slot  // goes out before any slot to come: it waits, or is tried again
	until    time.Time      // when pending is looked at
	obstacle Reason
	next     []cadence.Slot
}

// outlook looks at most count slots ahead. The request has a link, and a cadence that can be applied.
func (p *Policy) outlook(in Input, series Series, count int) outlook {
	o := outlook{led: readLedger(in), series: series, decision: p.Plan(in)}
	o.due = series.due(o.led, in.Now)
	if !in.Request.Status.Open() {
		o.obstacle = p.obstacle(in, o.led, series, in.Now)
		return o
	}
	if o.again = p.again(in, o); o.again != nil {
		o.over = p.over(in, series, o.again)
	}
	o.obstacle = p.obstacle(in, o.counted(), series, in.Now)
	if o.obstacle == "" && o.decision.Claim == nil && o.led.inFlight == nil {
		o.pending, o.until = p.waiting(in, o)
	}
	if o.obstacle == "" || o.obstacle == ReasonPaused {
		o.next = p.upcoming(in, o, count)
	}
	return o
}

// again finds the row that is attempted again where nothing newer is due: a deferred one, or one of
// unknown fate that the mail server drops if it has it already.
func (p *Policy) again(in Input, o outlook) *Reminder {
	if o.led.inFlight != nil || len(o.due) > 0 {
		return nil
	}
	if n := len(o.led.deferred); n > 0 {
		if last := o.led.deferred[n-1]; !o.decision.ends(last.LinkCreatedAt, last.Slot) {
			return last
		}
	}
	if !p.repeats(in, o.led, o.series) {
		return nil
	}
	last, claim := o.led.unknown, o.decision.Claim
	switch at := p.repeatAt(last); {
	case claim != nil && claim.Slot.Name == last.Slot,
		claim == nil && in.Now.Before(at) && !o.decision.Wake.IsZero() && at.Before(p.over(in, o.series, last)):
		return last
	}
	return nil
}

// repeatAt is when a reminder of unknown fate is repeated.
func (p *Policy) repeatAt(r *Reminder) time.Time { return r.FinishedAt.Add(p.Limits.Backoff.Initial) }

// triedUntil is when a reminder is not attempted any more, and by which limit.
func (p *Policy) triedUntil(r *Reminder) (limit string, end time.Time) {
	limit, end = "limits.retry_for "+spell(p.Limits.RetryFor), r.RetrySince.Add(p.Limits.RetryFor)
	if late := r.DueAt.Add(p.Limits.MaxLateness); late.Before(end) {
		limit, end = "limits.max_lateness "+spell(p.Limits.MaxLateness), late
	}
	if forgotten := r.UnknownSince.Add(p.RepeatWithin); r.inDoubt() && forgotten.Before(end) {
		limit, end = "smtp.idempotency_window "+spell(p.RepeatWithin), forgotten
	}
	return limit, end
}

// over is when a reminder is not attempted any more as things stand: by a limit, by the end of the
// link, or because a newer slot is due.
func (p *Policy) over(in Input, series Series, r *Reminder) time.Time {
	_, end := p.triedUntil(r)
	if next, ok := series.Cadence.Next(series.Origin, in.Now); ok && next.Due.Before(end) {
		end = next.Due
	}
	if expires := in.Link.ExpiresAt; !expires.IsZero() && expires.Before(end) {
		end = expires
	}
	return end
}

// counted is the ledger without the mail that may have been accepted and is repeated: one that the
// mail server drops is no second mail.
func (o outlook) counted() ledger {
	led := o.led
	if o.again != nil && o.again.inDoubt() {
		led.mails--
	}
	return led
}

// before counts the mails that come before any slot to come and that counted does not count.
func (o outlook) before(link *Link) (mails int) {
	switch worked := o.led.inFlight; {
	case worked == nil:
		if o.decision.Claim != nil || o.pending != nil {
			mails++
		}
	default:
		if worked.State == StateClaimed && !worked.inDoubt() && worked.LinkCreatedAt.Equal(link.CreatedAt) {
			mails++
		}
		if len(o.due) > 0 && o.obstacle == "" {
			mails++
		}
	}
	return mails
}

// waiting finds the slot that goes out later although it is due: too soon after another mail, or
// attempted again after a while.
func (p *Policy) waiting(in Input, o outlook) (slot *cadence.Slot, until time.Time) {
	gap := o.led.lastMail.Add(p.Limits.MinGap)
	if n := len(o.due); n > 0 {
		if !o.decision.ends(in.Link.CreatedAt, o.due[n-1].Name) && in.Now.Before(gap) {
			return &o.due[n-1], gap
		}
		return nil, until
	}
	if o.again == nil {
		return nil, until
	}
	slot = &cadence.Slot{Name: o.again.Slot, Due: o.again.DueAt}
	switch {
	case o.again.State == StateUnknown:
		return slot, p.repeatAt(o.again)
	case o.again.inDoubt(): // it is the latest mail itself
		return slot, o.again.RetryAt
	default:
		return slot, later(o.again.RetryAt, gap)
	}
}

// ends reports whether the decision is against a slot of a link.
func (d Decision) ends(link time.Time, slot string) bool {
	for _, v := range d.Verdicts {
		if v.Slot.Name == slot && v.LinkCreatedAt.Equal(link) {
			return true
		}
	}
	return false
}

// NextSlot returns the slot that goes out next for a request as things stand: one that is due now or
// attempted again, or the first to come.
func (p *Policy) NextSlot(in Input) (cadence.Slot, bool) {
	if in.Request == nil || in.Link == nil {
		return cadence.Slot{}, false
	}
	series, _ := p.Series(*in.Request, *in.Link)
	if series.Cadence == nil {
		return cadence.Slot{}, false
	}
	o := p.outlook(in, series, 1)
	switch {
	case o.decision.Claim != nil:
		return o.decision.Claim.Slot, true
	case o.pending != nil:
		return *o.pending, true
	case len(o.next) > 0:
		return o.next[0], true
	}
	return cadence.Slot{}, false
}

// upcoming lists the slots after now, and after a pause, that the ledger does not have and that the
// link and the ceiling of the cadence leave room for behind what is sent before.
func (p *Policy) upcoming(in Input, o outlook, count int) []cadence.Slot {
	left := count
	if ceiling := o.series.Cadence.Max(); ceiling > 0 {
		left = min(left, ceiling-o.counted().mails-o.before(in.Link))
	}
	var next []cadence.Slot
	if in.Request.PausedUntil.Equal(Forever()) {
		return nil
	}
	for slot := range o.series.Cadence.Slots(o.series.Origin, later(in.Now, in.Request.PausedUntil.Add(-time.Second))) {
		expires := in.Link.ExpiresAt
		if len(next) >= left || !expires.IsZero() && !slot.Due.Before(expires) {
			break
		}
		if !o.led.spent[slot.Name] && !slot.Due.Before(in.Request.PausedUntil) {
			next = append(next, slot)
		}
	}
	return next
}
