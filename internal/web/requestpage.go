package web

import (
	"errors"
	"fmt"
	"time"

	"nudged/cadence"
	"nudged/scheduler"
)

// requestPage is all about one request, ready to be written.
type requestPage struct {
	page

	ID          string
	Sentence    string
	Tone        tone
	Problem     string // what is wrong with the row
	Request     *scheduler.Request
	Cadence     string
	Paused      *moment
	OptedOut    *moment
	Link        *linkView
	Documents   []scheduler.Document
	Past        []step
	Now         []step // what the next pass does
	Next        []step
	Events      []eventView
	Mail        *mailView
	AreHidden   bool // addresses and the link
	Obstacle    string
	linkCreated time.Time
}

// linkView is the upload link.
type linkView struct {
	URL                       string
	Created, Expires, Revoked *moment
}

// step is one slot on the way.
type step struct {
	outcome

	Link *moment // where it belongs to a link that was replaced
	Fate string  // in words, where the ledger has none yet
}

// eventView is what a person did.
type eventView struct {
	Event

	When *moment
}

// mailView is the mail of one slot.
type mailView struct {
	message

	Slot    string
	Due     *moment
	Sent    bool   // it went out; otherwise it is the next one
	Failure string // why it cannot be written
}

func (s *Server) newRequestPage(p page, id string, r Request) requestPage {
	e := r.Explanation
	p.now = e.Input.Now
	if zone := e.Series.Origin.Zone; zone != nil {
		p.zone = zone
	}
	mask := masker{show: s.cfg.Pages.ShowAddresses}
	view := requestPage{page: p, ID: id, Tone: toneFor(e), Cadence: cadenceOf(e), AreHidden: !mask.show}
	if link := e.Input.Link; link != nil {
		mask.link = link.URL
		view.linkCreated = link.CreatedAt
		view.Link = &linkView{
			URL: mask.url(), Created: p.Moment(link.CreatedAt), Expires: p.Moment(link.ExpiresAt), Revoked: p.Moment(link.RevokedAt),
		}
	}
	view.Sentence = mask.text(e.Sentence)
	if e.Input.Request != nil {
		request := mask.request(*e.Input.Request)
		view.Request = &request
		view.Paused, view.OptedOut = p.Moment(request.PausedUntil), p.Moment(request.OptedOutAt)
		view.Problem = problem(e, request)
		view.Mail = s.mailOf(p, mask, r)
	}
	view.Documents = mask.documents(r.Documents)
	for _, event := range mask.events(r.Events) {
		view.Events = append(view.Events, eventView{event, p.Moment(event.At)})
	}
	s.addSteps(&view, mask, e)
	return view
}

// addSteps lays out the slots: what happened, what the next pass does, what comes.
func (s *Server) addSteps(view *requestPage, mask masker, e scheduler.Explanation) {
	for _, r := range e.Past {
		past := step{outcome: s.outcome(view.page, mask, r)}
		if !r.LinkCreatedAt.Equal(view.linkCreated) {
			past.Link = view.Moment(r.LinkCreatedAt)
		}
		view.Past = append(view.Past, past)
	}
	planned := func(slot cadence.Slot, t tone, fate, because string) step {
		return step{Fate: fate, outcome: outcome{
			Reminder: scheduler.Reminder{Slot: slot.Name}, Tone: t, Because: because, Due: view.Moment(slot.Due),
		}}
	}
	for _, v := range e.Decision.Verdicts {
		if !v.Existing {
			view.Now = append(view.Now, planned(v.Slot, toneOff, "to be skipped at the next pass", v.Reason.Words()))
		}
	}
	if claim := e.Decision.Claim; claim != nil {
		view.Now = append(view.Now, planned(claim.Slot, toneWait, "goes out at the next pass", ""))
	}
	for _, slot := range e.Next {
		view.Next = append(view.Next, planned(slot, toneWait, "to come", ""))
	}
	if e.Obstacle != "" && len(e.Next) > 0 {
		view.Obstacle = e.Obstacle.Words()
	}
}

// cadenceOf is empty where the request names a cadence that does not exist.
func cadenceOf(e scheduler.Explanation) string {
	if e.Series.Cadence == nil {
		return ""
	}
	return e.Series.Cadence.Name()
}

// toneFor fits the sentence of an explanation.
func toneFor(e scheduler.Explanation) tone {
	switch {
	case e.Problem != scheduler.ProblemNone:
		return toneBad
	case e.Input.Request == nil || !e.Input.Request.Status.Open() || e.Obstacle != "":
		return toneOff
	case e.Decision.Claim != nil:
		return toneWait
	default:
		return toneGood
	}
}

// problem says what is wrong with the row of a request.
func problem(e scheduler.Explanation, r scheduler.Request) string {
	switch e.Problem {
	case scheduler.ProblemUnknownCadence:
		return fmt.Sprintf("The row names the cadence %q, which the configuration does not have. Nothing is sent before that is put right.", r.Cadence)
	case scheduler.ProblemUnknownZone:
		return fmt.Sprintf("The row names the time zone %q, which does not exist. The default zone is used instead.", r.TimeZone)
	default:
		return ""
	}
}

// mailOf writes the mail of the request's task.
func (s *Server) mailOf(p page, mask masker, r Request) *mailView {
	if r.Task == nil {
		return nil
	}
	task := *r.Task
	view := &mailView{Slot: task.Slot.Name, Due: p.Moment(task.Slot.Due), Sent: r.WasSent}
	// What the mailer thinks of the real address and the real link comes first.
	_, err := s.cfg.Pages.Compose(task)
	if err == nil {
		task.Request, task.Documents = mask.request(task.Request), mask.documents(task.Documents)
		task.Link.URL = mask.url()
		var composed scheduler.Message
		if composed, err = s.cfg.Pages.Compose(task); err == nil {
			view.message, err = parseMessage(composed.Data)
		}
	}
	if err != nil {
		view.Failure = scheduler.ReasonTemplateError.Words()
		if refused, ok := errors.AsType[*scheduler.ComposeError](err); ok {
			view.Failure = refused.Reason.Words()
		}
	}
	return view
}
