package cadence

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestWalkIsTheDefinition compares walks with the definition written out the slow way.
func TestWalkIsTheDefinition(t *testing.T) {
	names, zones := allZones(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t, names, zones)
		c, err := Parse("test", p.def)
		if err != nil {
			t.Fatal(err)
		}
		want := p.slots(20)
		got := take(c, p.origin, p.origin.Anchor.Add(-time.Hour), len(want))
		if !cmp.Equal(got, want) {
			t.Fatalf("slots (-want +got):\n%s", cmp.Diff(want, got))
		}
		probe := time.Unix(p.origin.Anchor.Unix()+rapid.Int64Range(-daySeconds, 60*daySeconds).Draw(t, "probe"), 0)
		for i, s := range want {
			if s.Due.After(probe) {
				if jump, ok := c.Next(p.origin, probe); !ok || jump != s {
					t.Fatalf("next after %v = %v, %v; the walk gives %v", probe, jump, ok, s)
				}
				last, ok := c.Last(p.origin, probe)
				if ok != (i > 0) || ok && last != want[i-1] {
					t.Fatalf("last until %v = %v, %v; the walk gives %v", probe, last, ok, want[:i])
				}
				break
			}
		}
	})
}

// TestSlotsRise holds wherever one looks: slots rise strictly, are due after the anchor, and
// what Next and Last say does not depend on how far away they are asked from.
func TestSlotsRise(t *testing.T) {
	names, zones := allZones(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t, names, zones)
		c, err := Parse("test", p.def)
		if err != nil {
			t.Fatal(err)
		}
		anchor := p.origin.Anchor.Truncate(time.Second)
		far := anchor.Add(time.Duration(rapid.Int64Range(-daySeconds, 100*366*daySeconds).Draw(t, "far")) * time.Second)
		walked := take(c, p.origin, far, 6)
		seen := map[string]bool{}
		for i, s := range walked {
			if s.Name == "0d" && !s.Due.Equal(anchor) || s.Name != "0d" && !s.Due.After(anchor) {
				t.Fatalf("%v is not due after its anchor %v", s, anchor)
			}
			if i > 0 && !s.Due.After(walked[i-1].Due) {
				t.Fatalf("%v is not due after %v", s, walked[i-1])
			}
			if seen[s.Name] {
				t.Fatalf("two slots are named %s", s.Name)
			}
			seen[s.Name] = true
			if s.Due.Location() != time.UTC || s.Due.Nanosecond() != 0 {
				t.Fatalf("%v is not a whole second in UTC", s)
			}
			if i == 0 {
				continue
			}
			gap := s.Due.Unix() - walked[i-1].Due.Unix()
			from := walked[i-1].Due.Add(time.Duration(rapid.Int64Range(0, gap-1).Draw(t, "from")) * time.Second)
			if jump, ok := c.Next(p.origin, from); !ok || jump != s {
				t.Fatalf("next after %v = %v, %v; the walk gives %v", from, jump, ok, s)
			}
			if last, ok := c.Last(p.origin, from); !ok || last != walked[i-1] {
				t.Fatalf("last until %v = %v, %v; the walk gives %v", from, last, ok, walked[i-1])
			}
		}
	})
}

// TestSpellingsAgree: an offset is what it comes to, however it is written.
func TestSpellingsAgree(t *testing.T) {
	names, zones := allZones(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t, names, zones)
		n := rapid.IntRange(1, 20).Draw(t, "n")
		spellings := rapid.SampledFrom([][]string{
			{fmt.Sprintf("%dw", n), fmt.Sprintf("%dd", 7*n)},
			{fmt.Sprintf("%dh", n), fmt.Sprintf("%dm", 60*n), fmt.Sprintf("%ds", 3600*n)},
			{fmt.Sprintf("%dm", n), fmt.Sprintf("%ds", 60*n), fmt.Sprintf("%05ds", 60*n)},
		}).Draw(t, "spellings")
		var first []Slot
		for i, spelling := range spellings {
			c, err := Parse("test", Definition{After: []string{spelling}, ThenEvery: &spelling, At: p.def.At, Days: p.def.Days})
			if err != nil {
				t.Fatal(err)
			}
			got := take(c, p.origin, p.origin.Anchor, 6)
			if i == 0 {
				first = got
			}
			if !cmp.Equal(got, first) {
				t.Fatalf("%s and %s differ:\n%s", spellings[0], spelling, cmp.Diff(first, got))
			}
		}
	})
}

