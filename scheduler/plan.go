package scheduler

import (
	"time"

	"nudged/cadence"
)

// Policy is what the operator decided: which cadences there are and how far nudged may go.
type Policy struct {
	// Fingerprint tells this policy, with the zone data and the build that it is used by, from others.
	Fingerprint    int32
	Cadences       map[string]*cadence.Cadence
	DefaultCadence string
	DefaultZone    *time.Location
	Limits         Limits
	// RepeatWithin is how long after its first hand-off an unknown outcome is repeated, because the
	// relay drops what repeats an idempotency key; 0: never.
	RepeatWithin time.Duration
	// Allowed says whether an address may be mailed at all; nil: every address may.
	Allowed func(address string) bool
	// AllowList is what Allowed goes by, in the words of the configuration; for explanations alone.
	AllowList []string
	// Usable lists what of a request's row no mail can have, the gravest first: its locale, its
	// address for answers; nil: nothing is asked.
	Usable func(Request) []Problem
}

// Limits are the bounds that hold for every cadence.
type Limits struct {
	MaxLateness time.Duration // a slot found later than this is missed
	MinGap      time.Duration // between two mails for one request, across its links
	RetryFor    time.Duration // how long one slot is tried
	Backoff     Backoff       // between two attempts
	Retention   time.Duration // how long ledger rows are kept, and dead links followed
}

// Input is all that a plan is made from. Nothing else is read: no clock, no table.
type Input struct {
	Now        time.Time // by the database's clock
	AdoptedAt  time.Time // when the installation was adopted
	NotBefore  time.Time // slots due before are never sent: the ledger may be an old copy; zero: no such bound
	RequestID  string
	Request    *Request // nil: there is none
	Link       *Link    // nil: there is none
	Reminders  []Reminder
	Suppressed bool // the recipient's address must not be mailed
	Purged     bool // the ledger was purged of rows of the link, so that nobody can tell what went out for it
}

// Decision is what to do about one request now.
type Decision struct {
	Claim    *Claim
	Verdicts []Verdict
	Wake     time.Time // when to look again; zero: not before something changes
	Problem  Problem
}

// Claim asks for one slot.
type Claim struct {
	Slot     cadence.Slot
	Attempt  int
	Number   int       // ordinal among the mails of this link
	Last     bool      // as things stand, the link gets no mail after this one
	Since    time.Time // when the slot was taken up; equal for all attempts between two decisions of a person
	Zone     *time.Location
	Previous ClaimID // the deferred attempt that this one follows; zero: a first claim
	Retry    bool
}

// Verdict ends one slot without an attempt. Existing says that the ledger has the slot as
// deferred; otherwise the row is new.
type Verdict struct {
	LinkCreatedAt time.Time
	Slot          cadence.Slot
	State         State // skipped or failed; unknown where an earlier attempt may have been accepted
	Reason        Reason
	Existing      bool
}

// Problem is a mistake in a request's row that people have to see.
type Problem string

// The problems a plan can have.
const (
	ProblemNone           Problem = ""
	ProblemUnreadable     Problem = "unreadable_row"      // a view fails for its row: the request is not planned at all
	ProblemPurgedLink     Problem = "purged_link"         // the ledger was purged of the link: it gets no more slots
	ProblemUnknownCadence Problem = "unknown_cadence"     // the request is not planned at all
	ProblemBadAnchor      Problem = "anchor_out_of_range" // neither
	ProblemUnknownZone    Problem = "unknown_zone"        // planned in the default zone
	ProblemUnknownLocale  Problem = "unknown_locale"      // mailed in the default language
	ProblemBadReplyTo     Problem = "invalid_reply_to"    // mailed without a Reply-To
)

// Problems are the problems that exist, the gravest first: the values of the metric label.
func Problems() []Problem {
	return []Problem{
		ProblemUnreadable, ProblemPurgedLink, ProblemUnknownCadence, ProblemBadAnchor, ProblemUnknownZone, ProblemUnknownLocale,
		ProblemBadReplyTo,
	}
}

// maxVerdicts bounds the rows that one plan writes. Slots that fell due before the newest row of
// the ledger are settled by it, so older ones beyond the bound need no row of their own.
const maxVerdicts = 100

// orphanWait is how long a link without a request waits for it: they may be written by two
// transactions, of which the request's commits last.
const orphanWait = time.Hour

// Plan applies the policy to one request. It is pure: equal inputs give equal decisions.
func (p *Policy) Plan(in Input) Decision {
	led := readLedger(in)
	if led.inFlight != nil {
		return Decision{Wake: led.inFlight.LeaseUntil}
	}
	if in.Request == nil || in.Link == nil || !in.Request.Status.Open() {
		return p.planClosed(in, led)
	}
	var d Decision
	for _, r := range led.stale {
		d.end(r, StateSkipped, ReasonLinkReplaced)
	}
	series, problem := p.Series(*in.Request, *in.Link)
	d.Problem = problem
	if series.Cadence == nil {
		d.endRepetitions(led)
		return d
	}
	if unusable := p.unusable(*in.Request); problem == ProblemNone && len(unusable) > 0 {
		d.Problem = unusable[0]
	}
	if in.Purged {
		d.Problem = ProblemPurgedLink
	}
	// Where the last mail of the link was sent and that is written down, no new slot comes; one of those
	// mails may have to be repeated.
	over := in.Purged || series.Cadence.Max() > 0 && led.mails >= series.Cadence.Max() && led.maxReached
	var due []cadence.Slot
	if !over {
		due = series.due(led, in.Now)
	}
	if len(due) > 0 {
		p.planDue(&d, in, led, series, due)
	} else {
		p.planRetry(&d, in, led, series)
		p.planRepeat(&d, in, led, series)
	}
	if !over {
		p.planWake(&d, in, led, series)
	}
	return d
}

