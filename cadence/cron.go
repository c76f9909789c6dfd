package cadence

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	maxCronBytes  = 120
	maxCronPerDay = 96
	// starBit marks a field that was written with a star.
	starBit = 1 << 63
	// gregorian is the number of days after which the calendar repeats, weekdays included:
	// 400 years.
	gregorian = 146097
)

// cronRule is a cron expression in civil time: on some days, at some times of the day.
type cronRule struct {
	days  *calendar
	times []int64 // seconds of the day, rising; never empty
}

// cronItem is the part of robfig's grammar that means what it says. It keeps out what that
// parser takes without a look (empty items, text behind "*-", signs, "?") and the "=" of the
// zone prefix on which it panics.
var cronItem = regexp.MustCompile(`^(?:\*|(\d{1,2}|[A-Za-z]{3})(?:-(\d{1,2}|[A-Za-z]{3}))?)(?:/[1-9]\d?)?$`)

// parseCron reads an expression of five fields. holidays are civil days that are left out.
func parseCron(expression string, holidays []int64) (*cronRule, error) {
	if len(expression) > maxCronBytes {
		return nil, fmt.Errorf("longer than %d bytes", maxCronBytes)
	}
	fields := strings.Split(expression, " ")
	if len(fields) != len(cronFields) {
		return nil, errors.New("want 5 fields separated by one space: minute hour day-of-month month day-of-week")
	}
	for _, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !cronItem.MatchString(item) {
				return nil, fmt.Errorf("bad item %q: want *, a number, a three-letter name, a range such as 1-5, or one of them with a step such as */2", item)
			}
		}
	}
	schedule, err := robfig(expression)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, cronHint(fields))
	}
	return newCronRule(schedule, holidays)
}

// robfig parses the expression into bit sets. Nothing that passes cronItem is known to make
// that parser panic; if something does, it costs one definition and not the process.
func robfig(expression string) (schedule *cron.SpecSchedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	parsed, err := parser.Parse(expression)
	if err != nil {
		return nil, err
	}
	return parsed.(*cron.SpecSchedule), nil
}

func newCronRule(s *cron.SpecSchedule, holidays []int64) (*cronRule, error) {
	if s.Dom&starBit == 0 && s.Dow&starBit == 0 {
		return nil, errors.New("day-of-month and day-of-week both restricted (cron would OR them): write two cadences, or leave one of them *")
	}
	perDay := bits.OnesCount64(s.Hour&^starBit) * bits.OnesCount64(s.Minute&^starBit)
	if perDay == 0 || perDay > maxCronPerDay {
		return nil, fmt.Errorf("more than %d slots a day, or none: then_every takes minutes and seconds", maxCronPerDay)
	}
	pattern := cronDays(s)
	if !slices.ContainsFunc(pattern, func(word uint64) bool { return word != 0 }) {
		return nil, errors.New("never matches (for example 30 February)")
	}
	rule := &cronRule{days: newCalendar(gregorian, pattern, holidays)}
	for hour := range 24 {
		for minute := range 60 {
			if has(s.Hour, hour) && has(s.Minute, minute) {
				rule.times = append(rule.times, int64(hour*60+minute)*60)
			}
		}
	}
	return rule, nil
}

// cronDays returns one bit a day for the 400 years from 1970-01-01.
func cronDays(s *cron.SpecSchedule) []uint64 {
	pattern := make([]uint64, gregorian/64+1)
	day := 0
	for year := 1970; year < 1970+400; year++ {
		for month := time.January; month <= time.December; month++ {
			length := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
			for dom := 1; dom <= length; dom++ {
				weekday := (day + int(time.Thursday)) % 7
				if has(s.Month, int(month)) && has(s.Dom, dom) && has(s.Dow, weekday) {
					pattern[day/64] |= 1 << (day % 64)
				}
				day++
			}
		}
	}
	return pattern
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// occurrences are the slots of a cron cadence: its civil times from the day of the anchor on.
type occurrences struct {
	*cronRule
	origin *origin
}

// civil returns the civil second of slot n.
func (r occurrences) civil(n int64) int64 {
	perDay := int64(len(r.times))
	return r.days.nth(r.origin.day-1, n/perDay+1)*daySeconds + r.times[n%perDay]
}

func (r occurrences) due(n int64) int64 { return r.origin.zone.inst(r.civil(n)) }

func (r occurrences) name(n int64) string {
	return time.Unix(r.civil(n), 0).UTC().Format("2006-01-02T15:04")
}

func (r occurrences) near(t int64) int64 {
	wall := r.origin.zone.wall(t)
	day := dayOf(wall)
	today, _ := slices.BinarySearch(r.times, wall-day*daySeconds)
	return r.daysBefore(day)*int64(len(r.times)) + int64(today)
}

func (r occurrences) size() int64 {
	return max(r.daysBefore(dayOf(lastInstant)+1)*int64(len(r.times)), 0)
}

// daysBefore counts the days of the rule from the anchor's up to, not including, day.
func (r occurrences) daysBefore(day int64) int64 {
	return r.days.rank(day-1) - r.days.rank(r.origin.day-1)
}
