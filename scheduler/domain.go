package scheduler

import (
	"time"

	"nudged/cadence"
)

// Forever stands for PostgreSQL's 'infinity': an instant after every other.
// It is a function of nothing, so that it cannot be changed.
func Forever() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// BeforeAll stands for PostgreSQL's '-infinity': an instant before every other, and not the zero one.
func BeforeAll() time.Time { return time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC) }

// Status is the application's own word for where a request stands.
type Status string

// The statuses that nudged chases. Every other word, known or not, means closed.
const (
	StatusPending             Status = "pending"
	StatusPendingResubmission Status = "pending_resubmission"
)

// Open reports whether a request of this status may be reminded. It is an allow-list.
func (s Status) Open() bool { return s == StatusPending || s == StatusPendingResubmission }

// Request is one ask for documents to one recipient, as the application wrote it.
// Instants are UTC; a zero instant or an empty string means the column is NULL.
type Request struct {
	ID             string
	AccountID      string
	Status         Status
	RecipientEmail string
	RecipientName  string
	Title          string
	Message        string
	Deadline       cadence.Date
	Cadence        string // name of a cadence; empty: the default one
	TimeZone       string // IANA name; empty: the default zone
	Locale         string // BCP 47; empty: the default locale
	SenderName     string
	ReplyTo        string
	PausedUntil    time.Time // Forever: until resumed
	PauseReason    string
	OptedOutAt     time.Time
}

// Link is the live upload link of a request. CreatedAt is the anchor of its series and the
// identity of the link in the ledger, in UTC with PostgreSQL's microseconds.
type Link struct {
	URL       string
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: not revoked
}

// Document is one thing that the request asks for.
type Document struct {
	Title           string
	Description     string
	Required        bool
	State           DocumentState
	RejectionReason string
}

// DocumentState is where one document stands.
type DocumentState string

// The states of a document. Missing and rejected ones are asked for.
const (
	DocumentMissing  DocumentState = "missing"
	DocumentReceived DocumentState = "received"
	DocumentApproved DocumentState = "approved"
	DocumentRejected DocumentState = "rejected"
)

// State is the state of a reminder: one row of the ledger.
type State string

// The states of a reminder; docs/design.md draws the moves between them.
const (
	StateClaimed  State = "claimed"  // one worker owns it; no content has left
	StateSending  State = "sending"  // handed off: content may have left
	StateSent     State = "sent"     // the server accepted it
	StateDeferred State = "deferred" // certainly not accepted; to be tried again
	StateFailed   State = "failed"   // certainly not accepted; never tried again
	StateUnknown  State = "unknown"  // it may have been accepted; a person settles it
	StateSkipped  State = "skipped"  // never attempted, for a reason
)

// Outcomes are the states that an attempt ends in, in the order of the metric label.
func Outcomes() []State { return []State{StateSent, StateDeferred, StateFailed, StateUnknown} }

// Mailed reports whether a reminder in this state has reached the recipient or may have.
func (s State) Mailed() bool { return s == StateSent || s == StateUnknown || s == StateSending }

// InFlight reports whether a worker owns a reminder in this state.
func (s State) InFlight() bool { return s == StateClaimed || s == StateSending }

// Reason says why a reminder is in its state. The list is closed: Go, the CHECK constraint of
// the ledger and the metric labels share it.
type Reason string

// Reasons of skipped reminders.
const (
	ReasonSuperseded     Reason = "superseded"      // a newer slot was due as well
	ReasonMissed         Reason = "missed"          // found later than max_lateness
	ReasonBeforeAdoption Reason = "before_adoption" // due before nudged was switched on here
	ReasonLinkExpired    Reason = "link_expired"
	ReasonLinkRevoked    Reason = "link_revoked"
	ReasonLinkReplaced   Reason = "link_replaced"
	ReasonRequestClosed  Reason = "request_closed"
	ReasonPaused         Reason = "paused"
	ReasonOptedOut       Reason = "opted_out"
	ReasonSuppressed     Reason = "suppressed"
	ReasonMaxReached     Reason = "max_reached"
	ReasonNotAllowed     Reason = "not_allowed" // recipient outside mail.allow_recipients
)

