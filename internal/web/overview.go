package web

import (
	"fmt"

	"nudged/scheduler"
)

// overviewPage is how things stand, ready to be written.
type overviewPage struct {
	page
	Overview

	Sentence  string // the answer in one sentence
	Tone      tone
	Due       int  // slots
	Cut       bool // there are more of them than were counted
	Unsettled []outcome
	Outcomes  []outcome
	Mistakes  []Mistake
	Chart     chart
}

// tone is how good or bad something is; the style sheet has a colour for each.
type tone string

const (
	toneGood  tone = "good"
	toneWait  tone = "wait"  // on its way
	toneDoubt tone = "doubt" // a person has to look
	toneBad   tone = "bad"
	toneOff   tone = "off" // nothing happened, and nothing should
)

func toneOf(s scheduler.State) tone {
	switch s {
	case scheduler.StateSent:
		return toneGood
	case scheduler.StateUnknown:
		return toneDoubt
	case scheduler.StateFailed:
		return toneBad
	case scheduler.StateSkipped:
		return toneOff
	default:
		return toneWait
	}
}

// outcome is one row of the ledger as a list shows it.
type outcome struct {
	scheduler.Reminder

	Tone          tone
	Because       string // the reason in plain words
	Evidence      string // what the server said, or what went wrong before it could
	Due           *moment
	HandedOff     *moment
	Finished      *moment
	Retry         *moment
	Sent, NotSent string // commands that settle it
}

func (s *Server) outcome(p page, m masker, r scheduler.Reminder) outcome {
	o := outcome{
		Reminder: r, Tone: toneOf(r.State), Evidence: m.text(r.SMTPReply),
		Due: p.Moment(r.DueAt), HandedOff: p.Moment(r.HandedOffAt), Finished: p.Moment(r.FinishedAt), Retry: p.Moment(r.RetryAt),
	}
	if r.Reason != "" {
		o.Because = r.Reason.Words()
	}
	if r.SMTPCode != 0 {
		o.Evidence = fmt.Sprintf("%d %s", r.SMTPCode, o.Evidence)
	}
	if r.State == scheduler.StateUnknown {
		o.Sent, o.NotSent = s.cfg.Pages.Settle(r)
	}
	return o
}

func (s *Server) outcomes(p page, m masker, list []scheduler.Reminder) []outcome {
	outcomes := make([]outcome, len(list))
	for i, r := range list {
		outcomes[i] = s.outcome(p, m, r)
	}
	return outcomes
}

func (s *Server) newOverviewPage(p page, o Overview) overviewPage {
	p.now = o.Now
	mask := masker{show: s.cfg.Pages.ShowAddresses}
	view := overviewPage{
		page: p, Overview: o, Due: o.OnTime + o.Late, Cut: o.OnTime+o.Late >= o.Limit,
		Unsettled: s.outcomes(p, mask, o.Unsettled), Outcomes: s.outcomes(p, mask, o.Outcomes),
		Chart: newChart(o.Upcoming, o.Limit, p.zone),
	}
	for _, m := range o.Mistakes {
		m.Value = mask.text(m.Value)
		view.Mistakes = append(view.Mistakes, m)
	}
	view.Sentence, view.Tone = o.sentence()
	return view
}

// sentence says what matters most.
func (o Overview) sentence() (string, tone) {
	due := o.OnTime + o.Late
	switch {
	case o.Trouble != nil:
		return "Nothing is sent now: " + o.Trouble.Error() + ".", toneBad
	case !o.RelayUp:
		return "Sending has stopped: the mail server does not accept mail. It goes on by itself.", toneBad
	case o.Unknown == 1:
		return "The fate of one reminder is unknown. A person has to settle it.", toneDoubt
	case o.Unknown > 1:
		return "The fate of " + o.most(o.Unknown, "reminder") + " is unknown. A person has to settle them.", toneDoubt
	case o.Late > 0:
		return o.most(o.Late, "reminder") + " waited for longer than " + span(o.LateAfter) + ".", toneBad
	case len(o.Mistakes) > 0:
		return "All is well but for requests whose row has a mistake.", toneDoubt
	case due > 0:
		return "All is well: " + o.most(due, "reminder") + " due, on time.", toneGood
	default:
		return "All is well: nothing is due.", toneGood
	}
}

// Capped writes a count that stops at the limit.
func (o Overview) Capped(n int) string { return plus(n, n >= o.Limit) }

// LateText is how long a slot waits before it is late.
func (o Overview) LateText() string { return span(o.LateAfter) }

// most writes a count that may have stopped at the limit.
func (o Overview) most(n int, noun string) string {
	if n >= o.Limit {
		return "at least " + count(o.Limit, noun)
	}
	return count(n, noun)
}
