package cadence

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxEntries  = 64    // of after and of before_deadline
	maxHolidays = 10000 // eight centuries of a dozen a year
)

// weekdays is a set of days of the week, one bit a time.Weekday.
type weekdays uint64

const (
	everyDay   weekdays = 0b1111111
	mondayOn   weekdays = 0b0111110 // Monday to Friday: what bd counts where days says nothing
	dayNames            = "sun mon tue wed thu fri sat"
	wantClock           = "want HH:MM, 00:00 to 23:59"
	wantBefore          = "want days or weeks before the deadline, such as 2d; -1d is the day after it"
)

// Parse checks a definition and returns the cadence. The error is DefinitionErrors: every
// mistake is in it, not only the first.
func Parse(name string, def Definition) (*Cadence, error) {
	p := &parser{cadence: name}
	days := p.days(def.Days)
	holidays := p.holidays(def.Holidays)
	c := &Cadence{
		name:      name,
		firstMail: def.FirstMail,
		steps:     p.after(def.After, days),
		clock:     p.at(def.At),
		deadline:  p.beforeDeadline(def.BeforeDeadline),
		max:       p.max(def.Max),
		cron:      p.cron(def, holidays),
		allowed:   days.or(everyDay).calendar(holidays),
		working:   days.or(mondayOn).calendar(holidays),
	}
	c.every = p.thenEvery(def.ThenEvery, c.lastStep())
	if def.After == nil && def.ThenEvery == nil && def.BeforeDeadline == nil && def.Cron == nil && !def.FirstMail {
		p.refuse("", "", -1, "empty: want after, then_every, before_deadline, first_mail or cron")
	}
	if len(p.errs) > 0 {
		p.sort()
		return nil, p.errs
	}
	return c, nil
}

// parser gathers the mistakes of one definition.
type parser struct {
	cadence string
	errs    DefinitionErrors
}

func (p *parser) refuse(key, value string, index int, format string, args ...any) {
	p.errs = append(p.errs, &DefinitionError{p.cadence, key, value, fmt.Sprintf(format, args...), index})
}

// sort puts the mistakes in the order in which the keys are documented.
func (p *parser) sort() {
	keys := []string{"", "after", "then_every", "max", "at", "days", "holidays", "before_deadline", "cron"}
	slices.SortStableFunc(p.errs, func(a, b *DefinitionError) int {
		return slices.Index(keys, a.Key) - slices.Index(keys, b.Key)
	})
}

func (p *parser) after(entries []string, days weekdays) []offset {
	if !p.count("after", entries, "no slot at all: want offsets such as 3d") {
		return nil
	}
	perWeek := days.or(mondayOn).count()
	var steps []offset
	for i, entry := range entries {
		o, reason := parseOffset(entry)
		if reason == "" && o.n == 0 {
			reason = "zero offset: first_mail is the way to say it"
		}
		if reason != "" {
			p.refuse("after", entry, i, "%s", reason)
			continue
		}
		at := slices.IndexFunc(steps, func(earlier offset) bool { return !o.follows(earlier, perWeek) })
		if at >= 0 {
			p.refuse("after", entry, i, "must increase, but %s stands before it", steps[at])
			continue
		}
		steps = append(steps, o)
	}
	return steps
}

// count refuses a list that is there and empty, or too long, and reports whether it is to be read.
func (p *parser) count(key string, entries []string, empty string) bool {
	switch {
	case entries == nil:
		return false
	case len(entries) == 0:
		p.refuse(key, "[]", -1, "%s", empty)
		return false
	case len(entries) > maxEntries:
		p.refuse(key, strconv.Itoa(len(entries))+" entries", -1, "too many: want at most %d", maxEntries)
		return false
	}
	return true
}

func (p *parser) thenEvery(entry *string, last offset) offset {
	if entry == nil {
		return offset{}
	}
	o, reason := parseOffset(*entry)
	switch {
	case reason != "":
	case o.n == 0:
		reason = "zero: " + wantOffset
	case last.kind != 0 && o.kind != last.kind:
		reason = fmt.Sprintf("tail in another unit than the last step, %s: want s, m, h behind one of those, d, w behind d, w, and bd behind bd", last)
	default:
		return o
	}
	p.refuse("then_every", *entry, -1, "%s", reason)
	return offset{}
}

