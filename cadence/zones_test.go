package cadence

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// embeddedZones returns every zone of Go's own zone data, by name. It is the data that
// time/tzdata embeds, read past whatever the host has.
var embeddedZones = sync.OnceValues(func() (map[string]*time.Location, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	loaded := map[string]*time.Location{}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		if loaded[file.Name], err = time.LoadLocationFromTZData(file.Name, data); err != nil {
			return nil, err
		}
	}
	return loaded, archive.Close()
})

func allZones(t testing.TB) (names []string, zones map[string]*time.Location) {
	t.Helper()
	zones, err := embeddedZones()
	if err != nil {
		t.Fatalf("read Go's zone data: %v", err)
	}
	if len(zones) < 400 {
		t.Fatalf("Go's zone data has %d zones, want at least 400", len(zones))
	}
	for name := range zones {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, zones
}

// loadZone reads the zone from testdata/zoneinfo, the public-domain data of tzdata 2025c. Golden values hold
// with it whatever a government decides later, and whatever the host knows of that.
func loadZone(t testing.TB, name string) *time.Location {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "zoneinfo", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sameClock tells whether two editions of a zone show the same time from one instant to another.
func sameClock(a, b *time.Location, from, to time.Time) bool {
	for at := from; at.Before(to); at = at.Add(15 * time.Minute) {
		_, here := at.In(a).Zone()
		_, there := at.In(b).Zone()
		if here != there {
			return false
		}
	}
	return true
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func mustParse(t testing.TB, def Definition) *Cadence {
	t.Helper()
	c, err := Parse("test", def)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// take returns the first n slots due after the instant given.
func take(c *Cadence, o Origin, after time.Time, n int) []Slot {
	var slots []Slot
	for s := range c.Slots(o, after) {
		if len(slots) == n {
			break
		}
		slots = append(slots, s)
	}
	return slots
}
