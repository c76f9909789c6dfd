package cadence

import (
	"testing"
	"time"
)

// benchmarked are the kinds of cadence whose cost differs.
var benchmarked = map[string]Definition{
	"days":     {After: []string{"3d", "7d", "14d"}, ThenEvery: new("7d"), At: new("09:00")},
	"elapsed":  {After: []string{"36h"}, ThenEvery: new("90m")},
	"rolled":   {After: []string{"3d", "7d", "14d"}, ThenEvery: new("1d"), At: new("09:00"), Days: workweek, Holidays: christmases(100)},
	"business": {After: []string{"2bd"}, ThenEvery: new("1bd"), At: new("09:00"), Holidays: christmases(100)},
	"deadline": {After: []string{"3d"}, ThenEvery: new("7d"), BeforeDeadline: []string{"7d", "2d", "-1d"}, FirstMail: true},
	"weekdays": {Cron: new("0 9 * * MON-FRI")},
	"96 a day": {Cron: new("*/15 * * * *")},
	"leap day": {Cron: new("30 2 29 2 *")},
}

var workweek = []string{"mon", "tue", "wed", "thu", "fri"}

func christmases(years int) []string {
	var dates []string
	for year := range years {
		dates = append(dates, Date{2026 + year, time.December, 25}.String())
	}
	return dates
}

// BenchmarkNext fails where a slot costs more than its budget.
func BenchmarkNext(b *testing.B) {
	budgets := map[string]time.Duration{"ordinary": 20 * time.Microsecond, "at a change": 20 * time.Microsecond, "century": 200 * time.Microsecond}
	o := Origin{
		Anchor:   time.Date(2026, 3, 16, 10, 0, 0, 0, time.UTC),
		Zone:     loadZone(b, "Europe/Paris"),
		Deadline: Date{2026, time.April, 20},
	}
	for name, def := range benchmarked {
		c := mustParse(b, def)
		for distance, after := range map[string]time.Time{
			"ordinary":    o.Anchor.AddDate(0, 0, 20),
			"century":     o.Anchor.AddDate(100, 0, 0),
			"at a change": time.Date(2026, 10, 24, 23, 0, 0, 0, time.UTC),
		} {
			b.Run(name+"/"+distance, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.Next(o, after)
				}
				if each := b.Elapsed() / time.Duration(b.N); b.N > 100 && each > budgets[distance] {
					b.Errorf("%s a slot, want at most %s", each, budgets[distance])
				}
			})
		}
	}
}

func BenchmarkLast(b *testing.B) {
	o := Origin{Anchor: time.Date(2026, 3, 16, 10, 0, 0, 0, time.UTC), Zone: loadZone(b, "Europe/Paris")}
	for name, def := range benchmarked {
		c := mustParse(b, def)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Last(o, o.Anchor.AddDate(100, 0, 0))
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, def := range benchmarked {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse(name, def); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