// TestCronDoesNotDependOnTheAnchor: an occurrence is a civil time; the anchor only says from
// when on they count.
func TestCronDoesNotDependOnTheAnchor(t *testing.T) {
	names, zones := allZones(t)
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.SampledFrom([]string{"30 2 29 2 *", "0 9 * * FRI", "*/15 * * * *", "59 23 31 */2 *", "0 0 1 1 *"}).Draw(t, "cron")
		c, err := Parse("test", Definition{Cron: &expression})
		if err != nil {
			t.Fatal(err)
		}
		z := zones[rapid.SampledFrom(names).Draw(t, "zone")]
		old := time.Unix(rapid.Int64Range(946684800, 2000000000).Draw(t, "old"), 0)
		young := old.Add(time.Duration(rapid.Int64Range(0, 80*366*daySeconds).Draw(t, "younger")) * time.Second)
		a, okA := c.Next(Origin{Anchor: old, Zone: z}, young)
		b, okB := c.Next(Origin{Anchor: young, Zone: z}, young)
		if !okA || !okB || a != b {
			t.Fatalf("after %v: %v from the old anchor, %v from the young", young, a, b)
		}
	})
}

// TestAtReadsAt: in every zone, about its changes, the clock of a slot reads at on every day
// that has that time, and on a day that has not the slot is due at the change.
func TestAtReadsAt(t *testing.T) {
	names, zones := allZones(t)
	read, skipped := 0, 0
	for _, name := range names {
		location := zones[name]
		for _, change := range some(changes(location), 3) {
			wall := reading(location, change)
			for _, minutes := range []int64{-75, -30, -1, 0, 45} {
				clock := (wall+minutes*60)%daySeconds/60 + daySeconds/60
				at := fmt.Sprintf("%02d:%02d", clock/60%24, clock%60)
				c := mustParse(t, Definition{ThenEvery: new("1d"), At: &at})
				o := Origin{Anchor: time.Unix(change-2*daySeconds, 0), Zone: location}
				today := DateOf(o.Anchor.In(location))
				for _, s := range take(c, o, o.Anchor, 3) {
					days, err := strconv.Atoi(strings.TrimSuffix(s.Name, "d"))
					if err != nil {
						t.Fatal(err)
					}
					nominal := addDays(today, days).String() + " " + at + ":00"
					if s.Due.In(location).Format(time.DateTime) == nominal {
						read++
						continue
					}
					skipped++
					skips, err := time.Parse(time.DateTime, nominal)
					due := s.Due.Unix()
					if err != nil || exists(location, skips.Unix()) || reading(location, due-1) >= skips.Unix() || reading(location, due) < skips.Unix() {
						t.Errorf("%s: slot %s at %s is due %v", name, s.Name, at, s.Due.In(location))
					}
				}
			}
		}
	}
	t.Logf("%d slots read at, %d fell into a gap", read, skipped)
	if read < 10000 || skipped < 100 {
		t.Errorf("%d slots read at and %d fell into a gap, want more of both", read, skipped)
	}
}

// TestJumpIsWalk walks a century slot by slot and then asks for each of them, from just in
// front of it and from its own instant.
func TestJumpIsWalk(t *testing.T) {
	_, zones := allZones(t)
	for name, def := range benchmarked {
		if name == "elapsed" || name == "96 a day" {
			continue // millions of slots, of a kind that the others have too
		}
		c := mustParse(t, def)
		for _, zone := range []string{"Australia/Lord_Howe", "Africa/Cairo"} {
			o := Origin{Anchor: instant(t, "2026-03-16T10:00:00Z"), Zone: zones[zone]}
			s := c.series(o)
			end := o.Anchor.AddDate(100, 0, 0).Unix()
			var raw []mark
			for n := int64(0); n < s.rest.size() && (n == 0 || raw[n-1].due < end); n++ {
				raw = append(raw, mark{s.rest.name(n), s.rest.due(n)})
			}
			walked, _ := rising(s.floor, raw)
			for i, m := range some(walked, 500) {
				if got, ok := s.next(m.due - 1); !ok || got != m {
					t.Fatalf("%s in %s: next before %v = %v, %v", name, zone, m, got, ok)
				}
				if got, ok := s.last(m.due); !ok || got != m {
					t.Fatalf("%s in %s: last until %v (%d) = %v, %v", name, zone, m, i, got, ok)
				}
			}
		}
	}
}
