package cadence

import (
	"math/bits"
	"slices"
)

// calendar is a set of civil days: a pattern that repeats, less single days. It counts days
// and finds the n-th one without walking, however far away that is.
type calendar struct {
	period   int64    // days after which the pattern repeats
	pattern  []uint64 // one bit a day of the period, the first for day 0
	before   []int64  // days of the pattern in front of each word
	each     int64    // days of one whole period
	holidays []int64  // sorted days of the pattern that are left out
}

// newCalendar takes a pattern of at least one day.
func newCalendar(period int64, pattern []uint64, holidays []int64) *calendar {
	c := &calendar{period: period, pattern: pattern}
	for _, word := range pattern {
		c.before = append(c.before, c.each)
		c.each += int64(bits.OnesCount64(word))
	}
	c.holidays = slices.DeleteFunc(slices.Clone(holidays), func(day int64) bool { return !c.matches(day) })
	slices.Sort(c.holidays)
	c.holidays = slices.Compact(c.holidays)
	return c
}

// matches reports whether day is in the pattern, holiday or not.
func (c *calendar) matches(day int64) bool {
	at := day - floorDiv(day, c.period)*c.period
	return c.pattern[at/64]>>(at%64)&1 == 1
}

// rank counts the days of the set from day 0 (where it is negative: back from it) up to
// and including day.
func (c *calendar) rank(day int64) int64 {
	cycle := floorDiv(day, c.period)
	at := day - cycle*c.period
	upTo := c.pattern[at/64] << (63 - at%64)
	left, _ := slices.BinarySearch(c.holidays, day+1)
	return cycle*c.each + c.before[at/64] + int64(bits.OnesCount64(upTo)) - int64(left)
}

// nth returns the n-th day of the set, n >= 1, strictly after day.
func (c *calendar) nth(day, n int64) int64 {
	want := c.rank(day) + n
	periods := (n+int64(len(c.holidays)))/c.each + 1
	low, high := day, day+periods*c.period
	for high-low > 1 {
		if mid := low + (high-low)/2; c.rank(mid) >= want {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// roll returns day itself where it is in the set, else the next day that is.
func (c *calendar) roll(day int64) int64 { return c.nth(day-1, 1) }
