//go:build chaos

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what was done.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func newTally() *tally { return &tally{count: map[string]int{}} }

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count[what]++
}

// Report says what was done and what came of it.
type Report struct {
	Seed       uint64
	Storm      time.Duration
	Healing    time.Duration  // how long it took until everything was settled
	Done       map[string]int // what was done, by what and to whom
	Ledger     map[string]int // rows by "state reason"
	Accepted   int
	Bodies     map[string]int // mails that the server saw, by their fate
	HandOffs   int
	LateTruths int // unknown outcomes that the worker itself put right
	Stalls     int // of the machine
	Violations []Violation
}

// Kinds counts the violations by kind.
func (r *Report) Kinds() map[string]int {
	kinds := map[string]int{}
	for _, v := range r.Violations {
		kinds[v.Kind]++
	}
	return kinds
}

// String writes the report for people.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, storm of %s, settled after %s\n", r.Seed, r.Storm, r.Healing.Round(time.Millisecond))
	list(&b, "done", r.Done)
	list(&b, "ledger", r.Ledger)
	list(&b, "bodies", r.Bodies)
	fmt.Fprintf(&b, "hand-offs %d, accepted %d, unknown put right by the worker %d, stalls of the machine %d\n",
		r.HandOffs, r.Accepted, r.LateTruths, r.Stalls)
	if len(r.Violations) == 0 {
		b.WriteString("no violations")
		return b.String()
	}
	list(&b, "VIOLATIONS", r.Kinds())
	const first = 3 // of each kind
	shown := map[string]int{}
	for _, v := range r.Violations {
		if shown[v.Kind]++; shown[v.Kind] <= first {
			fmt.Fprintf(&b, "- %s: %s\n", v.Kind, v.What)
		}
	}
	return b.String()
}

func list(b *strings.Builder, title string, counts map[string]int) {
	fmt.Fprintf(b, "%s:\n", title)
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "  %6d  %s\n", counts[key], key)
	}
}
