package scheduler

import (
	"fmt"
	"strings"
)

// rule says which rule gives a slot this reason, with its configured value.
func (x *explainer) rule(reason Reason) string {
	limits := x.policy.Limits
	switch reason {
	case ReasonSuperseded:
		return "of several slots that are due at once only the newest is sent"
	case ReasonMissed:
		return fmt.Sprintf("limits.max_lateness %s: a slot that is found later than this is not sent", spell(limits.MaxLateness))
	case ReasonBeforeAdoption:
		return fmt.Sprintf("a slot due before nudged served this database is not sent, unless within limits.max_lateness %s; one due before a person adopted the database never is",
			spell(limits.MaxLateness))
	case ReasonLinkExpired:
		return "links.expires_at: nothing is sent at that instant or after it"
	case ReasonLinkRevoked:
		return "links.revoked_at: nothing is sent for a link that was withdrawn, or whose row is gone"
	case ReasonLinkReplaced:
		return "links.created_at: a new one begins a new series and ends the old one"
	case ReasonRequestClosed:
		return "requests.status: only pending and pending_resubmission are reminded"
	case ReasonPaused:
		return "requests.paused_until: a slot that falls due or waits in a pause is skipped, and not sent after it"
	case ReasonOptedOut:
		return "requests.opted_out_at: nothing is sent once it is set"
	case ReasonSuppressed:
		return "nudged.suppressions: an address in it is not mailed"
	case ReasonMaxReached:
		if x.series.Cadence == nil {
			return "max of the cadence: so many mails for one link, unknown ones included"
		}
		return fmt.Sprintf("max: %d of cadence %s: so many mails for one link, unknown ones included", x.series.Cadence.Max(), x.series.Cadence.Name())
	case ReasonNotAllowed:
		return "mail.allow_recipients: " + strings.Join(x.policy.AllowList, ", ")
	case ReasonRecipientRefused, ReasonMessageRefused:
		return "an answer of the mail server that begins with 5 is final for the slot; later slots go on"
	case ReasonInvalidAddress:
		return "requests.recipient_email: one bare address that can be mailed"
	case ReasonTemplateError:
		return "a mail that cannot be written is not sent; later slots go on"
	case ReasonRetriesExhausted:
		return fmt.Sprintf("limits.retry_for %s: a slot is tried for so long, and never once a newer one is due", spell(limits.RetryFor))
	case ReasonReplyLost, ReasonWorkerLost:
		if within := x.policy.RepeatWithin; within > 0 {
			return fmt.Sprintf("smtp.idempotency_window %s: the latest slot is repeated for so long, to the same address; after that a person settles it", spell(within))
		}
		return "a mail that may have been accepted is never sent again by itself: a person settles it"
	case ReasonRecipientChanged:
		return "requests.recipient_email: planned anew when it is edited, at once"
	case ReasonRelayRefused, ReasonLeaseLost, ReasonShutdown:
		return "limits.max_lateness " + spell(limits.MaxLateness) + ": so long it waits without burning an attempt, for no fault of its own"
	default:
		return fmt.Sprintf("limits.retry_backoff %s to %s between attempts, for limits.retry_for %s",
			spell(limits.Backoff.Initial), spell(limits.Backoff.Max), spell(limits.RetryFor))
	}
}

// ruleOf is the rule that ended a row. What the maximum of another time or link was, nobody knows.
func (x *explainer) ruleOf(r *Reminder) string {
	if r.Reason == ReasonMaxReached && (x.earlier(r) || x.series.Cadence != nil && !x.fills(x.mailsBy(r))) {
		return "max of the cadence of that time: so many mails for one link, unknown ones included"
	}
	return x.rule(r.Reason)
}

// fills reports whether so many mails for one link are as many as the cadence allows today.
func (x *explainer) fills(mails int) bool {
	ceiling := x.series.Cadence.Max()
	return ceiling > 0 && mails >= ceiling
}

// gap is the rule of the distance between two mails.
func (x *explainer) gap() string {
	return fmt.Sprintf("limits.min_gap %s between two mails of one request", spell(x.policy.Limits.MinGap))
}

// lateness says why a slot went out late, as far as the ledger can tell.
func (x *explainer) lateness(r *Reminder) (rule string, evidence []Evidence) {
	found := r.CreatedAt.Sub(r.DueAt)
	limits := x.policy.Limits
	last := x.lastMailBefore(r.HandedOffAt)
	switch {
	case len(x.settled(r)) > 0:
		return "a person settled it; the instant of the last hand-off counts", nil
	case found > Late && last != nil && last.HandedOffAt.Add(limits.MinGap).After(r.DueAt) &&
		r.CreatedAt.Before(last.HandedOffAt.Add(limits.MinGap+Late)):
		return x.gap(), []Evidence{{At: last.HandedOffAt, Words: "slot " + last.Slot + " had gone out"}}
	case found > Late:
		if x.in.AdoptedAt.After(r.DueAt) && !x.in.AdoptedAt.After(r.CreatedAt) {
			evidence = append(evidence, Evidence{At: x.in.AdoptedAt, Words: "nudged was switched on for this database, or adopted it"})
		}
		return fmt.Sprintf("limits.max_lateness %s: a slot that is found late goes out within it", spell(limits.MaxLateness)),
			append(evidence, Evidence{At: r.CreatedAt, Words: "first taken up, " + spell(found) + " after its due: before that nudged did not run or had no database, " +
				"its mail server took nothing, or the request, its link or the configuration came later"})
	case r.Attempt > 1:
		return fmt.Sprintf("limits.retry_backoff %s to %s between attempts, for limits.retry_for %s",
				spell(limits.Backoff.Initial), spell(limits.Backoff.Max), spell(limits.RetryFor)),
			[]Evidence{
				{At: r.CreatedAt, Words: "first taken up"},
				{Words: fmt.Sprintf("accepted at attempt %d; the log says what came of those before", r.Attempt)},
			}
	case r.RetrySince.After(r.CreatedAt):
		return "limits.max_lateness " + spell(limits.MaxLateness) + ": so long a slot waits without burning an attempt, for no fault of its own",
			[]Evidence{
				{At: r.CreatedAt, Words: "first taken up"},
				{At: r.RetrySince, Words: "given back for the last time: the mail server was unwell, or the worker stopped"},
			}
	default:
		return "smtp.rate and smtp.connections: so fast mails leave", []Evidence{{At: r.CreatedAt, Words: "first taken up"}}
	}
}
