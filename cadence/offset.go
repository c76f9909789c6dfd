package cadence

import (
	"strconv"
	"strings"
)

// kind says what an offset counts. Units of one kind are spellings of the same thing.
type kind uint8

const (
	elapsed  kind = iota + 1 // seconds: h, m, s
	civil                    // calendar days: d, w
	business                 // allowed days: bd
)

// offset is a distance from the anchor: n seconds, calendar days or business days.
type offset struct {
	kind kind
	n    int64
}

// maxNumber bounds what may be written in front of a unit.
const maxNumber = 99999

const wantOffset = "want a whole number of s, m, h, d, w or bd, such as 3d"

// unit returns what one of the unit of that name is.
func unit(name string) (one offset, word string) {
	switch name {
	case "s":
		return offset{elapsed, 1}, "second"
	case "m":
		return offset{elapsed, 60}, "minute"
	case "h":
		return offset{elapsed, 60 * 60}, "hour"
	case "d":
		return offset{civil, 1}, "day"
	case "w":
		return offset{civil, 7}, "week"
	case "bd":
		return offset{business, 1}, "business day"
	}
	return offset{}, ""
}

// parseOffset reads a number from 0 to maxNumber and a unit. The reason is not empty where
// it cannot.
func parseOffset(s string) (o offset, reason string) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	number, rest := s[:digits], s[digits:]
	one, _ := unit(rest)
	switch {
	case s == "":
		return o, "empty: " + wantOffset
	case rest == "":
		return o, "no unit: " + wantOffset
	case strings.HasPrefix(s, "-"):
		return o, "negative: " + wantOffset
	case strings.HasPrefix(s, "+"):
		return o, "sign: " + wantOffset
	case rest[0] == '.' || rest[0] == ',':
		_, word := unit(strings.TrimLeft(rest, ".,0123456789"))
		if word == "" {
			word = "number"
		}
		return o, "fraction of a " + word + ": " + wantOffset
	case number == "":
		return o, "no number: " + wantOffset
	case one == offset{}:
		return o, "unknown unit: " + wantOffset
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > maxNumber {
		return o, "out of range: want 1 to " + strconv.Itoa(maxNumber)
	}
	return offset{one.kind, n * one.n}, ""
}

// String returns the canonical name: weeks in days, elapsed time in the largest of h, m, s
// that divides it.
func (o offset) String() string {
	n, name := o.n, "s"
	switch {
	case o.kind == civil:
		name = "d"
	case o.kind == business:
		name = "bd"
	case n%(60*60) == 0:
		n, name = n/(60*60), "h"
	case n%60 == 0:
		n, name = n/60, "m"
	}
	return strconv.FormatInt(n, 10) + name
}

// follows reports whether o may stand behind prev in a list. Offsets of one kind must
// increase. What those of two kinds come to depends on the anchor, so of them only those
// are refused that are nominally shorter: a day as 24 hours, a week as that many business
// days as it has.
func (o offset) follows(prev offset, businessDays int64) bool {
	if o.kind == prev.kind {
		return o.n > prev.n
	}
	return o.nominal(businessDays) >= prev.nominal(businessDays)
}

func (o offset) nominal(businessDays int64) int64 {
	switch o.kind {
	case civil:
		return o.n * daySeconds
	case business:
		return o.n * 7 * daySeconds / businessDays
	}
	return o.n
}
