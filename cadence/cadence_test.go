package cadence

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSlots has what the vectors do not: deadlines, first mails, holidays, and mixes.
func TestSlots(t *testing.T) {
	// 2026-05-04 is a Monday.
	for name, row := range map[string]struct {
		def      Definition
		anchor   string
		deadline Date
		want     []Slot
	}{
		"first mail": {
			def:    Definition{FirstMail: true, After: []string{"3d"}},
			anchor: "2026-05-04T10:00:00.999999Z",
			want:   slots(t, "0d", "2026-05-04T10:00:00Z", "3d", "2026-05-07T10:00:00Z"),
		},
		"first mail is not moved to at": {
			def:    Definition{FirstMail: true, ThenEvery: new("1d"), At: new("09:00"), Days: workweek},
			anchor: "2026-05-09T20:00:00Z",
			want:   slots(t, "0d", "2026-05-09T20:00:00Z", "1d", "2026-05-11T07:00:00Z", "3d", "2026-05-12T07:00:00Z", "4d", "2026-05-13T07:00:00Z"),
		},
		"before, on and after the deadline": {
			def:      Definition{BeforeDeadline: []string{"-1d", "0d", "1w", "2d"}, At: new("09:00")},
			anchor:   "2026-05-04T10:00:00Z",
			deadline: Date{2026, time.May, 20},
			want: slots(t, "deadline-7d", "2026-05-13T07:00:00Z", "deadline-2d", "2026-05-18T07:00:00Z",
				"deadline-0d", "2026-05-20T07:00:00Z", "deadline+1d", "2026-05-21T07:00:00Z"),
		},
		"deadline slots keep the anchor's clock without at": {
			def:      Definition{BeforeDeadline: []string{"2d"}},
			anchor:   "2026-03-16T10:00:30Z",
			deadline: Date{2026, time.April, 20},
			want:     slots(t, "deadline-2d", "2026-04-18T09:00:30Z"),
		},
		"no deadline, no slots of it": {
			def:    Definition{After: []string{"3d"}, BeforeDeadline: []string{"2d"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "3d", "2026-05-07T10:00:00Z"),
		},
		"deadline slots exist after the anchor only": {
			def:      Definition{BeforeDeadline: []string{"7d", "2d"}},
			anchor:   "2026-05-04T10:00:00Z",
			deadline: Date{2026, time.May, 11},
			want:     slots(t, "deadline-2d", "2026-05-09T10:00:00Z"),
		},
		"merged by due; at one instant the offset stands": {
			def:      Definition{After: []string{"3d", "7d"}, BeforeDeadline: []string{"5d", "2d"}},
			anchor:   "2026-05-04T10:00:00Z",
			deadline: Date{2026, time.May, 13},
			want:     slots(t, "3d", "2026-05-07T10:00:00Z", "deadline-5d", "2026-05-08T10:00:00Z", "7d", "2026-05-11T10:00:00Z"),
		},
		"deadline slots roll, and of two on a Monday the first stands": {
			def:      Definition{BeforeDeadline: []string{"2d", "3d", "0d"}, At: new("09:00"), Days: workweek},
			anchor:   "2026-05-04T10:00:00Z",
			deadline: Date{2026, time.May, 12},
			want:     slots(t, "deadline-3d", "2026-05-11T07:00:00Z", "deadline-0d", "2026-05-12T07:00:00Z"),
		},
		"a holiday alone rolls a day slot, weekends stay": {
			def:    Definition{After: []string{"4d", "5d"}, At: new("09:00"), Holidays: []string{"2026-05-08"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "4d", "2026-05-09T07:00:00Z"),
		},
		"holidays over a weekend": {
			def:    Definition{After: []string{"4d", "8d"}, At: new("09:00"), Days: workweek, Holidays: []string{"2026-05-08", "2026-05-11"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "4d", "2026-05-12T07:00:00Z"),
		},
		"business days pass holidays and, unasked, weekends": {
			def:    Definition{After: []string{"3bd"}, ThenEvery: new("2bd"), At: new("09:00"), Holidays: []string{"2026-05-08", "2026-05-10"}},
			anchor: "2026-05-04T10:00:00Z",
			want: slots(t, "3bd", "2026-05-07T07:00:00Z", "5bd", "2026-05-12T07:00:00Z", "7bd", "2026-05-14T07:00:00Z",
				"9bd", "2026-05-18T07:00:00Z"),
		},
		"elapsed slots are neither moved nor rolled": {
			def:    Definition{After: []string{"90m", "120h"}, At: new("09:00"), Days: workweek, Holidays: []string{"2026-05-04"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "90m", "2026-05-04T11:30:00Z", "120h", "2026-05-09T10:00:00Z"),
		},
		"of two kinds on one instant the first stands": {
			def:    Definition{After: []string{"24h", "1d", "2d"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "24h", "2026-05-05T10:00:00Z", "2d", "2026-05-06T10:00:00Z"),
		},
		"a long step hides what the tail puts in front of it": {
			def:    Definition{After: []string{"1bd", "48h", "2d"}, ThenEvery: new("1d"), At: new("09:00")},
			anchor: "2026-05-04T10:00:00Z",
			want: slots(t, "1bd", "2026-05-05T07:00:00Z", "48h", "2026-05-06T10:00:00Z", "3d", "2026-05-07T07:00:00Z",
				"4d", "2026-05-08T07:00:00Z"),
		},
		"a tail that rolls onto the last step begins behind it": {
			def:    Definition{After: []string{"5d"}, ThenEvery: new("1d"), At: new("09:00"), Days: workweek},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "5d", "2026-05-11T07:00:00Z", "8d", "2026-05-12T07:00:00Z"),
		},
		"cron leaves holidays out": {
			def:    Definition{Cron: new("0 9 * * MON-FRI"), Holidays: []string{"2026-05-06", "2026-05-07", "2026-05-09"}},
			anchor: "2026-05-04T10:00:00Z",
			want:   slots(t, "2026-05-05T09:00", "2026-05-05T07:00:00Z", "2026-05-08T09:00", "2026-05-08T07:00:00Z", "2026-05-11T09:00", "2026-05-11T07:00:00Z"),
		},
		"cron with a first mail and a deadline": {
			def:      Definition{Cron: new("0 9 * * MON"), FirstMail: true, BeforeDeadline: []string{"2d", "1d"}, At: new("09:00"), Days: workweek},
			anchor:   "2026-05-04T10:00:00Z",
			deadline: Date{2026, time.May, 13},
			want: slots(t, "0d", "2026-05-04T10:00:00Z", "2026-05-11T09:00", "2026-05-11T07:00:00Z", "deadline-1d", "2026-05-12T07:00:00Z",
				"2026-05-18T09:00", "2026-05-18T07:00:00Z"),
		},
		"several times a day": {
			def:    Definition{Cron: new("30 8,16 */2 * *")},
			anchor: "2026-05-30T10:00:00Z",
			want: slots(t, "2026-05-31T08:30", "2026-05-31T06:30:00Z", "2026-05-31T16:30", "2026-05-31T14:30:00Z",
				"2026-06-01T08:30", "2026-06-01T06:30:00Z"),
		},
		"two times in one gap are one slot": {
			def:    Definition{Cron: new("15,45 2 * * *")},
			anchor: "2026-03-28T12:00:00Z",
			want:   slots(t, "2026-03-29T02:15", "2026-03-29T01:00:00Z", "2026-03-30T02:15", "2026-03-30T00:15:00Z"),
		},
		"nothing is due after the year 9999": {
			def:    Definition{After: []string{"1d"}, ThenEvery: new("1d")},
			anchor: "9999-12-29T10:00:00Z",
			want:   slots(t, "1d", "9999-12-30T10:00:00Z", "2d", "9999-12-31T10:00:00Z"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, row.def)
			o := Origin{Anchor: instant(t, row.anchor), Zone: loadZone(t, "Europe/Paris"), Deadline: row.deadline}
			got := take(c, o, o.Anchor.Add(-time.Hour), len(row.want)+1)
			if hasTail := row.def.ThenEvery != nil || row.def.Cron != nil; hasTail && len(got) > len(row.want) {
				got = got[:len(row.want)]
			}
			if !cmp.Equal(got, row.want) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(row.want, got))
			}
			checkBackwards(t, c, o, got)
		})
	}
}

// checkBackwards wants Last to find each slot at its due, and the one in front just before.
func checkBackwards(t *testing.T, c *Cadence, o Origin, rising []Slot) {
	t.Helper()
	for i, s := range rising {
		if last, ok := c.Last(o, s.Due); !ok || last != s {
			t.Errorf("last until %v = %v, %v", s, last, ok)
		}
		last, ok := c.Last(o, s.Due.Add(-time.Second))
		if ok != (i > 0) || ok && last != rising[i-1] {
			t.Errorf("last before %v = %v, %v", s, last, ok)
		}
	}
}

// slots reads pairs of name and due.
func slots(t *testing.T, pairs ...string) []Slot {
	t.Helper()
	var all []Slot
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Slot{pairs[i], instant(t, pairs[i+1])})
	}
	return all
}

