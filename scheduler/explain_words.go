package scheduler

import (
	"fmt"
	"time"
)

// Local writes an instant as the clock of a zone shows it, with the day of the week and the offset.
func Local(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	switch {
	case t.Equal(Forever()):
		return "for ever"
	case t.Equal(BeforeAll()):
		return "before all time"
	}
	if zone == nil {
		zone = time.UTC
	}
	return t.In(zone).Format("Mon 2006-01-02 15:04:05 -07:00")
}

func (x *explainer) local(t time.Time) string { return Local(t, x.series.Origin.Zone) }

// spell writes a length of time in its two largest units, such as 48h, 1h30m or 5d3h.
func spell(d time.Duration) string {
	const day = 24 * time.Hour
	large, small, name, smallName := day, time.Hour, "d", "h"
	switch {
	case d < time.Second:
		return d.String()
	case d < time.Minute:
		large, small, name, smallName = time.Second, time.Second, "s", ""
	case d < time.Hour:
		large, small, name, smallName = time.Minute, time.Second, "m", "s"
	case d <= 2*day:
		large, small, name, smallName = time.Hour, time.Minute, "h", "m"
	}
	text := fmt.Sprintf("%d%s", d/large, name)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// mails writes a number of them.
func mails(n int) string {
	if n == 1 {
		return "1 mail"
	}
	return fmt.Sprintf("%d mails", n)
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
		return "the request was paused when it could have gone out"
	case ReasonOptedOut:
		return "the recipient opted out"
	case ReasonSuppressed:
		return "the address was suppressed"
	case ReasonMaxReached:
		return "the cadence's maximum of mails for this link was reached"
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
