package scheduler

import (
	"time"

	"nudged/cadence"
)

// Late is how long after its due a slot may be handed off, or wait, and still be on time.
const Late = time.Hour

// Explanation tells what became of each slot of a request, by which rule and on what evidence, what
// comes next and what would stop it.
type Explanation struct {
	Sentence string // the answer in one sentence
	Input    Input
	Series   Series
	Problem  Problem
	Mistakes []Mistake      // all that is wrong with the rows of the request, the gravest first
	Past     []Reminder     // the ledger, oldest link first
	Next     []cadence.Slot // slots to come, by due
	Obstacle Reason         // what would stop the next one if it were due now
	Hindered string         // the obstacle in plain words
	Decision Decision       // what the next pass will do
	Slots    []SlotFate     // each slot once: earlier links first, then by due; those to come last
	Stops    []string       // what would stop the slots to come; empty where there are none
	Events   []Event        // what people did about the request, its addresses and, since the link, the database
}

// SlotFate is one slot with its fate, the rule that led to it, and what is known beyond its row.
type SlotFate struct {
	LinkCreatedAt time.Time
	Earlier       bool // it belongs to a link that was replaced
	Slot          cadence.Slot
	Fate          Fate
	Reason        Reason // empty where none is needed
	Rule          string // with the configured value
	Evidence      []Evidence
	Row           *Reminder // of the ledger; nil: it has none
}

// Evidence is one fact. Facts of the row itself are not among those of a SlotFate.
type Evidence struct {
	At    time.Time // zero: it has no instant
	Who   string    // the person who did it; may be empty
	Words string
}

// Fate is what became of one slot, or will.
type Fate string

// The fates there are.
const (
	FateOnTime   Fate = "on_time"   // accepted, handed off within Late of its due
	FateLate     Fate = "late"      // accepted, later than that
	FateNotSent  Fate = "not_sent"  // decided against; never attempted, or no more
	FateFailed   Fate = "failed"    // attempted and certainly not accepted; it is over
	FateUnknown  Fate = "unknown"   // it may have been accepted; a person settles it
	FateInFlight Fate = "in_flight" // a worker has it
	FateRetry    Fate = "retry"     // certainly not accepted; it is tried again
	FateDue      Fate = "due"       // the next pass takes it
	FateWaits    Fate = "waits"     // due, and a rule makes it wait
	FateToCome   Fate = "to_come"   // not yet due
)

// Fates lists them all.
func Fates() []Fate {
	return []Fate{
		FateOnTime, FateLate, FateNotSent, FateFailed, FateUnknown, FateInFlight, FateRetry, FateDue, FateWaits, FateToCome,
	}
}

// settled reports whether nothing more becomes of a slot by itself.
func (f Fate) settled() bool {
	switch f {
	case FateOnTime, FateLate, FateNotSent, FateFailed, FateUnknown:
		return true
	default:
		return false
	}
}

// Words says a fate in plain words, to stand behind the name of a slot.
func (f Fate) Words() string {
	switch f {
	case FateOnTime:
		return "went out on time"
	case FateLate:
		return "went out late"
	case FateNotSent:
		return "was not sent"
	case FateFailed:
		return "failed"
	case FateUnknown:
		return "may have gone out"
	case FateInFlight:
		return "is being sent"
	case FateRetry:
		return "is tried again"
	case FateDue:
		return "goes out at the next pass"
	case FateWaits:
		return "waits"
	case FateToCome:
		return "is to come"
	default:
		return string(f)
	}
}

// outlook is how a request with a link and a cadence stands.
type outlook struct {
	led      ledger
	series   Series
	decision Decision
	due      []cadence.Slot // fell due and have no row
	pending  *cadence.Slot  // goes out before any slot to come: it waits, or is tried again
	until    time.Time      // when pending is looked at
	obstacle Reason
	next     []cadence.Slot
}

