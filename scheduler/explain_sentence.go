package scheduler

import (
	"fmt"
	"strings"
)

// unplannable is the answer for a request that no cadence can be applied to.
func (x *explainer) unplannable(e Explanation) string {
	var what string
	switch {
	case x.in.Request == nil && len(e.Slots) == 0:
		return fmt.Sprintf("There is no request %q.", x.in.RequestID)
	case x.in.Request == nil:
		what = "the request is gone"
	case x.in.Link == nil:
		what = "the request has no upload link"
	default:
		what = e.Mistakes[0].Words()
	}
	if last, _ := x.latest(e.Slots); last != "" {
		return last + "; nothing more is sent: " + what + "."
	}
	return "Nothing is sent: " + what + "."
}

// sentence is the answer: what became of the latest slot, and what comes next.
func (x *explainer) sentence(slots []SlotFate) string {
	last, fate := x.latest(slots)
	next := x.ahead()
	switch {
	case last == "":
		return next + "."
	case fate.held():
		return last + ": only pending and pending_resubmission are reminded."
	}
	lasts := fate.Reason != "" && fate.Reason == x.obstacle || fate.Reason == ReasonRequestClosed && !x.in.Request.Status.Open()
	next = strings.ToLower(next[:1]) + next[1:] + "."
	if short, _, ok := strings.Cut(last, ": "); ok && lasts { // the same reason is not told twice
		return short + ", and " + next
	}
	return last + "; " + next
}

// latest says what became of the latest slot that is settled; empty where none is.
func (x *explainer) latest(slots []SlotFate) (said string, last SlotFate) {
	sent, replaced, found := 0, 0, false
	for _, f := range slots {
		switch {
		case f.Earlier && x.in.Link != nil:
			replaced++
			if f.Row.State.Mailed() {
				sent++
			}
		case f.held() && found && !last.held(): // what came before says more
		case f.Fate.settled():
			last, found = f, true
		}
	}
	switch {
	case found:
		return x.said(last), last
	case replaced > 0:
		return fmt.Sprintf("The link was refreshed %s and its series began anew, after %s for the link before",
			x.local(x.in.Link.CreatedAt), mails(sent)), last
	default:
		return "", last
	}
}

// said is one fate as the first half of a sentence.
func (x *explainer) said(f SlotFate) string {
	switch f.Fate {
	case FateOnTime:
		return fmt.Sprintf("Slot %s went out on time, %s", f.Slot.Name, x.local(f.Row.HandedOffAt))
	case FateLate:
		return fmt.Sprintf("Slot %s went out %s late, %s", f.Slot.Name, spell(f.Row.HandedOffAt.Sub(f.Slot.Due)), x.local(f.Row.HandedOffAt))
	case FateUnknown:
		words := fmt.Sprintf("Slot %s may have gone out, %s", f.Slot.Name, x.local(f.Row.HandedOffAt))
		if f.RepeatAt.IsZero() {
			words += ", and a person has to settle it"
		}
		if f.Row.State.InFlight() {
			words += x.unheard(f.Row)
		}
		return words
	}
	if f.held() {
		return fmt.Sprintf("Slot %s %s", f.Slot.Name, f.Told())
	}
	because := f.Because
	if f.Reason == "" {
		because = "a later slot has settled it"
	}
	if f.Row != nil && f.Fate == FateFailed {
		because += f.Row.detail()
	}
	return fmt.Sprintf("Slot %s %s: %s", f.Slot.Name, FateNotSent.Words(), because)
}

// detail is what the server said, or what went wrong, cut to fit in a sentence.
func (r *Reminder) detail() string {
	const most = 120
	text := []rune(r.SMTPReply)
	if len(text) > most {
		text = append(text[:most-1], '…')
	}
	switch {
	case len(text) == 0:
		return ""
	case r.SMTPCode != 0:
		return fmt.Sprintf(" (%d %s)", r.SMTPCode, string(text))
	default:
		return " (" + string(text) + ")"
	}
}