func (p *parser) max(n *int) int {
	if n == nil {
		return 0
	}
	if *n < 1 {
		p.refuse("max", strconv.Itoa(*n), -1, "max below 1: want a number of mails, or no max for no ceiling")
	}
	return *n
}

func (p *parser) at(clock *string) int64 {
	if clock == nil {
		return ownClock
	}
	t, err := time.Parse("15:04", *clock)
	switch {
	case len(*clock) == len("9:00") && strings.Index(*clock, ":") == 1:
		p.refuse("at", *clock, -1, "two digits for the hour: %s", wantClock)
	case err != nil || len(*clock) != len("09:00"):
		p.refuse("at", *clock, -1, "no such time: %s", wantClock)
	}
	return int64(t.Hour()*60+t.Minute()) * 60
}

func (p *parser) days(names []string) weekdays {
	if names != nil && len(names) == 0 {
		p.refuse("days", "[]", -1, "no day left: want some of %s", dayNames)
	}
	var set weekdays
	for i, name := range names {
		day := slices.Index(strings.Fields(dayNames), name)
		switch {
		case day < 0:
			p.refuse("days", name, i, "unknown day: want some of %s", dayNames)
		case has(uint64(set), day):
			p.refuse("days", name, i, "repeated: want each day once")
		default:
			set |= 1 << day
		}
	}
	return set
}

func (p *parser) holidays(dates []string) []int64 {
	if len(dates) > maxHolidays {
		p.refuse("holidays", strconv.Itoa(len(dates))+" dates", -1, "too many: want at most %d", maxHolidays)
		return nil
	}
	days := make([]int64, 0, len(dates))
	for i, date := range dates {
		d, err := ParseDate(date)
		if err != nil {
			p.refuse("holidays", date, i, "no such date: want one like 2006-01-02")
			continue
		}
		days = append(days, d.number())
	}
	return days
}

// beforeDeadline returns days before the deadline, the most first.
func (p *parser) beforeDeadline(entries []string) []int64 {
	if !p.count("before_deadline", entries, "no slot at all: "+wantBefore) {
		return nil
	}
	var days []int64
	for i, entry := range entries {
		number, after := strings.CutPrefix(entry, "-")
		o, reason := parseOffset(number)
		if after {
			o.n = -o.n
		}
		switch {
		case reason != "":
			reason, _, _ = strings.Cut(reason, ":")
			p.refuse("before_deadline", entry, i, "%s: %s", reason, wantBefore)
		case o.kind != civil:
			p.refuse("before_deadline", entry, i, "not calendar days: %s", wantBefore)
		case slices.Contains(days, o.n):
			p.refuse("before_deadline", entry, i, "repeated: want each day once")
		default:
			days = append(days, o.n)
		}
	}
	slices.SortFunc(days, func(a, b int64) int { return int(b - a) })
	return days
}

func (p *parser) cron(def Definition, holidays []int64) *cronRule {
	if def.Cron == nil {
		return nil
	}
	if def.After != nil || def.ThenEvery != nil {
		p.refuse("cron", *def.Cron, -1, "offsets and cron together: want after and then_every, or cron")
	}
	if def.BeforeDeadline == nil {
		if def.At != nil {
			p.refuse("at", *def.At, -1, "not with cron, which says the time itself")
		}
		if def.Days != nil {
			p.refuse("days", strings.Join(def.Days, " "), -1, "not with cron, which says the days itself")
		}
	}
	rule, err := parseCron(*def.Cron, holidays)
	if err != nil {
		p.refuse("cron", *def.Cron, -1, "%v", err)
	}
	return rule
}

// or returns the set, or other where it is empty.
func (w weekdays) or(other weekdays) weekdays {
	if w == 0 {
		return other
	}
	return w
}

func (w weekdays) count() int64 {
	return int64(bits.OnesCount64(uint64(w)))
}

// calendar returns the days of the set that are no holidays. Day 0 of a calendar,
// 1970-01-01, was a Thursday.
func (w weekdays) calendar(holidays []int64) *calendar {
	var pattern uint64
	for day := range 7 {
		if has(uint64(w), (day+int(time.Thursday))%7) {
			pattern |= 1 << day
		}
	}
	return newCalendar(7, []uint64{pattern}, holidays)
}
