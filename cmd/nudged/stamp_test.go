package main

import (
	"encoding/json"
	"testing"
	"time"

	"nudged/scheduler"
)

func TestStamp(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, row := range []struct {
		at                time.Time
		marshalled, local string
	}{
		{time.Date(2026, 5, 4, 10, 0, 0, 123_000, time.UTC), "2026-05-04T10:00:00.000123Z", "2026-05-04T12:00:00+02:00"},
		{time.Date(2026, 5, 4, 10, 0, 0, 0, paris), "2026-05-04T08:00:00Z", "2026-05-04T10:00:00+02:00"},
		{scheduler.Forever(), "infinity", "infinity"},
		{scheduler.BeforeAll(), "-infinity", "-infinity"},
		{day(20000), "infinity", "infinity"},
		{day(10000).Add(-time.Minute), "9999-12-31T23:59:00Z", "infinity"}, // in Paris it is the year 10000
		{day(10000), "infinity", "infinity"},
		{day(1), "0001-01-01T00:00:00Z", "0001-01-01T00:09:21+00:09"},
		{day(1).Add(-time.Second), "-infinity", "0001-01-01T00:09:20+00:09"},
		{day(-3999), "-infinity", "-infinity"},
	} {
		got, err := json.Marshal(stamp{row.at})
		if err != nil || string(got) != `"`+row.marshalled+`"` {
			t.Errorf("%s is %s, %v, want %s", row.at, got, err, row.marshalled)
		}
		if local := (stamp{row.at}).in(paris); local != row.local {
			t.Errorf("%s is %s in Paris, want %s", row.at, local, row.local)
		}
	}
	if got, err := json.Marshal(explainedLink{CreatedAt: stamp{day(2026)}}); err != nil || string(got) != `{"created_at":"2026-01-01T00:00:00Z"}` {
		t.Errorf("what is not set is absent: %s, %v", got, err)
	}
}
