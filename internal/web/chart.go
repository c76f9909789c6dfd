package web

import (
	"fmt"
	"time"
)

// Measures of the chart, in its own units.
const (
	chartWidth  = 420
	chartHeight = 150
	chartTop    = 24 // room for the number above the highest bar
	chartBottom = 26 // room for the names of the days
	chartGap    = 10
)

// chart is a bar for each day to come.
type chart struct {
	Width, Height, Base int
	Bars                []bar
	Summary             string // in words
}

// bar is one day. Edges are in the chart's units.
type bar struct {
	X, Y, Width, Height int
	Middle, Label, Foot int
	Day, Date, Number   string
}

// newChart draws the days. A number that reached the limit is one to which more may be added.
func newChart(days []Day, limit int, zone *time.Location) chart {
	c := chart{Width: chartWidth, Height: chartHeight, Base: chartHeight - chartBottom, Summary: "Nothing is planned."}
	total, most, full := 0, 0, false
	for _, d := range days {
		total, most, full = total+d.Reminders, max(most, d.Reminders), full || d.Reminders >= limit
	}
	room := c.Base - chartTop
	for i, d := range days {
		step := chartWidth / len(days)
		b := bar{X: i*step + chartGap/2, Width: step - chartGap, Middle: i*step + step/2, Foot: chartHeight - 8}
		if d.Reminders > 0 {
			b.Height = max(2, d.Reminders*room/most)
		}
		b.Y, b.Label = c.Base-b.Height, c.Base-b.Height-6
		begins := d.Begins.In(zone)
		b.Day, b.Date, b.Number = begins.Format("Mon 2"), begins.Format("Monday, 2 January 2006"), plus(d.Reminders, d.Reminders >= limit)
		c.Bars = append(c.Bars, b)
	}
	if total > 0 {
		prefix := ""
		if full {
			prefix = "At least "
		}
		c.Summary = fmt.Sprintf("%s%s in the next %s.", prefix, count(total, "reminder"), count(len(days), "day"))
	}
	return c
}
