package scheduler

import (
	"fmt"
	"time"

	"nudged/cadence"
)

// Explanation tells what became of each slot of a request and what comes next.
type Explanation struct {
	Sentence string // the answer in one sentence
	Input    Input
	Series   Series
	Problem  Problem
	Past     []Reminder     // the ledger, oldest link first
	Next     []cadence.Slot // slots to come, by due
	Obstacle Reason         // what would stop the next one if it were due now
	Decision Decision       // what the next pass will do
}

// NextSlot returns the slot that goes out next for a request as things stand: one that is due now, or
// the first to come.
func (p *Policy) NextSlot(in Input) (cadence.Slot, bool) {
	e := p.Explain(in, 1)
	switch {
	case e.Decision.Claim != nil:
		return e.Decision.Claim.Slot, true
	case len(e.Next) > 0:
		return e.Next[0], true
	}
	return cadence.Slot{}, false
}

// Explain answers for one request from the very policy that the passes apply. It lists at most
// count slots to come.
func (p *Policy) Explain(in Input, count int) Explanation {
	e := Explanation{Input: in, Past: in.Reminders}
	if in.Request == nil {
		e.Sentence = fmt.Sprintf("There is no request %q.", in.RequestID)
		return e
	}
	if in.Link == nil {
		e.Sentence = "Nothing is sent: the request has no upload link."
		return e
	}
	led := readLedger(in)
	e.Series, e.Problem = p.Series(*in.Request, *in.Link)
	if e.Problem == ProblemUnknownCadence {
		e.Sentence = fmt.Sprintf("Nothing is sent: the configuration has no cadence %q.", in.Request.Cadence)
		return e
	}
	e.Decision = p.Plan(in)
	e.Obstacle = p.obstacle(in, led, e.Series, in.Now)
	if in.Request.Status.Open() && (e.Obstacle == "" || e.Obstacle == ReasonPaused) {
		e.Next = p.upcoming(in, led, e.Series, count)
	}
	e.Sentence = e.sentence(led)
	return e
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

func (e Explanation) sentence(led ledger) string {
	request, zone := e.Input.Request, e.Series.Origin.Zone
	switch {
	case !request.Status.Open():
		return fmt.Sprintf("Nothing is sent: the request is %q, and only pending and pending_resubmission are reminded.", request.Status)
	case led.inFlight != nil:
		return fmt.Sprintf("Slot %s is being sent right now.", led.inFlight.Slot)
	case e.Decision.Claim != nil:
		return fmt.Sprintf("Slot %s is due since %s and goes out at the next pass.",
			e.Decision.Claim.Slot.Name, Local(e.Decision.Claim.Slot.Due, zone))
	case e.Obstacle != "":
		return "Nothing is sent now: " + e.Obstacle.Words() + "."
	case len(led.deferred) > 0:
		return fmt.Sprintf("Slot %s is tried again after %s: %s.", led.deferred[0].Slot,
			Local(led.deferred[0].RetryAt, zone), led.deferred[0].Reason.Words())
	case len(e.Next) > 0:
		return fmt.Sprintf("The next reminder is slot %s, due %s.", e.Next[0].Name, Local(e.Next[0].Due, zone))
	default:
		return "Nothing more is sent: the cadence has no further slot for this link."
	}
}

// Local writes an instant as the clock of a zone shows it, with the offset.
func Local(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	if t.Equal(Forever()) {
		return "for ever"
	}
	return t.In(zone).Format("2006-01-02 15:04:05 -07:00")
}

// Words says a reason in plain words, to stand after a colon.
func (r Reason) Words() string {
	switch r {
	case ReasonSuperseded:
		return "a newer slot was due as well, and only the newest is sent"
	case ReasonMissed:
		return "it was found later than limits.max_lateness allows"
	case ReasonBeforeAdoption:
		return "it was due before nudged was switched on for this database"
	case ReasonLinkExpired:
		return "the upload link has expired"
	case ReasonLinkRevoked:
		return "the upload link was withdrawn"
	case ReasonLinkReplaced:
		return "the upload link was replaced by a newer one"
	case ReasonRequestClosed:
		return "the request was no longer open"
	case ReasonPaused:
		return "the request is paused"
	case ReasonOptedOut:
		return "the recipient opted out"
	case ReasonSuppressed:
		return "the address is suppressed"
	case ReasonMaxReached:
		return "the cadence's maximum of mails for this link is reached"
	case ReasonNotAllowed:
		return "mail.allow_recipients does not allow this address"
	case ReasonRecipientRefused:
		return "the server refused the recipient"
	case ReasonMessageRefused:
		return "the server refused the message"
	case ReasonInvalidAddress:
		return "the address is not one that can be mailed"
	case ReasonTemplateError:
		return "the mail could not be written"
	case ReasonRetriesExhausted:
		return "its time for retries was over"
	case ReasonRelayRefused:
		return "the mail server did not accept mail at that time"
	case ReasonGreylisted:
		return "the server asked to try again later"
	case ReasonConnectionLost:
		return "the connection broke before the mail was complete"
	case ReasonLeaseLost:
		return "the worker went away before anything was sent"
	case ReasonShutdown:
		return "the daemon stopped before anything was sent"
	case ReasonNotSent:
		return "a person settled that it was not sent"
	case ReasonRecipientChanged:
		return "the address was edited just before it was sent"
	case ReasonReplyLost:
		return "the mail left and the server's answer never came: it may have been accepted"
	case ReasonWorkerLost:
		return "the worker went away while sending: it may have been accepted"
	default:
		return string(r)
	}
}