// outlook looks at most count slots ahead. The request has a link, and a cadence that can be applied.
func (p *Policy) outlook(in Input, series Series, count int) outlook {
	o := outlook{led: readLedger(in), series: series, decision: p.Plan(in)}
	o.obstacle = p.obstacle(in, o.led, series, in.Now)
	if !in.Request.Status.Open() {
		return o
	}
	o.due = series.due(o.led, in.Now)
	if o.decision.Claim == nil && o.led.inFlight == nil {
		o.pending, o.until = p.waiting(in, o)
	}
	if o.obstacle == "" || o.obstacle == ReasonPaused {
		o.next = p.upcoming(in, o.led, series, count)
	}
	return o
}

// waiting finds the slot that goes out later although it is due: too soon after another mail, or
// tried again after a while.
func (p *Policy) waiting(in Input, o outlook) (slot *cadence.Slot, until time.Time) {
	gap := o.led.lastMail.Add(p.Limits.MinGap)
	if n := len(o.due); n > 0 {
		if !o.decision.ends(o.due[n-1].Name) && in.Now.Before(gap) {
			return &o.due[n-1], gap
		}
		return nil, until
	}
	if n := len(o.led.deferred); n > 0 {
		last := o.led.deferred[n-1]
		if !o.decision.ends(last.Slot) {
			return &cadence.Slot{Name: last.Slot, Due: last.DueAt}, later(last.RetryAt, gap)
		}
	}
	return nil, until
}

// ends reports whether the decision is against a slot.
func (d Decision) ends(slot string) bool {
	for _, v := range d.Verdicts {
		if v.Slot.Name == slot {
			return true
		}
	}
	return false
}

// NextSlot returns the slot that goes out next for a request as things stand: one that is due now or
// tried again, or the first to come.
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

// Explain answers for one request from the very policy that the passes apply. It lists at most
// count slots to come. The events are those of the request, its addresses and the database, the
// oldest first.
func (p *Policy) Explain(in Input, events []Event, count int) Explanation {
	x := explainer{policy: p, in: in, events: events}
	e := Explanation{Input: in, Past: in.Reminders, Events: x.concerning()}
	if in.Request != nil && in.Link != nil {
		e.Series, e.Problem = p.Series(*in.Request, *in.Link)
		e.Mistakes = p.Mistakes(*in.Request, *in.Link)
		x.series = e.Series
	}
	if e.Series.Cadence == nil {
		x.outlook.led, x.outlook.decision = readLedger(in), p.Plan(in)
		e.Decision, e.Slots = x.decision, x.slots()
		e.Sentence = x.unplannable(e)
		return e
	}
	x.outlook = p.outlook(in, e.Series, count)
	e.Decision, e.Obstacle, e.Next = x.decision, x.obstacle, x.next
	e.Slots, e.Stops = x.slots(), x.stops()
	if e.Obstacle != "" {
		e.Hindered = x.presently(e.Obstacle)
	}
	e.Sentence = x.sentence(e.Slots)
	return e
}

// explainer is one explanation in the making.
type explainer struct {
	outlook

	policy *Policy
	in     Input
	events []Event
}

// concerning are the events that people who ask about the request want to see: one that took the
// database into service matters from the link on.
func (x *explainer) concerning() []Event {
	var events []Event
	for _, e := range x.events {
		if e.Action != "adopt" || x.in.Link != nil && e.At.After(x.in.Link.CreatedAt) {
			events = append(events, e)
		}
	}
	return events
}

// upcoming lists the slots after now, and after a pause, that the ledger does not have and that the
// link and the ceiling of the cadence leave room for.
func (p *Policy) upcoming(in Input, led ledger, series Series, count int) []cadence.Slot {
	left := count
	if ceiling := series.Cadence.Max(); ceiling > 0 {
		left = min(left, ceiling-led.mails)
	}
	var next []cadence.Slot
	if in.Request.PausedUntil.Equal(Forever()) {
		return nil
	}
	for slot := range series.Cadence.Slots(series.Origin, later(in.Now, in.Request.PausedUntil.Add(-time.Second))) {
		expires := in.Link.ExpiresAt
		if len(next) >= left || !expires.IsZero() && !slot.Due.Before(expires) {
			break
		}
		if !led.spent[slot.Name] && !slot.Due.Before(in.Request.PausedUntil) {
			next = append(next, slot)
		}
	}
	return next
}
