package main

import (
	"fmt"
	"slices"
	"time"

	"nudged/scheduler"
)

// explanation is the stable JSON of explain; docs/explain.md tells of every field.
type explanation struct {
	RequestID     string           `json:"request_id"`
	AskedAt       stamp            `json:"asked_at"`
	Answer        string           `json:"answer"`
	Warnings      []string         `json:"warnings"`
	Configuration string           `json:"configuration"`
	Status        string           `json:"status,omitempty"`
	Recipient     string           `json:"recipient,omitempty"`
	Zone          string           `json:"zone"`
	Cadence       string           `json:"cadence,omitempty"`
	Locale        string           `json:"locale,omitempty"`
	Language      string           `json:"language,omitempty"`
	Link          *explainedLink   `json:"link,omitempty"`
	Problem       string           `json:"problem,omitempty"`
	Slots         []explainedSlot  `json:"slots"`
	Next          []explainedSlot  `json:"next"`
	Stops         []string         `json:"stops"`
	Events        []explainedEvent `json:"events"`
	zone          *time.Location
	unsettled     []scheduler.Reminder
}

// explainedLink is the present upload link, but for its address.
type explainedLink struct {
	CreatedAt stamp `json:"created_at"`
	ExpiresAt stamp `json:"expires_at,omitzero"`
	RevokedAt stamp `json:"revoked_at,omitzero"`
}

// explainedSlot is one slot. Instants are UTC; local ones carry the offset.
type explainedSlot struct {
	Slot          string              `json:"slot"`
	LinkCreatedAt stamp               `json:"link_created_at"`
	EarlierLink   bool                `json:"earlier_link,omitempty"`
	Due           stamp               `json:"due"`
	DueLocal      string              `json:"due_local"`
	Fate          scheduler.Fate      `json:"fate"`
	Rule          string              `json:"rule"`
	Evidence      []explainedEvidence `json:"evidence"`
	State         scheduler.State     `json:"state,omitempty"`
	Reason        scheduler.Reason    `json:"reason,omitempty"`
	Because       string              `json:"because,omitempty"`
	Recipient     string              `json:"recipient,omitempty"`
	Attempts      int                 `json:"attempts,omitempty"`
	HandedOffAt   stamp               `json:"handed_off_at,omitzero"`
	FinishedAt    stamp               `json:"finished_at,omitzero"`
	RetryAt       stamp               `json:"retry_at,omitzero"`
	MessageID     string              `json:"message_id,omitempty"`
	SMTPCode      int                 `json:"smtp_code,omitempty"`
	SMTPReply     string              `json:"smtp_reply,omitempty"`
	told          string              // the fate and the reason
}

// explainedEvidence is one fact.
type explainedEvidence struct {
	At    stamp  `json:"at,omitzero"`
	Local string `json:"local,omitempty"`
	Who   string `json:"who,omitempty"`
	What  string `json:"what"`
}