// TestTotal asks at the ends of what the types hold.
func TestTotal(t *testing.T) {
	instants := []time.Time{
		{}, time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64+firstInstant, 0), time.Unix(firstInstant, 0), time.Unix(lastInstant, 0),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0),
	}
	deadlines := []Date{
		{}, {1, 1, 1}, {9999, 12, 31}, {math.MaxInt, 1, 1}, {math.MinInt, 1, 1}, {2026, math.MaxInt, 1}, {2026, 1, math.MaxInt}, {2026, 1, math.MinInt},
	}
	for name, def := range benchmarked {
		c := mustParse(t, def)
		for _, anchor := range instants {
			for _, deadline := range deadlines {
				for _, z := range []*time.Location{nil, loadZone(t, "Pacific/Apia")} {
					o := Origin{Anchor: anchor, Zone: z, Deadline: deadline}
					for _, at := range instants {
						if s, ok := c.Next(o, at); ok && !s.Due.After(at) {
							t.Errorf("%s: slot after %v is %v", name, at, s)
						}
						if s, ok := c.Last(o, at); ok && s.Due.After(at) {
							t.Errorf("%s: slot until %v is %v", name, at, s)
						}
					}
				}
			}
		}
	}
}

// TestNothingAfterTheLastYear: the evening of its last day is the next year in UTC.
func TestNothingAfterTheLastYear(t *testing.T) {
	for name, row := range map[string]struct {
		def  Definition
		last string
	}{
		"tail":              {Definition{ThenEvery: new("1d"), At: new("23:59")}, "30d"},
		"cron":              {Definition{Cron: new("59 23 * * *")}, "9999-12-30T23:59"},
		"steps and a tail":  {Definition{After: []string{"90d"}, ThenEvery: new("1d")}, ""},
		"deadline":          {Definition{BeforeDeadline: []string{"0d"}, At: new("23:59")}, ""},
		"elapsed":           {Definition{ThenEvery: new("1h")}, "755h"},
		"a step of decades": {Definition{After: []string{"1d", "99999w"}}, "1d"},
	} {
		c := mustParse(t, row.def)
		o := Origin{
			Anchor: instant(t, "9999-11-30T12:00:00Z"), Zone: loadZone(t, "America/New_York"), Deadline: Date{9999, time.December, 31},
		}
		last, _ := c.Last(o, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC))
		if last.Name != row.last {
			t.Errorf("%s: last slot is %v, want %q", name, last, row.last)
		}
		if s, ok := c.Next(o, time.Unix(max(last.Due.Unix(), o.Anchor.Unix()), 0)); ok {
			t.Errorf("%s: next slot is %v, want none", name, s)
		}
	}
}

