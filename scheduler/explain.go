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
	Reason        Reason // empty where none is needed; of one that waits: why it will not be sent
	Because       string // the reason in plain words
	Rule          string // with the configured value
	Evidence      []Evidence
	RepeatAt      time.Time // of unknown fate, and repeated by itself after this; zero: it is not
	Row           *Reminder // of the ledger; nil: it has none
}

// held reports whether a slot that fell due is not sent because the request is closed. It may be opened again.
func (f SlotFate) held() bool { return f.Row == nil && f.Reason == ReasonRequestClosed }

// Words says the fate in plain words, to stand behind the name of the slot.
func (f SlotFate) Words() string {
	if f.held() {
		return "is not sent"
	}
	return f.Fate.Words()
}

// Told says the fate and the reason.
func (f SlotFate) Told() string {
	switch {
	case f.Because == "":
		return f.Words()
	case f.held():
		return f.Words() + " while " + f.Because
	case f.Fate == FateWaits:
		return f.Words() + ", and is not sent: " + f.Because
	default:
		return f.Words() + ": " + f.Because
	}
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
	FateUnknown  Fate = "unknown"   // it may have been accepted; a person settles it, unless it is repeated by itself
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

// Explain answers for one request from the very policy that the passes apply. It lists at most
// count slots to come. The events are those of the request, its addresses and the database, the
// oldest first.
func (p *Policy) Explain(in Input, events []Event, count int) Explanation {
	x := explainer{policy: p, in: recovered(in), rows: in.Reminders, events: events}
	e := Explanation{Input: in, Past: in.Reminders, Events: x.concerning()}
	if in.Request != nil && in.Link != nil {
		e.Series, e.Problem = p.Series(*in.Request, *in.Link)
		e.Mistakes = p.Mistakes(*in.Request, *in.Link)
		if in.Purged && in.Request.Status.Open() {
			e.Problem, e.Series.Cadence = ProblemPurgedLink, nil
			e.Mistakes = append([]Mistake{{Problem: ProblemPurgedLink}}, e.Mistakes...)
		}
		x.series = e.Series
	}
	if e.Series.Cadence == nil {
		x.outlook.led, x.outlook.decision = readLedger(x.in), p.Plan(x.in)
		x.ends = x.decision.ends(in.Now)
		e.Decision, e.Slots = x.decision, x.fates()
		e.Sentence = x.unplannable(e)
		return e
	}
	x.outlook = p.outlook(x.in, e.Series, count)
	e.Decision, e.Obstacle, e.Next = x.decision, x.obstacle, x.slots()
	e.Slots, e.Stops = x.fates(), x.stops()
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
	in     Input      // as the next pass finds it
	rows   []Reminder // of the ledger as it is
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
