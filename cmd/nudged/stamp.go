package main

import (
	"encoding/json"
	"time"

	"nudged/scheduler"
)

// stamp is an instant as JSON has it: RFC 3339, which has the years 0 to 9999 and no more. What
// PostgreSQL holds beyond the years 1 to 9999 is "infinity" or "-infinity", as its own infinities are.
type stamp struct{ time.Time }

// MarshalJSON implements json.Marshaler. It never fails.
func (s stamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(s.write(time.UTC, time.RFC3339Nano))
}

// in is the instant as the clock of a zone shows it, with the offset.
func (s stamp) in(zone *time.Location) string { return s.write(zone, time.RFC3339) }

func (s stamp) write(zone *time.Location, layout string) string {
	local := s.In(zone)
	switch {
	case s.Equal(scheduler.Forever()), local.Year() > 9999:
		return "infinity"
	case s.Equal(scheduler.BeforeAll()), local.Year() < 1:
		return "-infinity"
	default:
		return local.Format(layout)
	}
}