// ahead says what comes next, without a full stop.
func (x *explainer) ahead() string {
	request := x.in.Request
	switch claim := x.decision.Claim; {
	case !request.Status.Open():
		return fmt.Sprintf("Nothing is sent: the request is %q, and only pending and pending_resubmission are reminded", request.Status)
	case x.led.inFlight != nil:
		return fmt.Sprintf("Slot %s is being sent right now", x.led.inFlight.Slot)
	case claim != nil && x.again != nil && x.again.State == StateUnknown:
		return fmt.Sprintf("Slot %s is repeated by itself at the next pass, as the mail server drops repetitions, until %s", claim.Slot.Name, x.local(x.over))
	case claim != nil && x.again != nil && x.again.lapsed():
		return fmt.Sprintf("Slot %s is tried again at the next pass%s", claim.Slot.Name, x.unheard(x.again))
	case claim != nil && claim.Retry:
		return fmt.Sprintf("Slot %s is tried again at the next pass", claim.Slot.Name)
	case claim != nil:
		return fmt.Sprintf("Slot %s is due since %s and goes out at the next pass", claim.Slot.Name, x.local(claim.Slot.Due))
	case x.obstacle != "":
		return "Nothing is sent now: " + x.presently(x.obstacle) + x.afterPause()
	case x.pending != nil && len(x.due) > 0:
		return fmt.Sprintf("Slot %s is due since %s and waits until %s: %s", x.pending.Name, x.local(x.pending.Due), x.local(x.pending.at), x.gap())
	case x.pending != nil && x.again.State == StateUnknown:
		return fmt.Sprintf("Slot %s is repeated by itself after %s, as the mail server drops repetitions, until %s", x.pending.Name, x.local(x.pending.at), x.local(x.over))
	case x.pending != nil:
		return fmt.Sprintf("Slot %s is tried again after %s: %s", x.pending.Name, x.local(x.pending.at), x.again.Reason.Words())
	case len(x.next) > 0:
		if words := x.skipped(); words != "" {
			return words + "the" + strings.TrimPrefix(x.following(), "The")
		}
		return x.following()
	}
	if words := x.skipped(); words != "" {
		return words + "nothing more is sent"
	}
	expires := x.in.Link.ExpiresAt
	if slot, ok := x.series.Cadence.Next(x.series.Origin, x.in.Now); ok && !expires.IsZero() {
		if slot.Due.Before(expires) {
			return fmt.Sprintf("Nothing more is sent before the link expires %s: %s", x.local(expires), x.gap())
		}
		return fmt.Sprintf("Nothing more is sent: the link expires %s, before the next slot %s", x.local(expires), slot.Name)
	}
	return "Nothing more is sent: the cadence has no further slot for this link"
}

// skipped says that a slot is due and waits in vain, to stand before what follows; empty: there is none.
func (x *explainer) skipped() string {
	if len(x.due) == 0 {
		return ""
	}
	slot := x.due[len(x.due)-1]
	end := x.ended(x.in.Link.CreatedAt, slot.Name)
	if end == nil || !end.at.After(x.in.Now) {
		return ""
	}
	return fmt.Sprintf("Slot %s is due since %s, waits for %s, and is not sent: %s; ", slot.Name, x.local(slot.Due), x.gap(), end.Reason.Words())
}

// following names the first slot to come.
func (x *explainer) following() string {
	next := x.next[0]
	words := fmt.Sprintf("The next reminder is slot %s, due %s", next.Name, x.local(next.Due))
	if x.delayed(next) {
		words += fmt.Sprintf(", and waits until %s: %s", x.local(next.at), x.gap())
	}
	return words
}

// unheard says since when nobody has heard of the worker of a reminder.
func (x *explainer) unheard(r *Reminder) string {
	return ": its worker has not been heard of since its lease ended " + x.local(r.LeaseUntil)
}

