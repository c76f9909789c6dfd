package cadence

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long one input may take. The best of a few tries counts, so that a busy
// machine does not fail an input.
const patience = 10 * time.Millisecond

func quick(t *testing.T, what string, do func()) {
	t.Helper()
	best := time.Duration(1<<63 - 1)
	for range 20 {
		start := time.Now()
		do()
		if best = min(best, time.Since(start)); best <= patience {
			return
		}
	}
	t.Errorf("%s takes %s, want at most %s", what, best, patience)
}

// words splits a list that is absent where there is no text at all.
func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, " ")
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// FuzzParse: any text is taken or refused, at once and without a panic; what is refused has
// a line a mistake, and what is taken has slots that rise.
func FuzzParse(f *testing.F) {
	for _, def := range benchmarked {
		f.Add(strings.Join(def.After, " "), text(def.ThenEvery), text(def.At), strings.Join(def.Days, " "),
			strings.Join(def.Holidays, " "), strings.Join(def.BeforeDeadline, " "), text(def.Cron), def.FirstMail)
	}
	for _, r := range readVectors[struct{ Cadence struct{ Cron *string } }](f, "testdata/reject.json") {
		f.Add("", "", "", "", "", "", text(r.Cadence.Cron), false)
	}
	f.Add("99999w", "99999w", "23:59", "sun", "9999-12-31", "99999d -99999d", "", true)
	f.Add("", "99999bd", "", "sun", "9999-12-31", "", "", true)

	o := Origin{Anchor: time.Date(2026, 3, 16, 10, 0, 0, 0, time.UTC), Zone: loadZone(f, "Africa/Cairo"), Deadline: Date{2026, time.April, 24}}
	f.Fuzz(func(t *testing.T, after, thenEvery, at, days, holidays, before, cron string, firstMail bool) {
		def := Definition{
			After: words(after), ThenEvery: optional(thenEvery), At: optional(at), Days: words(days), Holidays: words(holidays),
			BeforeDeadline: words(before), Cron: optional(cron), FirstMail: firstMail,
		}
		var c *Cadence
		var err error
		quick(t, "Parse", func() { c, err = Parse("test", def) })
		if err != nil {
			mistakes, ok := errors.AsType[DefinitionErrors](err)
			if !ok || c != nil || strings.Count(err.Error(), "\n") != len(mistakes)-1 {
				t.Fatalf("got %v and %q, want a line for each of %d mistakes", c, err, len(mistakes))
			}
			return
		}
		quick(t, "Next", func() { checkRise(t, c, o, o.Anchor.Add(-time.Second)) })
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// checkRise wants a few slots after an instant to be in order, and Last to agree.
func checkRise(t *testing.T, c *Cadence, o Origin, after time.Time) {
	previous := after
	for _, s := range take(c, o, after, 3) {
		if !s.Due.After(previous) || s.Due.Before(o.Anchor.Truncate(time.Second)) || s.Due.Year() > 9999 {
			t.Fatalf("slot %v stands after %v with anchor %v", s, previous, o.Anchor)
		}
		if last, ok := c.Last(o, s.Due); !ok || last != s {
			t.Fatalf("last until %v = %v, %v", s, last, ok)
		}
		previous = s.Due
	}
	if last, ok := c.Last(o, after); ok && last.Due.After(after) {
		t.Fatalf("last until %v = %v", after, last)
	}
}

// FuzzNext: any cadence, zone, anchor and instant has an answer, at once.
func FuzzNext(f *testing.F) {
	names, zones := allZones(f)
	var cadences []*Cadence
	for _, name := range slices.Sorted(maps.Keys(benchmarked)) {
		cadences = append(cadences, mustParse(f, benchmarked[name]))
	}
	for i := range cadences {
		f.Add(uint16(i), uint16(0), int64(0), int64(0), 2026, 4, 20)
		f.Add(uint16(i), uint16(17), int64(1325203200), int64(1<<40), 9999, 12, 31)
		f.Add(uint16(i), uint16(400), lastInstant, int64(-1<<62), 0, 0, 0)
		f.Add(uint16(i), uint16(500), firstInstant, int64(1<<62), 1, 1, 1)
		f.Add(uint16(i), uint16(599), int64(1<<62), int64(1<<62), -5, 99, -99)
	}
	f.Fuzz(func(t *testing.T, rule, zone uint16, anchor, after int64, year, month, day int) {
		c := cadences[int(rule)%len(cadences)]
		o := Origin{
			Anchor:   time.Unix(anchor, 0),
			Zone:     zones[names[int(zone)%len(names)]],
			Deadline: Date{year, time.Month(month), day},
		}
		quick(t, "Next and Last", func() { checkRise(t, c, o, time.Unix(after, 0)) })
	})
}
