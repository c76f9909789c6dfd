package cadence

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// written is a definition as the vectors write it.
type written struct {
	After          []string `json:"after"`
	ThenEvery      *string  `json:"then_every"`
	Max            *int     `json:"max"`
	At             *string  `json:"at"`
	Days           []string `json:"days"`
	Holidays       []string `json:"holidays"`
	BeforeDeadline []string `json:"before_deadline"`
	FirstMail      bool     `json:"first_mail"`
	Cron           *string  `json:"cron"`
}

type vector struct {
	ID      string
	Note    string
	Anchor  time.Time
	Zone    string
	Cadence written
	Slots   []struct {
		Slot string
		Due  time.Time
	}
}

func (v vector) want() []Slot {
	var slots []Slot
	for _, s := range v.Slots {
		slots = append(slots, Slot{s.Slot, s.Due.UTC()})
	}
	return slots
}

func readVectors[T any](t testing.TB, path string) []T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", path)
	}
	return rows
}

// TestVectors holds with pinned zone data, and with that of the host and of Go for the vectors whose zone
// they know as it was when the values were found.
func TestVectors(t *testing.T) {
	_, embedded := allZones(t)
	vectors := readVectors[vector](t, "testdata/cadence.json")
	agree := map[string]int{"host": 0, "embedded": 0}
	for _, v := range vectors {
		pinned := loadZone(t, v.Zone)
		t.Run(v.ID, func(t *testing.T) { checkVector(t, v, pinned) })
		host, err := LoadZone(v.Zone)
		if err != nil {
			t.Fatal(err)
		}
		for source, edition := range map[string]*time.Location{"host": host, "embedded": embedded[v.Zone]} {
			if !sameClock(pinned, edition, v.Anchor.AddDate(0, 0, -7), v.Slots[len(v.Slots)-1].Due.AddDate(0, 0, 7)) {
				continue
			}
			agree[source]++
			t.Run(v.ID+"/"+source, func(t *testing.T) { checkVector(t, v, edition) })
		}
	}
	for source, n := range agree {
		if n < len(vectors)*3/4 {
			t.Errorf("only %d of %d vectors were tried with the zone data %s: it differs, or is not read as it is written", n, len(vectors), source)
		}
	}
}

func checkVector(t *testing.T, v vector, location *time.Location) {
	c := mustParse(t, Definition(v.Cadence))
	o := Origin{Anchor: v.Anchor, Zone: location}
	want := v.want()

	if got := take(c, o, v.Anchor, len(want)); !cmp.Equal(got, want) {
		t.Fatalf("%s: slots (-want +got):\n%s", v.Note, cmp.Diff(want, got))
	}
	for i, w := range want {
		if got, ok := c.Last(o, w.Due); !ok || got != w {
			t.Errorf("last slot until %s = %v, %v; want %v", w.Due, got, ok, w)
		}
		got, ok := c.Last(o, w.Due.Add(-time.Nanosecond))
		if i == 0 && ok {
			t.Errorf("last slot before the first = %v, want none", got)
		}
		if i > 0 && got != want[i-1] {
			t.Errorf("last slot before %s = %v, want %v", w.Due, got, want[i-1])
		}
	}
}

// TestRejects has one definition for every mistake; "unknown key" is the configuration's.
func TestRejects(t *testing.T) {
	type row struct {
		ID      string
		Cadence json.RawMessage
		Why     string
	}
	for _, r := range readVectors[row](t, "testdata/reject.json") {
		if r.Why == "unknown key" {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			var def written
			if err := json.Unmarshal(r.Cadence, &def); err != nil {
				t.Fatal(err)
			}
			_, err := Parse("test", Definition(def))
			var mistake *DefinitionError
			if !errors.As(err, &mistake) {
				t.Fatalf("%s: got error %v, want a DefinitionError", r.Cadence, err)
			}
			if !strings.Contains(mistake.Reason, r.Why) {
				t.Errorf("reason %q, want it to say %q", mistake.Reason, r.Why)
			}
			line := mistake.Error()
			if strings.Contains(line, "\n") || !strings.Contains(line, mistake.Key) {
				t.Errorf("error %q, want one line that names %q", line, mistake.Key)
			}
			t.Log(line)
		})
	}
}
