package cadence

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones load on a host without zone files too; files of the host win over this copy
)

const (
	// reach is more than any clock has ever been away from UTC, so the clock reads c
	// somewhere within [c-reach, c+reach].
	reach = 16 * 60 * 60
	// stride is less than the distance between any two changes of one clock.
	stride = reach / 6
)

// zone turns civil time into instants and back. Instants are Unix seconds; civil time is
// the Unix second at which a clock set to UTC would read it.
type zone struct{ location *time.Location }

// offset returns the seconds by which the clock is ahead of UTC at t.
func (z zone) offset(t int64) int64 {
	_, seconds := time.Unix(t, 0).In(z.location).Zone()
	return int64(seconds)
}

// wall returns what the clock reads at t.
func (z zone) wall(t int64) int64 { return t + z.offset(t) }

// inst returns the first instant at which the clock reads c or later: of a reading that
// occurs twice the first, of one that is skipped the change that skips it. It never falls
// as c grows. time.Date promises neither, and picks another side west of Greenwich than
// east of it.
func (z zone) inst(c int64) int64 {
	const never = math.MaxInt64
	var first, reached, tried int64 = never, never, never
	for t := c - reach; t <= c+reach; t += stride {
		offset := z.offset(t)
		if t+offset >= c {
			reached = min(reached, t)
		}
		// A clock set to this offset reads c at that instant, if it is set to it then.
		if at := c - offset; offset != tried && z.offset(at) == offset {
			first = min(first, at)
		}
		tried = offset
	}
	if first == never {
		return z.skip(c, reached-stride, reached)
	}
	return first
}

// skip returns the change between low and high at which the clock passes over c.
func (z zone) skip(c, low, high int64) int64 {
	for high-low > 1 {
		if mid := low + (high-low)/2; z.wall(mid) >= c {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// place is the shape of a zone named after a place: Europe/Paris, America/Argentina/Ushuaia,
// or a single word such as Singapore. Abbreviations, offsets, blanks and the files localtime,
// posix/… and right/… do not have it.
var place = regexp.MustCompile(`^[A-Z][a-z]+$|^[A-Z][A-Za-z]+(/[A-Z][A-Za-z_-]+)+$`)

// zones are the loaded ones by name, *time.Location each. Only names that load are kept, so it is bounded.
var zones sync.Map //nolint:gochecknoglobals // a cache of what stays as it is while the process lives

// LoadZone returns the IANA time zone of that name. It refuses what time.LoadLocation takes
// and nobody means: the empty name, Local, abbreviations (EST has no summer time) and fixed
// offsets. The error names the zone and says what is allowed. It is safe for concurrent use
// and returns the same pointer for the same name, whatever becomes of the zone data it was read from.
func LoadZone(name string) (*time.Location, error) {
	if l, ok := zones.Load(name); ok {
		return l.(*time.Location), nil
	}
	const want = "want an IANA name such as Europe/Paris, or UTC"
	named := place.MatchString(name) && name != "Local" && name != "Factory" && !strings.HasPrefix(name, "Etc/GMT")
	if name != "UTC" && !named {
		return nil, fmt.Errorf("load time zone %q: an abbreviation, a fixed offset or misspelled; %s", name, want)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load time zone %q: %w; %s", name, err, want)
	}
	kept, _ := zones.LoadOrStore(name, l)
	return kept.(*time.Location), nil
}
