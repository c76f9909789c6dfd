package cadence

import (
	"fmt"
	"time"
)

const daySeconds = 24 * 60 * 60

// Date is a civil date of the proleptic Gregorian calendar, in no zone.
// The zero Date means that there is none.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the date that t's own location shows at t.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads a date written 2006-01-02, of the years 0001 to 9999.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1 {
		return Date{}, fmt.Errorf("parse date %q: no such date, want one like 2006-01-02", s)
	}
	return DateOf(t), nil
}

// IsZero reports whether there is no date.
func (d Date) IsZero() bool { return d == Date{} }

// String returns the date as 2006-01-02.
func (d Date) String() string {
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day)
}

// DaysSince returns the civil days from o to d, negative where d is the earlier one.
func (d Date) DaysSince(o Date) int { return int(d.number() - o.number()) }

// number counts civil days from 1970-01-01. UTC has neither gap nor overlap, so here
// time.Date is plain calendar arithmetic.
func (d Date) number() int64 {
	return dayOf(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Unix())
}

// dayOf returns the number of the civil day in which the civil second c lies.
func dayOf(c int64) int64 { return floorDiv(c, daySeconds) }

// floorDiv divides rounding down, so that days before 1970 are whole days too.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
