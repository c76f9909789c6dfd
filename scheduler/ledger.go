package scheduler

import (
	"cmp"
	"slices"
	"time"

	"nudged/cadence"
)

// ledger is what the rows of one request say, digested for the plan.
type ledger struct {
	inFlight   *Reminder       // a worker owns it, whatever its link
	deferred   []*Reminder     // of the present link, by due
	unknown    *Reminder       // of the present link, the latest by due
	stale      []*Reminder     // deferred, of links that are gone
	spent      map[string]bool // slots of the present link that have a row
	frontier   time.Time       // the latest due among them: whatever was due by then is settled
	mails      int             // of the present link: sent, or perhaps sent
	maxReached bool            // a slot of the present link was skipped for that
	lastMail   time.Time       // the latest mail of the request, across its links
}

func readLedger(in Input) ledger {
	led := ledger{spent: map[string]bool{}}
	for i := range in.Reminders {
		r := &in.Reminders[i]
		if r.State.InFlight() {
			led.inFlight = r
		}
		if r.State.Mailed() || r.inDoubt() {
			// Of several attempts in doubt any may have been accepted: the last one counts.
			led.lastMail = later(led.lastMail, later(r.HandedOffAt, r.UnknownSince))
		}
		if in.Link == nil || !r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			if r.State == StateDeferred {
				led.stale = append(led.stale, r)
			}
			continue
		}
		led.spent[r.Slot] = true
		led.frontier = later(led.frontier, r.DueAt)
		if r.State == StateUnknown && (led.unknown == nil || r.DueAt.After(led.unknown.DueAt)) {
			led.unknown = r
		}
		if r.State.Mailed() || r.inDoubt() {
			led.mails++
		}
		if r.State == StateDeferred {
			led.deferred = append(led.deferred, r)
		}
		if r.Reason == ReasonMaxReached {
			led.maxReached = true
		}
	}
	slices.SortFunc(led.deferred, func(a, b *Reminder) int { return a.DueAt.Compare(b.DueAt) })
	return led
}

// inDoubt reports whether an attempt of the reminder may have been accepted, whatever became of
// those behind it.
func (r *Reminder) inDoubt() bool { return !r.UnknownSince.IsZero() }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Series is the cadence of one link: which slots there are.
type Series struct {
	Cadence *cadence.Cadence
	Origin  cadence.Origin
}

// Series finds the cadence and the zone that hold for a request. Where the cadence does not exist or
// the anchor is none, the series has no cadence; with ProblemUnknownZone it counts in the default zone.
func (p *Policy) Series(request Request, link Link) (Series, Problem) {
	series := Series{Origin: cadence.Origin{Anchor: link.CreatedAt, Zone: p.DefaultZone, Deadline: request.Deadline}}
	problem := ProblemNone
	if request.TimeZone != "" {
		if zone, err := cadence.LoadZone(request.TimeZone); err == nil {
			series.Origin.Zone = zone
		} else {
			problem = ProblemUnknownZone
		}
	}
	rule := p.cadence(request)
	switch {
	case rule == nil:
		return series, ProblemUnknownCadence
	case cadence.CheckAnchor(link.CreatedAt) != nil:
		return series, ProblemBadAnchor
	}
	series.Cadence = rule
	return series, problem
}

// cadence is the one that the request names, or the default one; nil: there is none of that name.
func (p *Policy) cadence(request Request) *cadence.Cadence {
	return p.Cadences[cmp.Or(request.Cadence, p.DefaultCadence)]
}

// due lists the slots that fell due and are not settled, oldest first, the newest always among
// them. It lists at most maxVerdicts.
func (s Series) due(led ledger, now time.Time) []cadence.Slot {
	from := led.frontier
	if from.IsZero() {
		from = s.Origin.Anchor.Add(-time.Second) // before the anchor itself, where slot 0d may be due
	}
	newest, ok := s.Cadence.Last(s.Origin, now)
	if !ok || !newest.Due.After(from) {
		return nil
	}
	var due []cadence.Slot
	for slot := range s.Cadence.Slots(s.Origin, from) {
		if slot.Due.After(now) {
			break
		}
		if led.spent[slot.Name] {
			continue
		}
		due = append(due, slot)
		if len(due) == maxVerdicts {
			if !led.spent[newest.Name] {
				due[maxVerdicts-1] = newest
			}
			break
		}
	}
	return due
}
