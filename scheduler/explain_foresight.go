package scheduler

import (
	"slices"
	"time"

	"nudged/cadence"
)

// foreseenClaim is the slot that a plan to come claims, if nothing changes until then and each mail before it
// is accepted as soon as it is claimed.
type foreseenClaim struct {
	cadence.Slot

	at    time.Time // of the plan: when the slot falls due, or later
	retry bool      // the ledger has the slot
}

// end is a verdict of a plan, now or to come.
type end struct {
	Verdict

	at time.Time
}

// ends are the verdicts of a decision at an instant.
func (d Decision) ends(at time.Time) (ends []end) {
	for _, v := range d.Verdicts {
		ends = append(ends, end{v, at})
	}
	return ends
}

// foreseen bounds the plans that are made in advance to look count slots ahead.
func foreseen(count int) int { return 2000 + 4*count }

// foresee makes the plans to come, each at the instant that the one before it wakes at, until they have
// claimed count slots that are not due yet. The request is open, and has a link and a cadence.
func (p *Policy) foresee(in Input, series Series, count int) (claims []foreseenClaim, ends []end) {
	f := foresight{Input: in, known: len(in.Reminders), counts: series.Cadence.Max() > 0}
	f.Reminders = slices.Clone(in.Reminders)
	f.deliver()
	for range foreseen(count) {
		d := p.Plan(f.Input)
		ends = append(ends, d.ends(f.Now)...)
		for _, v := range d.Verdicts {
			f.apply(v)
		}
		if claim := d.Claim; claim != nil {
			if claim.Slot.Due.After(in.Now) {
				count--
			}
			if count < 0 {
				break
			}
			claims = append(claims, foreseenClaim{claim.Slot, f.Now, claim.Retry})
			f.accept(claim.Slot)
		}
		f.Now = p.lookAgain(f.Input, series, d)
		if f.Now.IsZero() {
			break
		}
	}
	return claims, ends
}

// lookAgain is the instant of the first plan after a decision that something may come of; zero: there
// is none.
func (p *Policy) lookAgain(in Input, series Series, d Decision) time.Time {
	switch p.obstacle(in, ledger{}, series, in.Now) {
	case "":
		return d.Wake
	case ReasonPaused: // what falls due until it ends is skipped
		if end := in.Request.PausedUntil; !d.Wake.IsZero() && !end.Equal(Forever()) {
			slot, _ := series.Cadence.Next(series.Origin, later(in.Now, end.Add(-time.Microsecond)))
			return slot.Due
		}
	}
	return time.Time{}
}

// foresight is a ledger that is written in advance.
type foresight struct {
	Input

	known  int  // so many rows the ledger has
	counts bool // the number of mails matters
}

// deliver takes what is in flight as accepted.
func (f *foresight) deliver() {
	for i := range f.Reminders {
		r := &f.Reminders[i]
		if r.State == StateClaimed {
			r.HandedOffAt = f.Now
		}
		if r.State.InFlight() {
			r.State = StateSent
		}
	}
}

// accept takes a slot as sent.
func (f *foresight) accept(slot cadence.Slot) {
	sent := f.reminder(f.Link.CreatedAt, slot)
	sent.State, sent.Reason, sent.HandedOffAt = StateSent, "", f.Now
}

// apply writes a verdict down.
func (f *foresight) apply(v Verdict) {
	ended := f.reminder(v.LinkCreatedAt, v.Slot)
	ended.State, ended.Reason, ended.FinishedAt = v.State, v.Reason, f.Now
}

// reminder is the row of a slot, a new one if the ledger has none. Of the new ones the latest settles
// those before, which are dropped unless they count as mails.
func (f *foresight) reminder(link time.Time, slot cadence.Slot) *Reminder {
	for i := range f.Reminders[:f.known] {
		if r := &f.Reminders[i]; r.Slot == slot.Name && r.LinkCreatedAt.Equal(link) {
			return r
		}
	}
	row := Reminder{RequestID: f.RequestID, LinkCreatedAt: link, Slot: slot.Name, DueAt: slot.Due}
	if last := len(f.Reminders) - 1; last >= f.known && !(f.counts && f.Reminders[last].State == StateSent) {
		f.Reminders = f.Reminders[:last]
	}
	f.Reminders = append(f.Reminders, row)
	return &f.Reminders[len(f.Reminders)-1]
}

// recovered is the input that the next pass plans from: what a worker lost its lease of has been
// taken from it. Such a row keeps the end of its lease.
func recovered(in Input) Input {
	in.Reminders = slices.Clone(in.Reminders)
	for i := range in.Reminders {
		r := &in.Reminders[i]
		switch {
		case !r.State.InFlight() || r.LeaseUntil.IsZero() || r.LeaseUntil.After(in.Now):
		case r.State == StateClaimed:
			r.State, r.Reason, r.RetryAt = StateDeferred, ReasonLeaseLost, in.Now
			r.Attempt--
			if !r.inDoubt() {
				r.RetrySince = in.Now
			}
		default:
			r.State, r.Reason, r.FinishedAt = StateUnknown, ReasonWorkerLost, in.Now
			if r.UnknownSince.IsZero() {
				r.UnknownSince = r.HandedOffAt
			}
		}
	}
	return in
}

// lapsed reports whether the next pass takes the row from a worker that has not been heard of.
func (r *Reminder) lapsed() bool { return !r.State.InFlight() && !r.LeaseUntil.IsZero() }