// presently says what keeps a request from being reminded now, with instants and names.
func (x *explainer) presently(reason Reason) string {
	request, link := x.in.Request, x.in.Link
	switch reason {
	case ReasonPaused:
		words := "the request is paused " + x.pausedUntil()
		switch paused := x.paused(x.in.Now, x.in.Now); {
		case paused != nil && x.stands(paused):
			words += paused.by()
		case request.PauseReason != "":
			words += " (" + request.PauseReason + ")"
		}
		return words
	case ReasonOptedOut:
		return "the recipient opted out " + x.local(request.OptedOutAt)
	case ReasonLinkExpired:
		return "the upload link expired " + x.local(link.ExpiresAt)
	case ReasonLinkRevoked:
		return "the upload link was withdrawn " + x.local(link.RevokedAt)
	case ReasonSuppressed:
		words := "the address is suppressed"
		if suppressed := x.suppression(request.RecipientEmail, x.in.Now); suppressed != nil {
			words += suppressed.by()
		}
		return words
	case ReasonMaxReached:
		return fmt.Sprintf("the cadence's maximum of %s for this link is reached", mails(x.series.Cadence.Max()))
	default:
		return reason.Words()
	}
}

// by says who did it, and why.
func (e Event) by() string { return " (" + e.Actor + ": " + e.Why + ")" }

// afterPause names the slot that comes after a pause that ends.
func (x *explainer) afterPause() string {
	if x.obstacle != ReasonPaused || len(x.next) == 0 {
		return ""
	}
	return fmt.Sprintf("; after that comes slot %s, due %s", x.next[0].Name, x.local(x.next[0].Due))
}

// stops lists what would keep the slots to come from going out.
func (x *explainer) stops() []string {
	if x.decision.Claim == nil && x.pending == nil && len(x.next) == 0 {
		return nil
	}
	request, link, limits := x.in.Request, x.in.Link, x.policy.Limits
	stops := []string{fmt.Sprintf("requests.status: any word but pending and pending_resubmission (it is %q)", request.Status)}
	if link.ExpiresAt.IsZero() || link.ExpiresAt.Equal(Forever()) {
		stops = append(stops, "the link: it never expires; withdrawing it ends the series, refreshing it begins a new one")
	} else {
		stops = append(stops, fmt.Sprintf("the link: it expires %s; withdrawing it ends the series, refreshing it begins a new one", x.local(link.ExpiresAt)))
	}
	stops = append(stops, "a pause, an opt-out, or the suppression of the address")
	if ceiling := x.series.Cadence.Max(); ceiling > 0 {
		mailed := x.counted().mails
		stops = append(stops, fmt.Sprintf("max: %d of cadence %s: %s went out for this link, %d may follow%s",
			ceiling, x.series.Cadence.Name(), mails(mailed), max(0, ceiling-mailed), x.first()))
	}
	if x.again != nil {
		stops = append(stops, x.ending())
	}
	return append(stops, fmt.Sprintf("limits.max_lateness %s: a slot that nudged finds later than this is skipped", spell(limits.MaxLateness)))
}

// first names the slot that takes the first place of those that the maximum leaves.
func (x *explainer) first() string {
	switch {
	case x.decision.Claim != nil:
		return ", slot " + x.decision.Claim.Slot.Name + " first"
	case x.pending != nil:
		return ", slot " + x.pending.Name + " first"
	default:
		return ""
	}
}

// ending says when the attempts of a slot end.
func (x *explainer) ending() string {
	verb := "tried"
	if x.again.inDoubt() {
		verb = "repeated"
	}
	limit, end := x.policy.triedUntil(x.again)
	words := fmt.Sprintf("%s: slot %s is %s until %s; a newer slot falling due ends that", limit, x.again.Slot, verb, x.local(end))
	if newer, ok := x.series.Cadence.Next(x.series.Origin, x.in.Now); ok {
		words += fmt.Sprintf(": %s, due %s", newer.Name, x.local(newer.Due))
	}
	return words
}
