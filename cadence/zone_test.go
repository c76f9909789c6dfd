package cadence

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// reading returns what the clock of a location shows at t, as a civil second.
func reading(location *time.Location, t int64) int64 {
	at := time.Unix(t, 0).In(location)
	y, m, d := at.Date()
	return time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, time.UTC).Unix()
}

// scan finds by looking at every second that matters the first instant at which the clock
// reads c or later.
func scan(location *time.Location, c int64) int64 {
	ahead, behind := int64(-reach), int64(reach)
	for t := c - reach; t <= c+reach; t += 30 * 60 {
		ahead = max(ahead, reading(location, t)-t)
		behind = min(behind, reading(location, t)-t)
	}
	for t := c - ahead; t < c-behind; t += 60 {
		if reading(location, t) < c {
			continue
		}
		for reading(location, t-1) >= c {
			t--
		}
		return t
	}
	return c - behind
}

// exists reports whether the clock ever reads c.
func exists(location *time.Location, c int64) bool { return reading(location, scan(location, c)) == c }

// changes returns the instants at which the clock of a location is set between 2000 and 2100.
func changes(location *time.Location) []int64 {
	const days = 5 * daySeconds
	z := zone{location}
	var found []int64
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for low := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(); low < end; low += days {
		if z.offset(low) == z.offset(low+days) {
			continue
		}
		before, after := low, low+days
		for after-before > 1 {
			if mid := (before + after) / 2; z.offset(mid) == z.offset(low) {
				before = mid
			} else {
				after = mid
			}
		}
		found = append(found, after)
	}
	return found
}

// some picks about n elements spread over a slice, its first among them.
func some[T any](all []T, n int) []T {
	var picked []T
	for i := 0; i < len(all); i += len(all)/n + 1 {
		picked = append(picked, all[i])
	}
	return picked
}

// TestInstIsFirstReading compares inst with a scan, around changes in every zone.
func TestInstIsFirstReading(t *testing.T) {
	names, zones := allZones(t)
	checked := 0
	for _, name := range names {
		location := zones[name]
		for _, change := range some(changes(location), 3) {
			wall := reading(location, change)
			for _, minutes := range []int64{-24 * 60, -121, -90, -60, -30, -15, 0, 1, 29, 30, 60, 120} {
				c := wall + minutes*60
				if got, want := (zone{location}).inst(c), scan(location, c); got != want {
					t.Errorf("%s: clock reads %s first at %d, want %d", name, time.Unix(c, 0).UTC(), got, want)
				}
				checked++
			}
		}
	}
	t.Logf("%d readings in %d zones", checked, len(names))
	if checked < 5000 {
		t.Errorf("checked %d readings, want at least 5000", checked)
	}
}

// TestInstNeverFalls walks the minutes of the days around odd changes: half an hour, two
// hours, a missing day, midnight.
func TestInstNeverFalls(t *testing.T) {
	_, zones := allZones(t)
	for name, day := range map[string]string{
		"Australia/Lord_Howe": "2026-10-04", "Antarctica/Troll": "2026-03-29", "Pacific/Apia": "2011-12-30",
		"Africa/Cairo": "2026-04-24", "America/Havana": "2026-11-01", "Pacific/Chatham": "2027-04-04",
	} {
		z := zone{zones[name]}
		noon := instant(t, day+"T12:00:00Z").Unix()
		previous := z.inst(noon - 2*daySeconds)
		for c := noon - 2*daySeconds; c < noon+2*daySeconds; c += 60 {
			at := z.inst(c)
			if at < previous {
				t.Fatalf("%s: inst falls at %s", name, time.Unix(c, 0).UTC())
			}
			if z.wall(at) < c || z.wall(at-1) >= c {
				t.Fatalf("%s: %s is not the first instant that reads %s", name, time.Unix(at, 0).UTC(), time.Unix(c, 0).UTC())
			}
			previous = at
		}
	}
}

func TestLoadZoneTakesPlaces(t *testing.T) {
	names, _ := allZones(t)
	for _, name := range append(names, "UTC", "Etc/UTC", "Singapore") {
		if !strings.Contains(name, "/") && name != "UTC" && name != "Singapore" || strings.HasPrefix(name, "Etc/GMT") {
			continue
		}
		l, err := LoadZone(name)
		if err != nil {
			t.Error(err)
		} else if l.String() != name {
			t.Errorf("LoadZone(%q) = %v", name, l)
		}
	}
}

// TestK04LoadZoneRefuses has the names that time.LoadLocation takes on some host, and those
// people write.
func TestK04LoadZoneRefuses(t *testing.T) {
	for _, name := range []string{
		"", "Local", "EST", "MST", "CET", "GMT", "EST5EDT", "GMT+2", "UTC+2", "+02:00", "Etc/GMT+5", "Etc/GMT",
		"Europe/Paris ", " Europe/Paris", "Europe/Paris\n", "europe/paris", "Europe/paris", "EUROPE/PARIS", "utc", "Utc",
		"localtime", "posixrules", "posix/Europe/Paris", "right/Europe/Paris", "Factory", "../Europe/Paris",
		"/usr/share/zoneinfo/Europe/Paris", "Europe/../Europe/Paris", "Europe/", "Europe", "Europe/Pariss", "TZ=UTC",
	} {
		l, err := LoadZone(name)
		if err == nil {
			t.Errorf("LoadZone(%q) = %v, want it refused", name, l)
			continue
		}
		for _, part := range []string{"Europe/Paris, or UTC", strings.TrimSpace(name)} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("LoadZone(%q): error %q does not say %q", name, err, part)
			}
		}
	}
}

func TestLoadZoneIsCached(t *testing.T) {
	const callers = 8
	var loaded [callers]*time.Location
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { loaded[i], _ = LoadZone("America/Argentina/Ushuaia") })
	}
	wg.Wait()
	for _, l := range loaded {
		if l == nil || l != loaded[0] {
			t.Fatalf("callers got %p and %p, want one location", loaded[0], l)
		}
	}
}
