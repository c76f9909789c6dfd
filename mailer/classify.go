package mailer

import (
	"fmt"

	"nudged/scheduler"
)

// phase is a place in the conversation; it is the metric label.
type phase string

const (
	phaseConnect  phase = "connect" // TCP, implicit TLS and the greeting
	phaseEHLO     phase = "ehlo"
	phaseSTARTTLS phase = "starttls" // the handshake and the second EHLO as well
	phaseAUTH     phase = "auth"
	phaseMAIL     phase = "mail"
	phaseRCPT     phase = "rcpt"
	phaseDATA     phase = "data"
	phaseDot      phase = "dot"
	phaseBody     phase = "body" // not answered, so not counted
)

// String is the phase in the words of a sentence.
func (p phase) String() string {
	switch p {
	case phaseConnect:
		return "connection"
	case phaseAUTH:
		return "authentication"
	case phaseDot:
		return "the final dot"
	case phaseEHLO:
		return "EHLO"
	case phaseSTARTTLS:
		return "STARTTLS"
	case phaseMAIL:
		return "MAIL"
	case phaseRCPT:
		return "RCPT"
	case phaseDATA:
		return "DATA"
	default:
		return "the body"
	}
}

// wanted reports whether the answer lets the conversation go on. DATA insists on 354: an answer
// that belongs to an earlier command is noticed here at the latest.
func wanted(p phase, r reply) bool {
	if p == phaseDATA {
		return r.code == 354
	}
	return r.class() == 2
}

// classify says what an answer from MAIL on means for the reminder. It is the table of doc.go.
func classify(p phase, r reply) scheduler.Outcome {
	o := scheduler.Outcome{SMTPCode: r.code, SMTPReply: words(r.text)}
	switch class := r.class(); {
	case p == phaseDot && class == 2:
		o.State = scheduler.StateSent
	case r.code == 421 || authenticationMissing(r):
		o.State, o.Reason, o.RelayFault = scheduler.StateDeferred, scheduler.ReasonRelayRefused, true
	case class == 4:
		o.State, o.Reason = scheduler.StateDeferred, scheduler.ReasonGreylisted
	case class == 5 && p == phaseRCPT:
		o.State, o.Reason, o.Suppress = scheduler.StateFailed, scheduler.ReasonRecipientRefused, r.noSuchAddress()
	case class == 5:
		o.State, o.Reason = scheduler.StateFailed, scheduler.ReasonMessageRefused
		o.Suppress = p != phaseMAIL && r.noSuchAddress()
	default:
		return withoutAnswer(p, fmt.Sprintf("unexpected answer to %s: %d %s", p, r.code, r.text))
	}
	return o
}

// authenticationMissing: the relay wants to know us, or STARTTLS, first (RFC 4954 section 6).
func authenticationMissing(r reply) bool { return r.code == 530 || r.code == 535 || r.code == 538 }

// withoutAnswer says what it means that no readable answer came: nothing was accepted before the
// final dot, and nobody can know after it.
func withoutAnswer(p phase, what string) scheduler.Outcome {
	if p == phaseDot {
		return scheduler.Outcome{State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost, SMTPReply: words(what)}
	}
	return scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonConnectionLost, SMTPReply: words(what)}
}

// stale reports whether the answer to MAIL on a connection from the pool only says that the relay
// had given the connection up: 421, or a timeout told in an enhanced code, as SES does with 451.
func stale(r reply) bool { return r.code == 421 || r.enhanced() == "4.4.2" }
