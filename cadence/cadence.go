package cadence

import (
	"errors"
	"iter"
	"time"
)

// Cadence is a checked rule. It is immutable and safe for concurrent use.
type Cadence struct {
	name      string
	max       int
	firstMail bool
	clock     int64    // second of the day at which day slots are due; ownClock: the anchor's
	steps     []offset // in definition order
	every     offset   // zero: nothing follows the steps
	cron      *cronRule
	deadline  []int64   // days before the deadline, the most first
	allowed   *calendar // days on which d, w and deadline slots may fall
	working   *calendar // days that bd counts
}

// ownClock stands for the clock time of the anchor.
const ownClock = -1

// Origin is what the slots of one link are counted from.
type Origin struct {
	Anchor   time.Time      // creation of the link; its fraction of a second is dropped
	Zone     *time.Location // zone of the request; nil is UTC
	Deadline Date           // zero: the request has none
}

// CheckAnchor returns an error where t cannot be the creation of a link: outside the years 1970 to 9998
// of UTC it stands for "always", "never" or nothing. Cadences count from any anchor; whoever takes one
// from people or tables asks here first.
func CheckAnchor(t time.Time) error {
	if year := t.UTC().Year(); year < 1970 || year > 9998 {
		return errors.New("want a time of the years 1970 to 9998")
	}
	return nil
}

// Slot is one place in a cadence.
type Slot struct {
	Name string    // canonical nominal name, such as 0d, 3d, 36h, 5bd, deadline-2d, 2026-05-04T09:00
	Due  time.Time // UTC, whole seconds
}

// Name returns the name of the cadence.
func (c *Cadence) Name() string { return c.name }

// Max returns how many mails a link may get at most; 0 is no ceiling. It bounds mails, not
// slots: Next, Last and Slots do not look at it.
func (c *Cadence) Max() int { return c.max }

// Next returns the slot with the least due after the instant given. A time before the anchor
// gets the first slot. It is false where there is none. It is total, and takes microseconds
// a century after the anchor too.
func (c *Cadence) Next(o Origin, after time.Time) (Slot, bool) {
	m, ok := c.series(o).next(second(after))
	if !ok {
		return Slot{}, false
	}
	return m.slot(), true
}

// Last returns the slot with the greatest due at or before until; false where there is none.
func (c *Cadence) Last(o Origin, until time.Time) (Slot, bool) {
	m, ok := c.series(o).last(second(until))
	if !ok {
		return Slot{}, false
	}
	return m.slot(), true
}

// Slots walks the slots due after the instant given, in the order of due.
func (c *Cadence) Slots(o Origin, after time.Time) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		s := c.series(o)
		for m, ok := s.next(second(after)); ok; m, ok = s.next(m.due) {
			if !yield(m.slot()) {
				return
			}
		}
	}
}

// second floors t to the second and keeps it where the arithmetic cannot overflow.
func second(t time.Time) int64 { return min(max(t.Unix(), firstInstant-1), lastInstant) }

// series hangs the cadence on an origin.
func (c *Cadence) series(at Origin) series {
	anchor := at.Anchor.Unix()
	if anchor < firstInstant || anchor > lastInstant {
		return series{}
	}
	o := newOrigin(c, anchor, at.Zone)

	steps := make([]mark, len(c.steps))
	for i, step := range c.steps {
		steps[i] = mark{step.String(), o.due(step)}
	}
	var s series
	s.listed, s.floor = rising(anchor, steps)
	if c.firstMail {
		s.listed = append([]mark{{"0d", anchor}}, s.listed...)
	}
	switch {
	case c.cron != nil:
		s.rest = occurrences{c.cron, o}
	case c.every.n > 0:
		s.rest = tail{o, c.lastStep(), c.every}
	}
	s.deadline = c.deadlineMarks(o, at.Deadline)
	return s
}

func (c *Cadence) lastStep() offset {
	if len(c.steps) == 0 {
		return offset{}
	}
	return c.steps[len(c.steps)-1]
}

func (c *Cadence) deadlineMarks(o *origin, deadline Date) []mark {
	if deadline.IsZero() {
		return nil
	}
	day := deadline.number()
	marks := make([]mark, len(c.deadline))
	for i, before := range c.deadline {
		marks[i] = mark{deadlineName(before), o.inst(c.allowed.roll(day - before))}
	}
	marks, _ = rising(o.anchor, marks)
	return marks
}

// origin is an Origin read once.
type origin struct {
	*Cadence
	zone   zone
	anchor int64 // Unix seconds
	day    int64 // civil day of the anchor
	clock  int64 // second of the day at which day slots are due
}

func newOrigin(c *Cadence, anchor int64, location *time.Location) *origin {
	if location == nil {
		location = time.UTC
	}
	o := &origin{Cadence: c, zone: zone{location}, anchor: anchor, clock: c.clock}
	wall := o.zone.wall(anchor)
	o.day = dayOf(wall)
	if o.clock == ownClock {
		o.clock = wall - o.day*daySeconds
	}
	return o
}

// inst returns the instant at which a slot of that civil day is due.
func (o *origin) inst(day int64) int64 { return o.zone.inst(day*daySeconds + o.clock) }

// due returns the instant at that distance from the anchor.
func (o *origin) due(d offset) int64 {
	switch d.kind {
	case civil:
		return o.inst(o.allowed.roll(o.day + d.n))
	case business:
		return o.inst(o.working.nth(o.day, d.n))
	}
	return o.anchor + d.n
}

// count returns about how many of that kind lie between the anchor and t.
func (o *origin) count(k kind, t int64) int64 {
	switch day := dayOf(o.zone.wall(t)); k {
	case civil:
		return day - o.day
	case business:
		return o.working.rank(day) - o.working.rank(o.day)
	}
	return t - o.anchor
}
