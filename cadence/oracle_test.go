package cadence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// plan is a drawn cadence together with what the oracle needs to know about it, which it
// does not get from Parse.
type plan struct {
	def      Definition
	origin   Origin
	steps    []offset
	every    offset
	clock    int      // minute of the day that at says
	days     []string // allowed days; nil: all
	minutes  []int
	hours    []int
	weekdays []int
	deadline []int // days before it
}

// drawPlan draws a cadence and an origin in any zone between 2000 and 2100. Half of them lie
// right in front of a change of the clock, with a clock time about the change.
func drawPlan(t *rapid.T, names []string, zones map[string]*time.Location) plan {
	var p plan
	p.origin.Zone = zones[rapid.SampledFrom(names).Draw(t, "zone")]
	anchor := rapid.Int64Range(946684800, 4102444800).Draw(t, "anchor")
	p.clock = rapid.IntRange(0, 24*60-1).Draw(t, "clock")
	if all := changes(p.origin.Zone); len(all) > 0 && rapid.Bool().Draw(t, "about a change") {
		change := rapid.SampledFrom(all).Draw(t, "change")
		about := reading(p.origin.Zone, change) + rapid.Int64Range(-180, 120).Draw(t, "minutes from it")*60
		p.clock = int(about-dayOf(about)*daySeconds) / 60
		anchor = change - rapid.Int64Range(0, 4*daySeconds).Draw(t, "seconds before it")
	}
	p.origin.Anchor = time.Unix(anchor, rapid.Int64Range(0, 999999999).Draw(t, "fraction"))
	if rapid.Bool().Draw(t, "has at") {
		p.def.At = new(fmt.Sprintf("%02d:%02d", p.clock/60, p.clock%60))
	}
	if rapid.Bool().Draw(t, "has days") {
		p.def.Days = rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields(dayNames)), 1, 7, rapid.ID).Draw(t, "days")
		p.days = p.def.Days
	}
	today := DateOf(p.origin.Anchor.In(p.origin.Zone))
	for range rapid.IntRange(0, 6).Draw(t, "holidays") {
		p.def.Holidays = append(p.def.Holidays, addDays(today, rapid.IntRange(-2, 30).Draw(t, "holiday")).String())
	}
	if rapid.Bool().Draw(t, "has a deadline") {
		p.origin.Deadline = addDays(today, rapid.IntRange(-3, 20).Draw(t, "deadline"))
		p.deadline = rapid.SliceOfNDistinct(rapid.IntRange(-3, 15), 1, 4, rapid.ID).Draw(t, "before deadline")
		for _, days := range p.deadline {
			p.def.BeforeDeadline = append(p.def.BeforeDeadline, fmt.Sprintf("%dd", days))
		}
	}
	p.def.FirstMail = rapid.Bool().Draw(t, "first mail")
	if rapid.IntRange(0, 2).Draw(t, "cron") == 0 {
		p.drawCron(t)
	} else {
		p.drawOffsets(t)
	}
	return p
}

func (p *plan) drawOffsets(t *rapid.T) {
	kinds := rapid.SampledFrom([]kind{elapsed, civil, business})
	draw := func(label string) offset {
		o := offset{kinds.Draw(t, label+" kind"), rapid.Int64Range(1, 9).Draw(t, label)}
		if o.kind == elapsed {
			o.n *= rapid.SampledFrom([]int64{1, 60, 3600, 6 * 3600}).Draw(t, label+" unit")
		}
		return o
	}
	perWeek := int64(5)
	if p.days != nil {
		perWeek = int64(len(p.days))
	}
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		step := draw("step")
		if !slices.ContainsFunc(p.steps, func(earlier offset) bool { return !step.follows(earlier, perWeek) }) {
			p.steps = append(p.steps, step)
			p.def.After = append(p.def.After, step.String())
		}
	}
	if len(p.steps) > 0 && rapid.IntRange(0, 3).Draw(t, "no tail") == 0 {
		return
	}
	p.every = draw("tail")
	if n := len(p.steps); n > 0 && p.every.kind != p.steps[n-1].kind {
		p.every = offset{p.steps[n-1].kind, 1 + p.every.n%9}
	}
	p.def.ThenEvery = new(p.every.String())
}

func (p *plan) drawCron(t *rapid.T) {
	p.minutes = rapid.SliceOfNDistinct(rapid.IntRange(0, 59), 1, 3, rapid.ID).Draw(t, "minutes")
	p.hours = rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 1, 3, rapid.ID).Draw(t, "hours")
	p.weekdays = rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 6, rapid.ID).Draw(t, "weekdays")
	p.def.Cron = new(fmt.Sprintf("%s %s * * %s", list(p.minutes), list(p.hours), list(p.weekdays)))
	slices.Sort(p.minutes)
	slices.Sort(p.hours)
	if p.deadline == nil {
		p.def.At, p.def.Days, p.days = nil, nil, nil
	}
}

