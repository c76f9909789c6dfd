package scheduler

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudged/cadence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reporter is what testing.T and rapid.T have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const day = 24 * time.Hour

// at reads an instant, with or without seconds.
func at(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04Z07:00", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	panic("not an instant: " + text)
}

// instant writes what at reads; the zero time is the empty string.
func instant(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Truncate(time.Minute).Equal(t):
		return t.UTC().Format("2006-01-02T15:04Z07:00")
	default:
		return t.UTC().Format(time.RFC3339Nano)
	}
}

func parse(t reporter, name string, def cadence.Definition) *cadence.Cadence {
	t.Helper()
	c, err := cadence.Parse(name, def)
	if err != nil {
		t.Fatalf("cadence %s: %v", name, err)
	}
	return c
}

// weekly is the cadence that holds where a test does not say otherwise.
func weekly() cadence.Definition {
	return cadence.Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: new("7d")}
}

// newPolicy has the weekly cadence, the zone UTC and the limits of a fresh installation.
func newPolicy(t reporter) *Policy {
	t.Helper()
	return &Policy{
		Cadences:       map[string]*cadence.Cadence{"default": parse(t, "default", weekly())},
		DefaultCadence: "default",
		DefaultZone:    time.UTC,
		Limits: Limits{
			MaxLateness: 48 * time.Hour, MinGap: time.Hour, RetryFor: 24 * time.Hour,
			Backoff: Backoff{Initial: time.Minute, Max: time.Hour}, Retention: 400 * day,
		},
	}
}

// with adds a cadence to a policy, or puts another one in place.
func (p *Policy) with(t reporter, name string, def cadence.Definition) *Policy {
	t.Helper()
	p.Cadences[name] = parse(t, name, def)
	return p
}
