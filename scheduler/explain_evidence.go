package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// changed is said of a column that ended a slot and now holds what cannot have ended it.
const changed = "the row said so then, and has been changed since"

// evidence is what bears out the reason of a row, beyond the row itself.
func (x *explainer) evidence(r *Reminder) []Evidence {
	request, link := x.in.Request, x.in.Link
	fact := func(at time.Time, words string) []Evidence { return []Evidence{{At: at, Words: words}} }
	switch {
	case r.Reason == ReasonSuperseded:
		if newer := x.newer(r); newer != nil {
			return fact(newer.DueAt, "slot "+newer.Slot+" was due as well")
		}
	case r.Reason == ReasonMissed:
		return fact(r.FinishedAt, "found "+spell(r.FinishedAt.Sub(r.DueAt))+" after its due")
	case r.Reason == ReasonBeforeAdoption:
		return x.adoption(r.FinishedAt)
	case r.Reason == ReasonPaused:
		return x.pause(r)
	case r.Reason == ReasonSuppressed:
		if suppressed := x.suppressed(r); suppressed != nil {
			return []Evidence{suppressed.evidence()}
		}
		return fact(time.Time{}, "who suppressed it is not known: the request had another address then, or nudged.suppressions was written by hand")
	case r.Reason == ReasonMaxReached:
		return fact(time.Time{}, mails(x.mailsBy(r))+" went out for this link, or may have")
	case request == nil:
	case r.Reason == ReasonRequestClosed:
		return fact(time.Time{}, fmt.Sprintf("the status is %q now; when it changed, the application knows", request.Status))
	case r.Reason == ReasonOptedOut:
		return x.column(r, request.OptedOutAt, "the recipient opted out")
	case r.Reason == ReasonNotAllowed, r.Reason == ReasonInvalidAddress:
		return fact(time.Time{}, fmt.Sprintf("the address is %q now", request.RecipientEmail))
	case link == nil:
	case r.Reason == ReasonLinkReplaced:
		return fact(link.CreatedAt, "the present link was created")
	case x.earlier(r) && (r.Reason == ReasonLinkExpired || r.Reason == ReasonLinkRevoked):
		return fact(time.Time{}, "the link of that time said so, and has been replaced since")
	case r.Reason == ReasonLinkExpired:
		return x.column(r, link.ExpiresAt, "the link expires")
	case r.Reason == ReasonLinkRevoked:
		return x.column(r, link.RevokedAt, "the link was withdrawn")
	}
	return nil
}

// adoption is what is known at an instant about since when nudged serves the database.
func (x *explainer) adoption(at time.Time) (evidence []Evidence) {
	if !x.in.AdoptedAt.After(at) {
		evidence = append(evidence, Evidence{At: x.in.AdoptedAt, Words: "nudged serves this database since then"})
	}
	if adopted := x.last(at, "adopt"); adopted != nil {
		evidence = append(evidence, adopted.evidence())
	}
	if evidence == nil {
		return []Evidence{{Words: "when nudged began to serve this database is not known: it was adopted again since"}}
	}
	return evidence
}

// column says when something was, by an instant in a row of the application; one that the slot did not
// end by is not its cause.
func (x *explainer) column(r *Reminder, at time.Time, words string) []Evidence {
	switch {
	case !at.IsZero() && !at.After(r.FinishedAt):
		return []Evidence{{At: at, Words: words}}
	case at.After(x.in.Now) && r.Reason != ReasonLinkExpired: // that it is set counts, whatever to
		return []Evidence{{Words: words + ", says the row: " + x.local(at)}}
	default:
		return []Evidence{{Words: changed}}
	}
}

// earlier reports whether a row belongs to a link that is not the present one.
func (x *explainer) earlier(r *Reminder) bool {
	return x.in.Link == nil || !r.LinkCreatedAt.Equal(x.in.Link.CreatedAt)
}

// mailsBy counts the mails of a row's link until it was finished.
func (x *explainer) mailsBy(r *Reminder) (mails int) {
	for i := range x.in.Reminders {
		other := &x.in.Reminders[i]
		left := other.HandedOffAt
		if other.inDoubt() {
			left = other.UnknownSince
		}
		if (other.State.Mailed() || other.inDoubt()) && other.LinkCreatedAt.Equal(r.LinkCreatedAt) && !left.After(r.FinishedAt) {
			mails++
		}
	}
	return mails
}

// newer is the slot that a row was superseded by: the latest that was due by then.
func (x *explainer) newer(r *Reminder) (newer *Reminder) {
	for i := range x.in.Reminders {
		other := &x.in.Reminders[i]
		if other.LinkCreatedAt.Equal(r.LinkCreatedAt) && other.DueAt.After(r.DueAt) && !other.DueAt.After(r.FinishedAt) &&
			(newer == nil || other.DueAt.After(newer.DueAt)) {
			newer = other
		}
	}
	if x.earlier(r) {
		return newer
	}
	for _, slot := range x.due { // it may have no row yet
		if slot.Due.After(r.DueAt) && !slot.Due.After(r.FinishedAt) && (newer == nil || slot.Due.After(newer.DueAt)) {
			newer = &Reminder{Slot: slot.Name, DueAt: slot.Due}
		}
	}
	return newer
}