func list(numbers []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(numbers), "[]")), ",")
}

func addDays(d Date, n int) Date {
	return DateOf(time.Date(d.Year, d.Month, d.Day+n, 0, 0, 0, 0, time.UTC))
}

// slots writes the definition out the slow way: days walked one by one, clocks scanned,
// every slot compared with all in front of it. It goes on until about many slots of the
// unending part have been looked at, and returns those that are sure to be complete.
func (p plan) slots(many int) []Slot {
	anchor := p.origin.Anchor.Unix()
	listed, whole := p.series(many)
	kept := existing(anchor, listed)
	if p.def.FirstMail {
		kept = append([]mark{{"0d", anchor}}, kept...)
	}
	for _, m := range existing(anchor, p.deadlineSeries()) {
		if !slices.ContainsFunc(kept, func(other mark) bool { return other.due == m.due }) {
			kept = append(kept, m)
		}
	}
	slices.SortFunc(kept, func(a, b mark) int { return int(a.due - b.due) })
	var slots []Slot
	for _, m := range kept {
		if whole || m.due < listed[len(listed)-1].due {
			slots = append(slots, m.slot())
		}
	}
	return slots
}

// existing keeps what is due after the anchor and after everything in front.
func existing(anchor int64, all []mark) []mark {
	var kept []mark
	for i, m := range all {
		if m.due > anchor && !slices.ContainsFunc(all[:i], func(earlier mark) bool { return earlier.due >= m.due }) {
			kept = append(kept, m)
		}
	}
	return kept
}

// series returns the slots in definition order, and whether there are no more.
func (p plan) series(many int) (all []mark, whole bool) {
	if p.def.Cron != nil {
		return p.cronSeries(many), false
	}
	for _, step := range p.steps {
		all = append(all, p.mark(step))
	}
	if p.every.n == 0 {
		return all, true
	}
	var from int64
	if len(p.steps) > 0 {
		from = p.steps[len(p.steps)-1].n
	}
	for n := range int64(many) {
		all = append(all, p.mark(offset{p.every.kind, from + (n+1)*p.every.n}))
	}
	return all, false
}

func (p plan) mark(o offset) mark {
	day := p.today()
	switch o.kind {
	case elapsed:
		return mark{o.String(), p.origin.Anchor.Unix() + o.n}
	case civil:
		day = p.rolled(addDays(day, int(o.n)))
	case business:
		for left := o.n; left > 0; {
			day = addDays(day, 1)
			if p.open(day, p.days, workweek) {
				left--
			}
		}
	}
	return mark{o.String(), p.at(day)}
}

func (p plan) cronSeries(many int) (all []mark) {
	for day := p.today(); len(all) < many; day = addDays(day, 1) {
		midnight := time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC)
		if !slices.Contains(p.weekdays, int(midnight.Weekday())) || slices.Contains(p.def.Holidays, day.String()) {
			if day.DaysSince(p.today()) > 400 {
				return all
			}
			continue
		}
		for _, hour := range p.hours {
			for _, minute := range p.minutes {
				c := midnight.Add(time.Duration(hour*60+minute) * time.Minute)
				all = append(all, mark{c.Format("2006-01-02T15:04"), scan(p.origin.Zone, c.Unix())})
			}
		}
	}
	return all
}

func (p plan) deadlineSeries() (all []mark) {
	if p.origin.Deadline.IsZero() {
		return nil
	}
	for before := 99999; before >= -99999; before-- {
		if !slices.Contains(p.deadline, before) {
			continue
		}
		name := fmt.Sprintf("deadline-%dd", before)
		if before < 0 {
			name = fmt.Sprintf("deadline+%dd", -before)
		}
		all = append(all, mark{name, p.at(p.rolled(addDays(p.origin.Deadline, -before)))})
	}
	return all
}

func (p plan) today() Date { return DateOf(p.origin.Anchor.In(p.origin.Zone)) }

func (p plan) rolled(day Date) Date {
	for !p.open(day, p.days, strings.Fields(dayNames)) {
		day = addDays(day, 1)
	}
	return day
}

func (p plan) open(day Date, days, without []string) bool {
	if days == nil {
		days = without
	}
	name := strings.ToLower(time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC).Weekday().String()[:3])
	return slices.Contains(days, name) && !slices.Contains(p.def.Holidays, day.String())
}

func (p plan) at(day Date) int64 {
	hour, minute, second := p.origin.Anchor.In(p.origin.Zone).Clock()
	if p.def.At != nil {
		hour, minute, second = p.clock/60, p.clock%60, 0
	}
	return scan(p.origin.Zone, time.Date(day.Year, day.Month, day.Day, hour, minute, second, 0, time.UTC).Unix())
}