func TestNilZoneIsUTC(t *testing.T) {
	c := mustParse(t, Definition{After: []string{"3d"}, At: new("09:00")})
	s, ok := c.Next(Origin{Anchor: instant(t, "2026-05-04T10:00:00Z")}, time.Time{})
	if want := instant(t, "2026-05-07T09:00:00Z"); !ok || !s.Due.Equal(want) {
		t.Errorf("got %v, want %v", s, want)
	}
}

func TestDate(t *testing.T) {
	d, err := ParseDate("2028-02-29")
	if err != nil || d != (Date{2028, time.February, 29}) || d.String() != "2028-02-29" {
		t.Errorf("got %v, %v", d, err)
	}
	for _, s := range []string{"", "2026-02-29", "2026-2-3", "0000-01-01", "2026-01-01T00:00:00Z", "01/02/2026", " 2026-01-01", "+2026-01-01"} {
		if d, err := ParseDate(s); err == nil || !d.IsZero() {
			t.Errorf("ParseDate(%q) = %v, want it refused", s, d)
		}
	}
	if n := d.DaysSince(Date{2027, time.December, 31}); n != 60 {
		t.Errorf("days since = %d, want 60", n)
	}
	if n := (Date{1969, time.December, 31}).DaysSince(Date{1970, time.January, 2}); n != -2 {
		t.Errorf("days since = %d, want -2", n)
	}
	if got := DateOf(instant(t, "2026-05-04T23:30:00Z").In(loadZone(t, "Europe/Paris"))); got != (Date{2026, time.May, 5}) {
		t.Errorf("date in Paris = %v, want 5 May", got)
	}
}
