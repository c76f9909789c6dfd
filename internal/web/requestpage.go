package web

import (
	"errors"
	"slices"

	"nudged/scheduler"
)

// requestPage is all about one request, ready to be written.
type requestPage struct {
	page

	ID        string
	Sentence  string
	Tone      tone
	Mistakes  []string // what is wrong with the rows of the request
	Request   *scheduler.Request
	Cadence   string
	Paused    *moment
	OptedOut  *moment
	Link      *linkView
	Documents []scheduler.Document
	Past      []step
	Next      []step
	Events    []eventView
	Mail      *mailView
	AreHidden bool // addresses and the link
	Obstacle  string
	Language  string
	Stops     []string // what would keep the next ones from going out
}

// linkView is the upload link.
type linkView struct {
	URL                       string
	Created, Expires, Revoked *moment
}

// step is one slot on the way.
type step struct {
	outcome

	Link  *moment // where it belongs to a link that was replaced
	Fate  string  // in words
	Rule  string
	Facts []fact // beyond the row of the ledger
}

// fact is one piece of evidence.
type fact struct {
	When       *moment
	Who, Words string
}

// eventView is what a person did.
type eventView struct {
	scheduler.Event

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
		view.Link = &linkView{
			URL: mask.url(), Created: p.Moment(link.CreatedAt), Expires: p.Moment(link.ExpiresAt), Revoked: p.Moment(link.RevokedAt),
		}
	}
	view.Sentence = mask.text(e.Sentence)
	if e.Input.Request != nil {
		request := mask.request(*e.Input.Request)
		view.Request = &request
		view.Paused, view.OptedOut = p.Moment(request.PausedUntil), p.Moment(request.OptedOutAt)
		for _, m := range e.Mistakes {
			view.Mistakes = append(view.Mistakes, mask.text(m.Words()+"; "+m.Effect()))
		}
		view.Mail, view.Language = s.mailOf(p, mask, r), r.Language
	}
	view.Documents = mask.documents(r.Documents)
	for _, event := range mask.events(e.Events) {
		view.Events = append(view.Events, eventView{event, p.Moment(event.At)})
	}
	s.addSteps(&view, mask, e)
	return view
}

// addSteps lays out the slots: what happened or is due, and what comes.
func (s *Server) addSteps(view *requestPage, mask masker, e scheduler.Explanation) {
	for _, f := range e.Slots {
		if f.Fate != scheduler.FateToCome {
			view.Past = append(view.Past, s.step(view.page, mask, f))
			continue
		}
		f.Rule = "" // the same for all of them
		view.Next = append(view.Next, s.step(view.page, mask, f))
	}
	for _, stop := range e.Stops {
		view.Stops = append(view.Stops, mask.text(stop))
	}
	if len(e.Next) > 0 {
		view.Obstacle = mask.text(e.Hindered)
	}
}

func (s *Server) step(p page, mask masker, f scheduler.SlotFate) step {
	row := scheduler.Reminder{Slot: f.Slot.Name, DueAt: f.Slot.Due, Reason: f.Reason}
	if f.Row != nil {
		row = *f.Row
	}
	one := step{outcome: s.outcome(p, mask, row), Fate: f.Words(), Rule: mask.text(f.Rule)}
	one.Tone = toneOfFate(f.Fate)
	one.Because = mask.text(f.Because)
	if !f.RepeatAt.IsZero() { // nobody has to settle it yet
		one.Retry, one.Sent, one.NotSent = p.Moment(f.RepeatAt), "", ""
	}
	if f.Earlier {
		one.Link = p.Moment(f.LinkCreatedAt)
	}
	for _, e := range f.Evidence {
		one.Facts = append(one.Facts, fact{When: p.Moment(e.At), Who: e.Who, Words: mask.text(e.Words)})
	}
	return one
}

func toneOfFate(f scheduler.Fate) tone {
	switch f {
	case scheduler.FateOnTime, scheduler.FateLate:
		return toneGood
	case scheduler.FateUnknown:
		return toneDoubt
	case scheduler.FateFailed:
		return toneBad
	case scheduler.FateNotSent:
		return toneOff
	default:
		return toneWait
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
	case slices.ContainsFunc(e.Slots, func(f scheduler.SlotFate) bool { return f.Fate == scheduler.FateUnknown }):
		return toneDoubt
	case e.Decision.Claim != nil:
		return toneWait
	default:
		return toneGood
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
