package cadence

import (
	"testing"
	"time"
)

// TestCases has faults that users of other systems met: what the arithmetic has to give.
func TestCases(t *testing.T) {
	day3 := func(at string) Definition { return Definition{After: []string{"3d"}, At: &at} }
	day1 := func(at string) Definition { return Definition{After: []string{"1d"}, At: &at} }
	weekly := Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: new("7d")}
	nine := Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: new("7d"), At: new("09:00")}

	for name, row := range map[string]struct {
		def    Definition
		anchor string
		zone   string
		slot   string
		due    string
	}{
		"C01 offset of the target date":    {nine, "2026-10-29T13:00:00Z", "America/New_York", "7d", "2026-11-05T14:00:00Z"},
		"C03 local date ahead of UTC":      {day3("09:00"), "2026-05-01T11:00:00Z", "Pacific/Kiritimati", "3d", "2026-05-04T19:00:00Z"},
		"C04 the day of the change":        {day3("09:00"), "2026-03-26T08:00:00Z", "Europe/Paris", "3d", "2026-03-29T07:00:00Z"},
		"C07 gap":                          {day3("02:30"), "2026-03-05T14:00:00Z", "America/New_York", "3d", "2026-03-08T07:00:00Z"},
		"C08 midnight gap, west":           {day3("00:00"), "2026-09-03T15:00:00Z", "America/Santiago", "3d", "2026-09-06T04:00:00Z"},
		"C08 gap, east":                    {day1("02:30"), "2026-03-28T10:00:00Z", "Europe/Paris", "1d", "2026-03-29T01:00:00Z"},
		"C11 overlap, east":                {day1("02:30"), "2026-10-24T10:00:00Z", "Europe/Paris", "1d", "2026-10-25T00:30:00Z"},
		"C11 overlap, west":                {day1("01:30"), "2026-10-31T12:00:00Z", "America/New_York", "1d", "2026-11-01T05:30:00Z"},
		"C12 Cairo, the day before":        {day3("09:00"), "2026-04-20T10:00:00Z", "Africa/Cairo", "3d", "2026-04-23T07:00:00Z"},
		"C12 Cairo, the day of the change": {day3("09:00"), "2026-04-21T10:00:00Z", "Africa/Cairo", "3d", "2026-04-24T06:00:00Z"},
		"C12 Cairo, midnight gap":          {day3("00:30"), "2026-04-21T10:00:00Z", "Africa/Cairo", "3d", "2026-04-23T22:00:00Z"},
		"C13 before the change":            {nine, "2026-10-04T07:00:00Z", "Europe/Paris", "14d", "2026-10-18T07:00:00Z"},
		"C13 on the day":                   {nine, "2026-10-04T07:00:00Z", "Europe/Paris", "21d", "2026-10-25T08:00:00Z"},
		"C13 behind it":                    {nine, "2026-10-04T07:00:00Z", "Europe/Paris", "28d", "2026-11-01T08:00:00Z"},
		"C21 first link":                   {weekly, "2026-05-01T10:00:00Z", "UTC", "3d", "2026-05-04T10:00:00Z"},
		"C21 refreshed link":               {weekly, "2026-05-06T10:00:00Z", "UTC", "3d", "2026-05-09T10:00:00Z"},
		"C23 on the instant of expiry":     {weekly, "2026-05-01T10:00:00Z", "UTC", "14d", "2026-05-15T10:00:00Z"},
		"C23 after it":                     {weekly, "2026-05-01T10:00:00Z", "UTC", "21d", "2026-05-22T10:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Origin{Anchor: instant(t, row.anchor), Zone: loadZone(t, row.zone)}
			want := Slot{row.slot, instant(t, row.due)}
			for s := range mustParse(t, row.def).Slots(o, o.Anchor) {
				if s.Name != want.Name {
					continue
				}
				if s != want {
					t.Fatalf("got %v, want %v", s, want)
				}
				return
			}
			t.Fatalf("no slot %s", want.Name)
		})
	}
}

// TestC03PollAroundDue: what is due is an instant, whatever date it is elsewhere.
func TestC03PollAroundDue(t *testing.T) {
	c := mustParse(t, Definition{After: []string{"3d"}, At: new("09:00")})
	o := Origin{Anchor: instant(t, "2026-05-01T11:00:00Z"), Zone: loadZone(t, "Pacific/Kiritimati")}
	if s, ok := c.Last(o, instant(t, "2026-05-04T18:59:30Z")); ok {
		t.Errorf("half a minute early: %v is due", s)
	}
	if s, ok := c.Last(o, instant(t, "2026-05-04T19:00:30Z")); !ok || s.Name != "3d" {
		t.Errorf("half a minute late: got %v, %v, want 3d", s, ok)
	}
}

// TestC15BoundaryIsDue: at the very microsecond a slot is due, one before it is not.
func TestC15BoundaryIsDue(t *testing.T) {
	c := mustParse(t, Definition{After: []string{"3d"}})
	o := Origin{Anchor: instant(t, "2026-05-01T07:00:00Z"), Zone: time.UTC}
	due := instant(t, "2026-05-04T07:00:00Z")
	if s, ok := c.Last(o, due); !ok || !s.Due.Equal(due) {
		t.Errorf("at due: got %v, %v", s, ok)
	}
	if s, ok := c.Next(o, due); ok {
		t.Errorf("after due: got %v, want none", s)
	}
	if s, ok := c.Last(o, due.Add(-time.Microsecond)); ok {
		t.Errorf("a microsecond early: got %v, want none", s)
	}
	if s, ok := c.Next(o, due.Add(-time.Microsecond)); !ok || !s.Due.Equal(due) {
		t.Errorf("after a microsecond early: got %v, %v", s, ok)
	}
}

// TestC17LateIsStillTheNewest: after days of silence the newest slot is found, not lost.
func TestC17LateIsStillTheNewest(t *testing.T) {
	c := mustParse(t, Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: new("7d")})
	o := Origin{Anchor: instant(t, "2026-05-01T07:00:00Z"), Zone: time.UTC}
	if s, ok := c.Last(o, instant(t, "2026-05-05T08:00:00Z")); !ok || s.Name != "3d" {
		t.Errorf("got %v, %v, want 3d", s, ok)
	}
	if s, ok := c.Last(o, instant(t, "2026-05-30T08:00:00Z")); !ok || s.Name != "28d" {
		t.Errorf("got %v, %v, want 28d", s, ok)
	}
}

// TestC20ChangedCadence: names stay what they were, and the new rule knows nothing of the old.
func TestC20ChangedCadence(t *testing.T) {
	c := mustParse(t, Definition{After: []string{"2d", "5d", "10d"}})
	o := Origin{Anchor: instant(t, "2026-05-01T00:00:00Z"), Zone: time.UTC}
	want := []Slot{{"5d", instant(t, "2026-05-06T00:00:00Z")}, {"10d", instant(t, "2026-05-11T00:00:00Z")}}
	got := take(c, o, instant(t, "2026-05-05T12:00:00Z"), 9)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestK01OffsetsAreNoDurations: days and weeks are taken; what time.ParseDuration would let
// through, or turn into nothing, is refused with key and value.
func TestK01OffsetsAreNoDurations(t *testing.T) {
	mustParse(t, Definition{After: []string{"3d", "7d", "14d"}})
	for _, after := range [][]string{{"3"}, {""}, {"0"}, {"-3d"}, {"3d", "3d"}, {"7d", "3d"}, {"1h30m"}, {"3 d"}, {"3D"}} {
		_, err := Parse("test", Definition{After: after})
		checkMistake(t, err, "after", after[len(after)-1])
	}
}