// explainedEvent is what somebody did.
type explainedEvent struct {
	At      stamp  `json:"at"`
	Actor   string `json:"actor"`
	Action  string `json:"action"`
	Slot    string `json:"slot,omitempty"`
	Address string `json:"address,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Why     string `json:"why"`
}

func explanationOf(e scheduler.Explanation) explanation {
	zone := zoneOf(e)
	out := explanation{
		RequestID: e.Input.RequestID, AskedAt: stamp{e.Input.Now}, Answer: e.Sentence, Zone: zone.String(), Problem: string(e.Problem),
		Warnings: []string{}, Slots: []explainedSlot{}, Next: []explainedSlot{}, Stops: []string{}, Events: []explainedEvent{}, zone: zone,
	}
	for _, m := range e.Mistakes {
		out.Warnings = append(out.Warnings, fmt.Sprintf("The row of the request has a mistake: %s; %s.", m.Words(), m.Effect()))
	}
	if r := e.Input.Request; r != nil {
		out.Status, out.Recipient, out.Locale = string(r.Status), r.RecipientEmail, r.Locale
	}
	if l := e.Input.Link; l != nil {
		out.Link = &explainedLink{stamp{l.CreatedAt}, stamp{l.ExpiresAt}, stamp{l.RevokedAt}}
	}
	if e.Series.Cadence != nil {
		out.Cadence = e.Series.Cadence.Name()
	}
	for _, f := range e.Slots {
		slot := explained(f, zone)
		if f.Fate == scheduler.FateToCome {
			out.Next = append(out.Next, slot)
			continue
		}
		out.Slots = append(out.Slots, slot)
		if f.Row != nil && f.Row.State == scheduler.StateUnknown && f.RepeatAt.IsZero() {
			out.unsettled = append(out.unsettled, *f.Row)
		}
	}
	out.Stops = append(out.Stops, e.Stops...)
	for _, event := range e.Events {
		out.Events = append(out.Events, explainedEvent{stamp{event.At}, event.Actor, event.Action, event.Slot, event.Address, event.Detail, event.Why})
	}
	return out
}

func explained(f scheduler.SlotFate, zone *time.Location) explainedSlot {
	s := explainedSlot{
		Slot: f.Slot.Name, LinkCreatedAt: stamp{f.LinkCreatedAt}, EarlierLink: f.Earlier, Due: stamp{f.Slot.Due},
		DueLocal: stamp{f.Slot.Due}.in(zone), Fate: f.Fate, Rule: f.Rule, Reason: f.Reason, Because: f.Because,
		Evidence: []explainedEvidence{}, told: f.Told(),
	}
	facts := f.Evidence
	if r := f.Row; r != nil {
		s.State, s.Recipient, s.Attempts, s.HandedOffAt, s.FinishedAt = r.State, r.Recipient, r.Attempt, stamp{r.HandedOffAt}, stamp{r.FinishedAt}
		s.RetryAt, s.MessageID, s.SMTPCode, s.SMTPReply = stamp{r.RetryAt}, r.MessageID, r.SMTPCode, r.SMTPReply
		facts = append(rowFacts(*r, f.Fate), facts...)
	}
	if !f.RepeatAt.IsZero() {
		s.RetryAt = stamp{f.RepeatAt}
	}
	slices.SortStableFunc(facts, func(a, b scheduler.Evidence) int { // what has no instant stays last
		if a.At.IsZero() != b.At.IsZero() {
			return map[bool]int{true: 1, false: -1}[a.At.IsZero()]
		}
		return a.At.Compare(b.At)
	})
	for _, fact := range facts {
		one := explainedEvidence{At: stamp{fact.At}, Who: fact.Who, What: fact.Words}
		if !fact.At.IsZero() {
			one.Local = one.At.in(zone)
		}
		s.Evidence = append(s.Evidence, one)
	}
	return s
}

// rowFacts are what the row of the ledger itself bears witness to.
func rowFacts(r scheduler.Reminder, fate scheduler.Fate) []scheduler.Evidence {
	var facts []scheduler.Evidence
	add := func(at time.Time, format string, args ...any) {
		facts = append(facts, scheduler.Evidence{At: at, Words: fmt.Sprintf(format, args...)})
	}
	if !r.HandedOffAt.IsZero() {
		to := ""
		if r.Recipient != "" {
			to = " for " + r.Recipient
		}
		add(r.HandedOffAt, "handed off%s, attempt %d, Message-ID <%s>", to, r.Attempt, r.MessageID)
	}
	said := r.SMTPReply
	if r.SMTPCode != 0 {
		said = fmt.Sprintf("the server said: %d %s", r.SMTPCode, r.SMTPReply)
	}
	outcome := r.FinishedAt
	if outcome.IsZero() {
		outcome = r.HandedOffAt
	}
	switch r.State {
	case scheduler.StateSent:
		if r.SMTPCode != 0 {
			add(outcome, "accepted; %s", said)
		} else {
			add(outcome, "the outcome was unknown: %s", said)
		}
	case scheduler.StateSkipped:
		add(outcome, "recorded as skipped")
	case scheduler.StateClaimed, scheduler.StateSending:
		add(r.CreatedAt, "taken up; now with %s", r.ClaimedBy)
	default:
		text := r.Reason.Words()
		if said != "" {
			text += "; " + said
		}
		add(outcome, "%s", text)
		if fate == scheduler.FateRetry && !r.RetryAt.IsZero() {
			add(r.RetryAt, "tried again at the first pass after this")
		}
	}
	return facts
}

// recipientExplanation is the stable JSON of explain --recipient.
type recipientExplanation struct {
	Recipient string        `json:"recipient"`
	Answer    string        `json:"answer"`
	Found     int           `json:"requests_found"`
	Warnings  []string      `json:"warnings"`
	Requests  []explanation `json:"requests"`
}