// pause says who paused the request when a slot was skipped for it.
func (x *explainer) pause(r *Reminder) []Evidence {
	act, row := x.paused(r.FinishedAt, r.DueAt), x.rowPause(r)
	switch {
	case act != nil && (row == "" || x.stands(act)):
		return []Evidence{act.evidence()}
	case act != nil && r.FinishedAt.Before(x.in.Now): // the row may have been changed before or after
		return []Evidence{act.evidence(), {Words: "the row says now: paused " + row}}
	default:
		return []Evidence{{Words: strings.TrimSpace("the application paused the request " + row)}}
	}
}

// rowPause is the pause in the row of the request where a slot may have been skipped for that one.
func (x *explainer) rowPause(r *Reminder) string {
	request := x.in.Request
	if request == nil || !request.PausedUntil.After(r.DueAt) {
		return ""
	}
	if act := x.paused(x.in.Now, x.in.Now); act != nil && x.stands(act) { // of later: it is not the one of then
		return ""
	}
	words := x.pausedUntil()
	if request.PauseReason != "" {
		words += ": " + request.PauseReason
	}
	return words
}

func (x *explainer) pausedUntil() string {
	if x.in.Request.PausedUntil.Equal(Forever()) {
		return "until resumed"
	}
	return "until " + Local(x.in.Request.PausedUntil, x.series.Origin.Zone)
}

// paused is the act of a person that paused the request at an instant, for a slot of that due.
func (x *explainer) paused(at, due time.Time) *Event {
	last := x.last(at, "pause", "resume")
	if last == nil || last.Action != "pause" {
		return nil
	}
	if until, ok := last.until(); ok && !until.After(due) {
		return nil
	}
	return last
}

// stands reports whether the row of the request has the very pause that a person gave it.
func (x *explainer) stands(act *Event) bool {
	request := x.in.Request
	until, ok := act.until()
	return request != nil && request.PauseReason == act.Why && (!ok || until.Equal(request.PausedUntil))
}

// until is the end of a pause, as PostgreSQL wrote it down. It is not known where the database writes
// instants in another way than by default.
func (e Event) until() (time.Time, bool) {
	text, _ := strings.CutPrefix(e.Detail, "until ")
	if text == "infinity" {
		return Forever(), true
	}
	for _, layout := range []string{"2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// suppressed is the act that a row was skipped for.
func (x *explainer) suppressed(r *Reminder) *Event {
	if address := x.addressOf(r); address != "" {
		return x.suppression(address, r.FinishedAt)
	}
	return nil
}

// addressOf is the address that a request had when a row ended, as far as the ledger can tell: that of
// the row, or of the mail before it, and the present one where there is none or the row is yet to end.
func (x *explainer) addressOf(r *Reminder) string {
	if r.FinishedAt.Before(x.in.Now) {
		if r.Recipient != "" {
			return r.Recipient
		}
		if last := x.lastMailBefore(r.FinishedAt); last != nil && last.Recipient != "" {
			return last.Recipient
		}
	}
	if x.in.Request == nil {
		return ""
	}
	return x.in.Request.RecipientEmail
}

// suppression is the act that keeps an address from being mailed at an instant.
func (x *explainer) suppression(address string, at time.Time) (last *Event) {
	for i := range x.events {
		e := &x.events[i]
		if (e.Action == "suppress" || e.Action == "unsuppress") && !e.At.After(at) && SameAddress(e.Address, address) {
			last = e
		}
	}
	if last != nil && last.Action == "unsuppress" {
		return nil
	}
	return last
}

// SameAddress compares as suppressions do: upper and lower case are the same, and blanks around do not
// count.
func SameAddress(a, b string) bool {
	fold := func(s string) string { return strings.ToLower(strings.Trim(s, " ")) }
	return fold(a) == fold(b)
}

// settled is what a person said became of a reminder.
func (x *explainer) settled(r *Reminder) []Evidence {
	var evidence []Evidence
	for _, e := range x.events {
		if e.Action == "resolve" && e.Slot == r.Slot && e.LinkCreatedAt.Equal(r.LinkCreatedAt) {
			evidence = append(evidence, e.evidence())
		}
	}
	return evidence
}

// last is the latest event of some kinds up to an instant.
func (x *explainer) last(until time.Time, actions ...string) (last *Event) {
	for i := range x.events {
		if e := &x.events[i]; slices.Contains(actions, e.Action) && !e.At.After(until) {
			last = e
		}
	}
	return last
}

// evidence says what somebody did, and why.
func (e Event) evidence() Evidence {
	words := map[string]string{
		"adopt": "adopted the database for", "pause": "paused the request", "resume": "resumed the request",
		"resolve": "settled it as", "suppress": "suppressed the address", "unsuppress": "let the address be mailed again",
	}[e.Action]
	return Evidence{At: e.At, Who: e.Actor, Words: strings.TrimSpace(words+" "+e.Detail) + ": " + e.Why}
}
