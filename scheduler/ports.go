package scheduler

import (
	"context"
	"time"

	"nudged/cadence"
)

// Task is a claimed reminder on its way: all that composing and delivering it needs, so that no
// row is read twice. Instants are UTC.
type Task struct {
	ClaimID   ClaimID
	Request   Request
	Link      Link
	Documents []Document // in the application's order
	Slot      cadence.Slot
	Attempt   int            // 1 for the first
	Number    int            // ordinal of this mail among those of the link, 1 for the first
	Last      bool           // as things stand, the link gets no mail after this one
	Since     time.Time      // when the slot was taken up: the mail counts days from here; zero: from its due
	Zone      *time.Location // the recipient's, or the default one
	ClaimedAt time.Time      // by the database's clock
}

// Message is a composed mail: an envelope of one sender and one recipient, and the content.
type Message struct {
	ClaimID   ClaimID
	From      string // envelope sender
	To        string // envelope recipient, the domain in A-labels
	MessageID string // without angle brackets
	UTF8      bool   // the envelope needs SMTPUTF8 (RFC 6531)
	Data      []byte // headers and body with CRLF line ends, not dot-stuffed
}

// Outcome is what became of one attempt. It is complete: nobody has to interpret an error.
type Outcome struct {
	State      State // sent, deferred, failed or unknown
	Reason     Reason
	SMTPCode   int    // 0: the server gave none
	SMTPReply  string // the server's words, or what went wrong in ours; never an address
	RelayFault bool   // the relay itself is unwell: close the gate, burn no attempt
	Suppress   bool   // the address does not exist: do not mail it again until it changes
}

// ComposeError tells why a task could not become a message; nothing was sent.
type ComposeError struct {
	Reason Reason // template_error or invalid_address
	Err    error
}

func (e *ComposeError) Error() string { return string(e.Reason) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ComposeError) Unwrap() error { return e.Err }

// Mailer turns tasks into mail. Its implementation talks SMTP.
type Mailer interface {
	// Compose renders a task to bytes. It does no I/O and returns a *ComposeError or nil.
	// The result depends on the task alone: equal on every attempt.
	Compose(Task) (Message, error)
	// Deliver speaks one SMTP transaction with at most one body. It may be called by several
	// goroutines at once. Cancelling ctx ends it before the final dot; after the dot it waits for
	// the answer or its own deadline, whatever ctx says. No content leaves after notAfter (by
	// this process's monotonic clock).
	Deliver(ctx context.Context, m Message, notAfter time.Time) Outcome
	// Probe opens a connection to the relay as far as a delivery would before MAIL, and says
	// what is wrong with the relay, if anything.
	Probe(ctx context.Context) error
}

// Pass is what the loop asks of the store in one round.
type Pass struct {
	Worker string        // who claims, for people to read
	Lease  time.Duration // how long a claim is held without renewal
	Fresh  int           // how many requests that wait to be planned to look at, at most
	Due    int           // how many requests whose wake has come to look at, at most; accounts take turns
	// PlannedBy is the fingerprint of what Plan goes by; wakes computed by another one are computed anew.
	PlannedBy int32
	// Plan decides about one request. It may be called again for the same one, where the pass begins again.
	Plan func(Input) Decision
}

// PassResult is what one round did.
type PassResult struct {
	Now       time.Time // the database's clock
	Fresh     int       // requests looked at that waited to be planned
	Due       int       // requests looked at whose wake had come
	More      bool      // more may be due than the pass was to take
	Partial   bool      // it took fewer than it was to, and more may be there
	Tasks     []Task    // claims won
	Lost      int       // claims that somebody else had
	Skipped   map[Reason]int
	Failed    int // deferred reminders that ran out of time
	LeaseLost int // claims of vanished workers that became deferred
	// Unknown are hand-offs of vanished workers that became unknown, as far as they are needed to tell
	// about them: request, link, slot, attempt and worker.
	Unknown    []Reminder
	Unreadable []Unreadable // left alone for a while
}

// Unreadable is a request that a view in the place of the application's tables fails for, and how.
type Unreadable struct {
	RequestID string
	Err       error
}

// Settlement is one outcome on its way to the ledger.
type Settlement struct {
	ClaimID       ClaimID
	RequestID     string
	LinkCreatedAt time.Time
	Slot          string
	Recipient     string
	Outcome       Outcome
	RetryIn       time.Duration // deferred: try again after this long
	KeepAttempt   bool          // deferred: the attempt was not burnt
}

// HandOff asks to mark one claimed reminder as sending.
type HandOff struct {
	ClaimID       ClaimID
	RequestID     string
	LinkCreatedAt time.Time
	Slot          string
	Recipient     string // requests.recipient_email as it was claimed
	To            string // Message.To: the same address as the mail server will hear it
	MessageID     string
}

// HandOffResult is the verdict on one hand-off. A claim that is missing from the results was lost.
type HandOffResult struct {
	ClaimID ClaimID
	Reason  Reason // empty: go ahead; else nothing may be sent, and the ledger says why
	Err     error  // why it could not be marked: the claim is left to its lease, and the ledger will say lease_lost
}

// Batch is one commit: outcomes to record and claims to hand off.
type Batch struct {
	Settlements []Settlement
	HandOffs    []HandOff
	Lease       time.Duration // what a hand-off whose lease runs out soon is given anew
}

// Store is the ledger. Its implementation talks to PostgreSQL.
type Store interface {
	// RunPass recovers, takes, plans and claims in one short transaction.
	RunPass(context.Context, Pass) (PassResult, error)
	// Settle records outcomes and hands off claims in one commit. Both are fenced by claim id and
	// safe to repeat after an error of unknown fate.
	Settle(context.Context, Batch) ([]HandOffResult, error)
	// Renew extends the leases of claims that this process still works on and returns those that
	// it still holds.
	Renew(ctx context.Context, claims []ClaimID, lease time.Duration) ([]ClaimID, error)
}
