package scheduler

import (
	"errors"
	"fmt"
	"time"

	"nudged/cadence"
)

// claim is the first attempt at a slot, for the mail of this number.
func (s Series) claim(in Input, slot cadence.Slot, number int, since time.Time) *Claim {
	return &Claim{
		Slot: slot, Attempt: 1, Number: number, Last: s.last(in, slot, number), Since: since, Zone: s.Origin.Zone,
	}
}

// after makes it the attempt that follows the one in the ledger.
func (c *Claim) after(r *Reminder) *Claim {
	c.Attempt, c.Previous, c.Retry = r.Attempt+1, r.ClaimID, true
	return c
}

// last reports whether nothing follows: the cadence has no further slot, or none before the link
// expires, or its ceiling is reached.
func (s Series) last(in Input, slot cadence.Slot, number int) bool {
	if ceiling := s.Cadence.Max(); ceiling > 0 && number >= ceiling {
		return true
	}
	next, ok := s.Cadence.Next(s.Origin, slot.Due)
	expires := in.Link.ExpiresAt
	return !ok || !expires.IsZero() && !next.Due.Before(expires)
}

// Task is what composing and delivering a claim takes, but for the claim's id and the documents.
func (c *Claim) Task(in Input) Task {
	return Task{
		Request: *in.Request, Link: *in.Link, Slot: c.Slot, Attempt: c.Attempt, Number: c.Number,
		Last: c.Last, Since: c.Since, Zone: c.Zone, ClaimedAt: in.Now,
	}
}

// Preview returns the claim that a slot of the present link had or will have as things stand; the
// empty name means the slot that goes out next. It decides nothing: the slot may be over already,
// or never come.
func (p *Policy) Preview(in Input, name string) (*Claim, error) {
	if in.Request == nil {
		return nil, fmt.Errorf("there is no request %q", in.RequestID)
	}
	if in.Link == nil {
		return nil, errors.New("the request has no upload link")
	}
	series, problem := p.Series(*in.Request, *in.Link)
	if series.Cadence == nil {
		return nil, errors.New(p.mistake(problem, *in.Request, *in.Link).Words())
	}
	if claim := p.Plan(in).Claim; claim != nil && (name == "" || name == claim.Slot.Name) {
		return claim, nil
	}
	next, ok := p.NextSlot(in)
	if name == "" {
		if !ok {
			return nil, errors.New("no slot of the request is to come")
		}
		name = next.Name
	}
	return series.seek(in, name, next)
}

// maxSought bounds the slots that are looked through for a name.
const maxSought = 100_000

// seek finds a slot in the ledger, or else in the cadence. Its mail has the number that it has if the
// next slot and every one behind that is sent.
func (s Series) seek(in Input, name string, next cadence.Slot) (*Claim, error) {
	recorded := map[string]bool{}
	var mails []time.Time // dues of those that went out, or are about to
	for _, r := range in.Reminders {
		if !r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			continue
		}
		recorded[r.Slot] = true
		if r.State.Mailed() || r.State.InFlight() || r.inDoubt() || r.Slot == next.Name {
			mails = append(mails, r.DueAt)
		}
	}
	number := func(due time.Time) int {
		n := 1
		for _, mail := range mails {
			if mail.Before(due) {
				n++
			}
		}
		return n
	}
	for _, r := range in.Reminders {
		if r.Slot == name && r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			return s.claim(in, cadence.Slot{Name: r.Slot, Due: r.DueAt}, number(r.DueAt), r.RetrySince), nil
		}
	}
	sought := 0
	for slot := range s.Cadence.Slots(s.Origin, s.Origin.Anchor.Add(-time.Second)) {
		if slot.Name == name {
			return s.claim(in, slot, number(slot.Due), time.Time{}), nil
		}
		if (slot.Due.After(in.Now) || slot.Name == next.Name) && !recorded[slot.Name] {
			mails = append(mails, slot.Due)
		}
		if sought++; sought == maxSought {
			break
		}
	}
	return nil, fmt.Errorf("the cadence has no slot %q", name)
}
