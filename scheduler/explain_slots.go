package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"nudged/cadence"
)

// maxTold bounds the slots without a row that are listed, of each kind.
const maxTold = 10

// fates tells of every slot: the ledger's, those that are due or were never recorded, those to come.
func (x *explainer) fates() []SlotFate {
	var fates []SlotFate
	for i := range x.in.Reminders {
		fate := x.recorded(&x.in.Reminders[i])
		fate.Row = &x.rows[i]
		fates = append(fates, fate)
	}
	if x.series.Cadence != nil {
		fates = x.unwritten(fates)
	}
	for i := range fates {
		if f := &fates[i]; f.Because == "" && f.Reason != "" {
			f.Because = f.Reason.Words()
		}
	}
	return fates
}

// unwritten adds the slots that have no row.
func (x *explainer) unwritten(fates []SlotFate) []SlotFate {
	fates = append(fates, x.covered()...)
	slices.SortStableFunc(fates, func(a, b SlotFate) int {
		if c := a.LinkCreatedAt.Compare(b.LinkCreatedAt); c != 0 {
			return c
		}
		return a.Slot.Due.Compare(b.Slot.Due)
	})
	fates = append(fates, x.unrecorded()...)
	for _, claim := range x.next {
		var evidence []Evidence
		if x.delayed(claim) {
			evidence = []Evidence{{At: claim.at, Words: "it goes out at the first pass after this: " + x.gap()}}
		}
		fates = append(fates, x.of(claim.Slot, FateToCome, "", x.place(claim.Slot), evidence...))
	}
	return fates
}

// of is a slot of the present link that has no row.
func (x *explainer) of(slot cadence.Slot, fate Fate, reason Reason, rule string, evidence ...Evidence) SlotFate {
	return SlotFate{
		LinkCreatedAt: x.in.Link.CreatedAt, Slot: slot, Fate: fate, Reason: reason, Rule: rule, Evidence: evidence,
	}
}

// recorded tells about a row of the ledger.
func (x *explainer) recorded(r *Reminder) SlotFate {
	f := SlotFate{
		LinkCreatedAt: r.LinkCreatedAt, Earlier: x.in.Link == nil || !r.LinkCreatedAt.Equal(x.in.Link.CreatedAt),
		Slot: cadence.Slot{Name: r.Slot, Due: r.DueAt}, Reason: r.Reason,
	}
	switch r.State {
	case StateSent:
		f.Fate, f.Rule = FateOnTime, x.placeOf(f)
		if r.HandedOffAt.Sub(r.DueAt) > Late {
			f.Fate = FateLate
			f.Rule, f.Evidence = x.lateness(r)
		}
	case StateSkipped, StateFailed:
		f.Fate = fateOf(r.State)
		f.Rule, f.Evidence = x.ruleOf(r), x.evidence(r)
	case StateUnknown:
		f.Fate, f.Rule = FateUnknown, x.rule(r.Reason)
		if x.again == r {
			f.RepeatAt = x.policy.repeatAt(r)
			f.Evidence = []Evidence{
				{At: f.RepeatAt, Words: "repeated by itself at the first pass after this, as the mail server drops repetitions"},
				{At: x.over, Words: "repeated no more after this; if it is still unknown then, a person has to settle it"},
			}
		}
	case StateDeferred:
		f.Fate, f.Rule = FateRetry, x.rule(r.Reason)
		if r.inDoubt() {
			f.Evidence = []Evidence{{At: r.UnknownSince, Words: "handed off before, and may have been accepted then"}}
		}
		if end := x.ended(r.LinkCreatedAt, r.Slot); end != nil {
			ended := *r
			ended.Reason, ended.FinishedAt = end.Reason, end.at
			f.Fate, f.Reason, f.Rule = fateOf(end.State), end.Reason, x.ruleOf(&ended)
			f.Evidence = slices.Concat(f.Evidence, x.evidence(&ended), []Evidence{x.recording(end)})
		}
	default:
		f.Fate, f.Rule = FateInFlight, x.placeOf(f)
	}
	if r.lapsed() {
		f.Evidence = append(f.Evidence, Evidence{At: r.LeaseUntil, Words: "its worker has not been heard of since its lease ended; the next pass records this"})
	}
	f.Evidence = append(f.Evidence, x.settled(r)...)
	return f
}

