package cadence

import (
	"sort"
	"strconv"
	"time"
)

// No slot is due outside the years 1 to 9999, and no anchor outside them has a slot.
//
//nolint:gochecknoglobals // constants that the language cannot express
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastInstant  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// mark is a slot inside this package: due is in Unix seconds.
type mark struct {
	name string
	due  int64
}

func (m mark) slot() Slot { return Slot{Name: m.name, Due: time.Unix(m.due, 0).UTC()} }

// rising keeps the marks that exist: due after floor and after every mark in front.
// It returns the highest due beside them, which is the floor of what follows.
func rising(floor int64, marks []mark) ([]mark, int64) {
	kept := marks[:0]
	for _, m := range marks {
		if m.due > floor {
			kept = append(kept, m)
			floor = m.due
		}
	}
	return kept, floor
}

// sequence is a run of slots numbered from 0 whose due never falls. It is too long to walk.
type sequence interface {
	size() int64          // how many slots it has before the calendar ends
	due(n int64) int64    // in Unix seconds
	name(n int64) string  // canonical name
	near(due int64) int64 // the number of some slot due about then; it may lie outside the run
}

// firstAfter returns the least n with due(n) > t, or size. Where near guesses well it costs
// two or three calls of due; where it does not, a logarithmic number.
func firstAfter(s sequence, t int64) int64 {
	low, high := int64(-1), s.size()
	n := min(max(s.near(t), 0), high-1)
	for step := int64(1); low < n && n < high; step *= 2 {
		if s.due(n) > t {
			high, n = n, n-step
		} else {
			low, n = n, n+step
		}
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; s.due(mid) > t {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// series is a cadence at one origin.
type series struct {
	listed   []mark   // first mail and steps that exist, rising
	rest     sequence // what follows them; nil: nothing
	floor    int64    // a slot of rest due at or before it does not exist
	deadline []mark   // slots counted from the deadline that exist, rising
}

// next returns the slot with the least due > t.
func (s series) next(t int64) (mark, bool) {
	var best mark
	found := false
	offer := func(m mark) {
		// Strictly less: at one instant the slot offered first stands.
		if m.due <= lastInstant && (!found || m.due < best.due) {
			best, found = m, true
		}
	}
	if i := after(s.listed, t); i < len(s.listed) {
		offer(s.listed[i])
	} else if s.rest != nil {
		if n := firstAfter(s.rest, max(t, s.floor)); n < s.rest.size() {
			offer(mark{s.rest.name(n), s.rest.due(n)})
		}
	}
	if i := after(s.deadline, t); i < len(s.deadline) {
		offer(s.deadline[i])
	}
	return best, found
}

// last returns the slot with the greatest due <= t.
func (s series) last(t int64) (mark, bool) {
	var best mark
	found := false
	offer := func(m mark) {
		if !found || m.due > best.due {
			best, found = m, true
		}
	}
	if m, ok := s.lastOfRest(t); ok {
		offer(m)
	} else if i := after(s.listed, t); i > 0 {
		offer(s.listed[i-1])
	}
	if i := after(s.deadline, t); i > 0 {
		offer(s.deadline[i-1])
	}
	return best, found
}

func (s series) lastOfRest(t int64) (mark, bool) {
	if s.rest == nil {
		return mark{}, false
	}
	n := firstAfter(s.rest, t)
	if n == 0 {
		return mark{}, false
	}
	due := s.rest.due(n - 1)
	if due <= s.floor {
		return mark{}, false
	}
	// Of several slots due at that instant only the first exists.
	return mark{s.rest.name(firstAfter(s.rest, due-1)), due}, true
}

// after returns the index of the first mark due after t.
func after(marks []mark, t int64) int {
	return sort.Search(len(marks), func(i int) bool { return marks[i].due > t })
}

// tail repeats an offset behind the last step: slot n is from + (n+1)·every.
type tail struct {
	origin      *origin
	from, every offset
}

func (r tail) at(n int64) offset { return offset{r.every.kind, r.from.n + (n+1)*r.every.n} }

func (r tail) due(n int64) int64   { return r.origin.due(r.at(n)) }
func (r tail) name(n int64) string { return r.at(n).String() }

func (r tail) near(t int64) int64 {
	return floorDiv(r.origin.count(r.every.kind, t)-r.from.n, r.every.n) - 1
}

func (r tail) size() int64 {
	// The N-th business day is at least N days away: the days left bound both kinds.
	left := dayOf(lastInstant) - r.origin.day
	if r.every.kind == elapsed {
		left = lastInstant - r.origin.anchor
	}
	return max((left-r.from.n)/r.every.n, 0)
}

// deadlineName names the slot days before the deadline.
func deadlineName(days int64) string {
	if days < 0 {
		return "deadline+" + strconv.FormatInt(-days, 10) + "d"
	}
	return "deadline-" + strconv.FormatInt(days, 10) + "d"
}
