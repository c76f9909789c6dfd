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
	ends     []end          // what plans decide against, now or later, before anything changes
	again    *Reminder      // attempted again, now or later: certainly not accepted, or dropped where it was
	over     time.Time      // when that ends
	first    *foreseenClaim // goes out before any other
	pending  *foreseenClaim // the first, where it is due and waits, or is tried again later
	obstacle Reason
	next     []foreseenClaim // slots to come
}

// outlook looks at most count slots ahead. The request has a link, and a cadence that can be applied.
func (p *Policy) outlook(in Input, series Series, count int) outlook {
	o := outlook{led: readLedger(in), series: series, decision: p.Plan(in)}
	o.due = series.due(o.led, in.Now)
	if !in.Request.Status.Open() {
		o.obstacle, o.ends = p.obstacle(in, o.led, series, in.Now), o.decision.ends(in.Now)
		return o
	}
	var claims []foreseenClaim
	claims, o.ends = p.foresee(in, series, count)
	if len(claims) > 0 {
		o.first = &claims[0]
	}
	if o.again = o.attempted(in); o.again != nil {
		o.over = p.over(in, series, o.again)
	}
	o.obstacle = p.obstacle(in, o.counted(), series, in.Now)
	for i := range claims {
		switch {
		case claims[i].Due.After(in.Now):
			o.next = append(o.next, claims[i])
		case o.decision.Claim == nil && o.led.inFlight == nil:
			o.pending = &claims[i]
		}
	}
	return o
}

// attempted finds the row that goes out first where it is one: a deferred one, or one of unknown fate
// that the mail server drops if it has it already.
func (o outlook) attempted(in Input) *Reminder {
	if o.led.inFlight != nil || o.first == nil || !o.first.retry {
		return nil
	}
	for i := range in.Reminders {
		if r := &in.Reminders[i]; r.Slot == o.first.Name && r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			return r
		}
	}
	return nil
}

// slots are those of the claims to come.
func (o outlook) slots() (slots []cadence.Slot) {
	for _, claim := range o.next {
		slots = append(slots, claim.Slot)
	}
	return slots
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

// NextSlot returns the slot that goes out next for a request as things stand: one that is due now or
// attempted again, or the first to come.
func (p *Policy) NextSlot(in Input) (cadence.Slot, bool) {
	if in.Request == nil || in.Link == nil || in.Purged {
		return cadence.Slot{}, false
	}
	series, _ := p.Series(*in.Request, *in.Link)
	if series.Cadence == nil {
		return cadence.Slot{}, false
	}
	if first := p.outlook(recovered(in), series, 1).first; first != nil {
		return first.Slot, true
	}
	return cadence.Slot{}, false
}