// ended is the verdict, now or to come, that ends a slot of a link; nil: there is none.
func (x *explainer) ended(link time.Time, slot string) *end {
	for i := range x.ends {
		if end := &x.ends[i]; end.Slot.Name == slot && end.LinkCreatedAt.Equal(link) {
			return end
		}
	}
	return nil
}

// recording says when a verdict is written down.
func (x *explainer) recording(end *end) Evidence {
	if end.at.After(x.in.Now) {
		return Evidence{At: end.at, Words: "the first pass after this records it"}
	}
	return Evidence{Words: "the next pass records this"}
}

// delayed reports whether a slot to come waits, once it is due, for the gap behind the mail before it.
func (x *explainer) delayed(c foreseenClaim) bool { return c.at.After(c.Due) }

// fateOf is the fate of a reminder that ended in a state.
func fateOf(s State) Fate {
	switch s {
	case StateFailed:
		return FateFailed
	case StateUnknown:
		return FateUnknown
	default:
		return FateNotSent
	}
}

// forgotten reports whether the row of a slot may have been deleted by now. Nobody can tell what
// became of it then, so it is not told of.
func (x *explainer) forgotten(slot cadence.Slot) bool {
	return slot.Due.Before(x.in.Now.Add(-x.policy.Limits.Retention))
}

// unrecorded are the slots that fell due and have no row, oldest first.
func (x *explainer) unrecorded() []SlotFate {
	due := slices.DeleteFunc(slices.Clone(x.due), x.forgotten)
	if n := len(due); n > maxTold {
		due = append(due[:maxTold-1:maxTold-1], due[n-1])
	}
	var fates []SlotFate
	for _, slot := range due {
		fates = append(fates, x.undecided(slot))
	}
	return fates
}

// undecided tells about a slot that fell due and has no row.
func (x *explainer) undecided(slot cadence.Slot) SlotFate {
	for _, v := range x.decision.Verdicts {
		if v.Slot.Name == slot.Name && !v.Existing {
			return x.of(slot, FateNotSent, v.Reason, x.rule(v.Reason), append(x.evidence(x.now(slot, v.Reason)), Evidence{Words: "the next pass records this"})...)
		}
	}
	if claim := x.decision.Claim; claim != nil && claim.Slot.Name == slot.Name {
		var evidence []Evidence
		if x.in.Now.Sub(slot.Due) > Late {
			evidence = append(evidence, Evidence{Words: "due for " + spell(x.in.Now.Sub(slot.Due)) +
				": nudged does not run, or its mail server or its database does not take what is due; the status page and the log tell which"})
		}
		return x.of(slot, FateDue, "", x.place(slot), evidence...)
	}
	switch {
	case x.led.inFlight != nil:
		return x.of(slot, FateWaits, "", "a request has one mail in flight at a time: slot "+x.led.inFlight.Slot+" comes first")
	case !x.in.Request.Status.Open():
		return x.held(slot)
	case x.obstacle == ReasonMaxReached:
		return x.of(slot, FateNotSent, ReasonMaxReached, x.rule(ReasonMaxReached), x.evidence(x.now(slot, ReasonMaxReached))...)
	case x.pending != nil && x.pending.Name == slot.Name:
		var evidence []Evidence
		if last := x.lastMailBefore(x.in.Now); last != nil {
			evidence = []Evidence{{At: last.HandedOffAt, Words: "slot " + last.Slot + " had gone out"}}
		}
		return x.of(slot, FateWaits, "", x.gap(), append(evidence, Evidence{At: x.pending.at, Words: "it goes out at the first pass after this"})...)
	}
	if end := x.ended(x.in.Link.CreatedAt, slot.Name); end != nil {
		return x.of(slot, FateWaits, end.Reason, x.gap(), x.recording(end))
	}
	return x.of(slot, FateWaits, "", "a pass has not looked at it yet")
}