// planClosed ends what still waits for a request that is closed, gone or without a link.
func (p *Policy) planClosed(in Input, led ledger) Decision {
	var d Decision
	for _, r := range append(led.stale, led.deferred...) {
		reason := ReasonRequestClosed
		if in.Request != nil && in.Request.Status.Open() {
			reason = ReasonLinkRevoked
		}
		d.end(r, StateSkipped, reason)
	}
	if in.Request == nil && in.Link != nil {
		d.Wake = in.Now.Add(orphanWait)
	}
	return d
}

// planDue decides about the slots that fell due and have no row yet, oldest first. Only the
// newest can be sent; whatever was tried before it is over.
func (p *Policy) planDue(d *Decision, in Input, led ledger, series Series, due []cadence.Slot) {
	for _, r := range led.deferred {
		d.end(r, StateFailed, ReasonRetriesExhausted)
	}
	newest := due[len(due)-1]
	for _, slot := range due[:len(due)-1] {
		reason := ReasonSuperseded
		if p.beforeAdoption(in, slot.Due) {
			reason = ReasonBeforeAdoption
		}
		d.skip(in, slot, reason)
	}
	switch reason := p.obstacle(in, led, series, newest.Due); {
	case reason != "":
		d.skip(in, newest, reason)
	case p.beforeAdoption(in, newest.Due):
		d.skip(in, newest, ReasonBeforeAdoption)
	case p.late(in, newest.Due):
		d.skip(in, newest, ReasonMissed)
	case in.Now.Before(led.lastMail.Add(p.Limits.MinGap)):
		d.wakeBy(led.lastMail.Add(p.Limits.MinGap))
	default:
		d.Claim = series.claim(in, newest, led.mails+1, in.Now)
	}
}

// planWake makes the request be looked at when its next slot falls due, if anything can come of it.
func (p *Policy) planWake(d *Decision, in Input, led ledger, series Series) {
	for _, v := range d.Verdicts {
		if v.Reason == ReasonMaxReached {
			return
		}
	}
	if dead := in.Link.deadSince(in.Now); !dead.IsZero() && in.Now.After(dead.Add(p.Limits.Retention)) {
		return
	}
	for slot := range series.Cadence.Slots(series.Origin, in.Now) {
		if !led.spent[slot.Name] {
			d.wakeBy(slot.Due)
			return
		}
	}
}

// late reports whether a slot is found later than max_lateness allows.
func (p *Policy) late(in Input, due time.Time) bool {
	return in.Now.Sub(due) > p.Limits.MaxLateness
}

// beforeAdoption reports whether a slot belongs to the time before nudged was responsible: long
// before it was switched on, or before a restored copy was adopted, whose ledger may lack mails.
func (p *Policy) beforeAdoption(in Input, due time.Time) bool {
	return due.Before(in.NotBefore) || due.Before(in.AdoptedAt) && p.late(in, due)
}

// obstacle says why nothing may be sent for this request now, if so.
func (p *Policy) obstacle(in Input, led ledger, series Series, due time.Time) Reason {
	request, link := in.Request, in.Link
	switch {
	case !link.RevokedAt.IsZero():
		return ReasonLinkRevoked
	case !link.ExpiresAt.IsZero() && !in.Now.Before(link.ExpiresAt):
		return ReasonLinkExpired
	case !request.OptedOutAt.IsZero():
		return ReasonOptedOut
	case in.Suppressed:
		return ReasonSuppressed
	case in.Now.Before(request.PausedUntil), due.Before(request.PausedUntil):
		return ReasonPaused
	case p.Allowed != nil && !p.Allowed(request.RecipientEmail):
		return ReasonNotAllowed
	case series.Cadence.Max() > 0 && led.mails >= series.Cadence.Max():
		return ReasonMaxReached
	default:
		return ""
	}
}

// deadSince is when the link stopped working; zero: it works.
func (l *Link) deadSince(now time.Time) time.Time {
	switch {
	case !l.RevokedAt.IsZero():
		return l.RevokedAt
	case !l.ExpiresAt.IsZero() && !now.Before(l.ExpiresAt):
		return l.ExpiresAt
	default:
		return time.Time{}
	}
}

func (d *Decision) skip(in Input, slot cadence.Slot, reason Reason) {
	d.Verdicts = append(d.Verdicts, Verdict{
		LinkCreatedAt: in.Link.CreatedAt, Slot: slot, State: StateSkipped, Reason: reason,
	})
}

// end ends a deferred reminder. One whose earlier attempt may have been accepted is unknown,
// whatever would end it.
func (d *Decision) end(r *Reminder, state State, reason Reason) {
	if r.inDoubt() {
		state, reason = StateUnknown, ReasonReplyLost
	}
	d.Verdicts = append(d.Verdicts, Verdict{
		LinkCreatedAt: r.LinkCreatedAt, Slot: cadence.Slot{Name: r.Slot, Due: r.DueAt},
		State: state, Reason: reason, Existing: true,
	})
}

// endRepetitions ends what is repeated of a request that has no plan. It would wait for ever, and nobody
// who could settle it would hear of it.
func (d *Decision) endRepetitions(led ledger) {
	for _, r := range led.deferred {
		if r.inDoubt() {
			d.end(r, StateUnknown, ReasonReplyLost)
		}
	}
}

// wakeBy moves the wake forward to t unless it is earlier already.
func (d *Decision) wakeBy(t time.Time) {
	if d.Wake.IsZero() || t.Before(d.Wake) {
		d.Wake = t
	}
}
