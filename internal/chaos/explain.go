//go:build chaos

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// unknowns looks for what was done that explains each unknown outcome.
func (j *judgement) unknowns() {
	for _, r := range j.rows {
		if r.state != "unknown" {
			continue
		}
		if r.reason == "worker_lost" && !j.workerLost(r) || r.reason == "reply_lost" && !j.replyLost(r) {
			j.about(kindUnknown, r.slotKey, "%s is unknown, %s, but nothing was done to it%s", r.slotKey, r.reason, j.life(r))
		}
	}
}

const (
	// telling is how long a worker that was held up may take to tell what it knows: commits may hang.
	telling = 2 * time.Second
	// parting is how long the last statement of a worker that is dead may wait for the server.
	parting = time.Second
)

// workerLost: the worker was killed between hand-off and outcome, or it was held up for longer than
// its lease and killed before it could tell, or the database was unwell at the hand-off, so that its
// COMMIT succeeded and its answer was lost.
func (j *judgement) workerLost(r row) bool {
	p := j.worker(r)
	if p == nil || p.killed.IsZero() {
		return during(j.outages, r.handedOff, r.finished)
	}
	silenced := p.killed.Before(r.finished.Add(telling)) || slices.ContainsFunc(p.stops, func(stop span) bool {
		return stop.overlaps(r.handedOff, r.finished) && p.killed.Before(stop.to.Add(telling))
	})
	return silenced || during(j.outages, r.handedOff, r.finished)
}

// life tells what was done to the worker of a row.
func (j *judgement) life(r row) string {
	p := j.worker(r)
	if p == nil {
		return "; its worker is not known"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n    worker %s started %s", p.worker, stamp(p.started))
	for _, stop := range p.stops {
		if stop.overlaps(r.handedOff.Add(-time.Minute), r.finished.Add(time.Minute)) {
			fmt.Fprintf(&text, ", stopped %s to %s", stamp(stop.from), stamp(stop.to))
		}
	}
	fmt.Fprintf(&text, ", killed %s, terminated %s, ended %s", stamp(p.killed), stamp(p.terminated), stamp(p.ended))
	return text.String()
}

// replyLost: the server did not answer in time, or nobody could read it, or nobody was there to.
func (j *judgement) replyLost(r row) bool {
	silenced := slices.ContainsFunc(j.injuries, func(in injury) bool {
		return in.silencing && in.recipient == r.recipient && in.at.After(r.handedOff) && in.at.Before(r.finished)
	})
	if silenced || during(j.resets, r.handedOff, r.finished) || during(j.stalls, r.handedOff, r.finished) {
		return true
	}
	p := j.worker(r)
	return p != nil && during(p.stops, r.handedOff, r.finished)
}

// worker finds the life of the replica that handed a row off.
func (j *judgement) worker(r row) *process {
	for _, p := range j.processes {
		if p.worker == r.claimedBy && p.started.Before(r.handedOff) && p.ended.Add(parting).After(r.handedOff) {
			return p
		}
	}
	return nil
}

func during(spans []span, from, to time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.overlaps(from, to) })
}

// settled checks that everything came to an end: what waited when it need not wait any more, and
// the slots that nobody looked at.
func (j *judgement) settled() {
	for _, r := range j.waiting {
		j.about(kindUnsettled, r.slotKey, "%s was still %s when everything had been well for long", r.slotKey, r.state)
	}
	for _, r := range j.rows {
		if !final(r.state) {
			j.about(kindUnsettled, r.slotKey, "%s is %s in the end", r.slotKey, r.state)
		}
	}
	for _, key := range missing(j.subjects, j.rows, j.settledBy) {
		j.about(kindUnsettled, key, "%s fell due and has no row", key)
	}
}

// missing lists the slots that were due at an instant, of requests that were open then, and have
// no row. Once a slot is skipped as max_reached, the later ones of the link need none.
func missing(subjects map[string]*subject, rows []row, at time.Time) []slotKey {
	have := map[slotKey]bool{}
	reached := map[slotKey]time.Time{} // by request and link: due of the slot that was one too many
	for _, r := range rows {
		have[r.slotKey] = true
		if r.reason == "max_reached" {
			reached[keyOf(r.request, r.link, "")] = r.due
		}
	}
	var keys []slotKey
	for _, s := range subjects {
		seen := s.visible(at, at)
		if len(seen) != 1 || !seen[0].open() {
			continue
		}
		created := seen[0].linkCreated
		over, bounded := reached[keyOf(s.id, created, "")]
		for _, offset := range slotOffsets(s.cadence, at.Sub(created)) {
			due := created.Truncate(time.Second).Add(offset)
			key := keyOf(s.id, created, slotName(offset))
			if due.After(at) || bounded && !due.Before(over) || have[key] {
				continue
			}
			keys = append(keys, key)
		}
	}
	return keys
}