// now is the row that a slot would have if it were skipped at this instant.
func (x *explainer) now(slot cadence.Slot, reason Reason) *Reminder {
	return &Reminder{LinkCreatedAt: x.in.Link.CreatedAt, Slot: slot.Name, DueAt: slot.Due, Reason: reason, FinishedAt: x.in.Now}
}

// held tells about a slot that fell due and has no row because the request is closed.
func (x *explainer) held(slot cadence.Slot) SlotFate {
	f := x.of(slot, FateNotSent, ReasonRequestClosed, x.rule(ReasonRequestClosed), x.evidence(x.now(slot, ReasonRequestClosed))...)
	f.Because = fmt.Sprintf("the request is %q", x.in.Request.Status)
	newest := x.due[len(x.due)-1].Name == slot.Name
	if newest && x.obstacle == "" && !x.in.Purged && !x.policy.late(x.in, slot.Due) && !x.policy.beforeAdoption(x.in, slot.Due) {
		f.Evidence = append(f.Evidence, Evidence{
			At: slot.Due.Add(x.policy.Limits.MaxLateness), Words: "if the request is opened again by then, and no newer slot is due, it still goes out",
		})
	}
	return f
}

// covered are slots that have no row because a later one has: the cadence was changed since, or so
// many fell due at once that the oldest were left out.
func (x *explainer) covered() []SlotFate {
	var fates []SlotFate
	sought := 0
	for slot := range x.series.Cadence.Slots(x.series.Origin, x.series.Origin.Anchor.Add(-time.Second)) {
		if sought++; slot.Due.After(x.led.frontier) || len(fates) == maxTold || sought > maxSought {
			break
		}
		if !x.led.spent[slot.Name] && !x.forgotten(slot) {
			fates = append(fates, x.of(slot, FateNotSent, "",
				"a slot that was due no later than one with a row in the ledger is settled by it",
				Evidence{At: x.led.frontier, Words: "the latest slot with a row was due"}))
		}
	}
	return fates
}

// place says where in the cadence a slot of the present link stands.
func (x *explainer) place(slot cadence.Slot) string {
	from := "counted from the creation of the link"
	switch {
	case strings.HasPrefix(slot.Name, "deadline"):
		from = "counted from the deadline " + x.in.Request.Deadline.String()
	case strings.Contains(slot.Name, "T"):
		from = "a time of its cron expression"
	}
	return fmt.Sprintf("cadence %s: slot %s, %s", x.series.Cadence.Name(), slot.Name, from)
}

// placeOf does so for a row, which may be of an earlier link or an earlier cadence.
func (x *explainer) placeOf(f SlotFate) string {
	if f.Earlier || x.series.Cadence == nil {
		return "slot " + f.Slot.Name + " of the cadence of that time, counted from the link of that time"
	}
	if now, ok := x.series.Cadence.Next(x.series.Origin, f.Slot.Due.Add(-time.Second)); !ok || now.Name != f.Slot.Name || now.Due.Sub(f.Slot.Due).Abs() >= time.Second {
		return fmt.Sprintf("slot %s by the cadence, zone or deadline of that time; today's cadence %s has no slot of this name then",
			f.Slot.Name, x.series.Cadence.Name())
	}
	return x.place(f.Slot)
}

// lastMailBefore finds the latest mail of the request before an instant, across its links.
func (x *explainer) lastMailBefore(t time.Time) (last *Reminder) {
	for i := range x.in.Reminders {
		r := &x.in.Reminders[i]
		if r.State.Mailed() && r.HandedOffAt.Before(t) && (last == nil || r.HandedOffAt.After(last.HandedOffAt)) {
			last = r
		}
	}
	return last
}
