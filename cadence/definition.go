package cadence

import (
	"fmt"
	"strings"
)

// Definition is a cadence as the user wrote it; nil means that the key is absent.
type Definition struct {
	After          []string // offsets from the anchor: 90m, 36h, 3d, 2w, 5bd; empty and not nil is refused
	ThenEvery      *string  // the distance of the slots behind the last of After, or from the anchor
	Max            *int     // mails per link; at least 1
	At             *string  // HH:MM, local; absent: the anchor's own clock time
	Days           []string // mon tue wed thu fri sat sun; empty and not nil is refused
	Holidays       []string // dates 2006-01-02
	BeforeDeadline []string // days before the deadline: 2d, 1w, 0d; -1d is the day after it
	FirstMail      bool     // slot 0d, due at the anchor
	Cron           *string  // minute hour day-of-month month day-of-week, in the zone of the origin
}

// DefinitionError is one mistake in one definition.
type DefinitionError struct {
	Cadence string // name of the cadence
	Key     string // key as written in the configuration; empty: the definition as a whole
	Value   string // value as written
	Reason  string // what is wrong with it, and what is allowed
	Index   int    // element of a list key, from 0; -1 otherwise
}

// Error returns one line.
func (e *DefinitionError) Error() string {
	key := e.Key
	if key == "" {
		return fmt.Sprintf("cadence %q: %s", e.Cadence, e.Reason)
	}
	if e.Index >= 0 {
		key = fmt.Sprintf("%s[%d]", key, e.Index)
	}
	return fmt.Sprintf("cadence %q: %s: %s (got %q)", e.Cadence, key, e.Reason, e.Value)
}

// DefinitionErrors is every mistake in one definition, in the order of its keys.
type DefinitionErrors []*DefinitionError

// Error returns one line a mistake.
func (es DefinitionErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each mistake reachable for errors.As.
func (es DefinitionErrors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}