// Reasons of failed reminders.
const (
	ReasonRecipientRefused Reason = "recipient_refused"
	ReasonMessageRefused   Reason = "message_refused"
	ReasonInvalidAddress   Reason = "invalid_address"
	ReasonTemplateError    Reason = "template_error"
	ReasonRetriesExhausted Reason = "retries_exhausted"
)

// Reasons of deferred reminders.
const (
	ReasonRelayRefused   Reason = "relay_refused"   // the relay's fault, not the reminder's: no attempt is burnt
	ReasonGreylisted     Reason = "greylisted"      // a 4xx to this mail
	ReasonConnectionLost Reason = "connection_lost" // before the final dot
	ReasonLeaseLost      Reason = "lease_lost"      // the worker went away before the hand-off
	ReasonShutdown       Reason = "shutdown"        // given back by a stopping daemon
	ReasonNotSent        Reason = "not_sent"        // a person settled an unknown outcome so

	// ReasonRecipientChanged: the address was edited between claim and hand-off; planned again at once.
	ReasonRecipientChanged Reason = "recipient_changed"
)

// Reasons of unknown outcomes.
const (
	ReasonReplyLost  Reason = "reply_lost"  // the final dot left, no readable answer came
	ReasonWorkerLost Reason = "worker_lost" // the worker went away after the hand-off
)

// SkipReasons are the reasons a reminder can be skipped for: the values of the label `reason`.
func SkipReasons() []Reason {
	return []Reason{
		ReasonSuperseded, ReasonMissed, ReasonBeforeAdoption, ReasonLinkExpired, ReasonLinkRevoked,
		ReasonLinkReplaced, ReasonRequestClosed, ReasonPaused, ReasonOptedOut, ReasonSuppressed,
		ReasonMaxReached, ReasonNotAllowed,
	}
}

// FailReasons are the reasons of failed reminders.
func FailReasons() []Reason {
	return []Reason{
		ReasonRecipientRefused, ReasonMessageRefused, ReasonInvalidAddress,
		ReasonTemplateError, ReasonRetriesExhausted,
	}
}

// DeferReasons are the reasons of deferred reminders.
func DeferReasons() []Reason {
	return []Reason{
		ReasonRelayRefused, ReasonGreylisted, ReasonConnectionLost, ReasonLeaseLost,
		ReasonShutdown, ReasonNotSent, ReasonRecipientChanged,
	}
}

// UnknownReasons are the reasons of unknown outcomes.
func UnknownReasons() []Reason { return []Reason{ReasonReplyLost, ReasonWorkerLost} }

// ClaimID is the fence of one claim: random, never used twice.
type ClaimID [16]byte

// Reminder is one row of the ledger: one slot of one link of one request. Instants are UTC; a
// zero instant, code or string means NULL.
type Reminder struct {
	RequestID     string
	LinkCreatedAt time.Time
	Slot          string
	DueAt         time.Time
	State         State
	Reason        Reason
	Attempt       int // attempts burnt, the present one included
	ClaimID       ClaimID
	ClaimedBy     string
	LeaseUntil    time.Time
	RetryAt       time.Time
	RetrySince    time.Time // retry_for counts from here: the first claim, or the last time a person said "not sent"
	UnknownSince  time.Time // hand-off of the first attempt whose fate is unknown, if there was one
	Recipient     string
	MessageID     string
	SMTPCode      int
	SMTPReply     string
	CreatedAt     time.Time
	HandedOffAt   time.Time
	FinishedAt    time.Time
}

// Event is what a person did about a request, an address or the database, or nudged by itself.
type Event struct {
	At            time.Time // UTC
	Actor         string    // a person's login and host, or nudged
	Action        string    // adopt, pause, resume, resolve, suppress or unsuppress
	LinkCreatedAt time.Time // the link concerned; zero: none
	Slot          string    // the slot concerned, if one
	Address       string    // the address concerned, in lower case; empty: none
	Detail        string    // the particulars, such as what an outcome was settled as
	Why           string
}
