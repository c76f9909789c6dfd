//go:build chaos

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of violations: the promises of the package comment.
const (
	kindTwice     = "accepted twice"
	kindLedger    = "ledger and mail server disagree"
	kindClosed    = "handed off for a closed request"
	kindUnsettled = "slot without an end"
	kindSkipped   = "skipped for a reason that did not hold"
	kindUnknown   = "unknown for no reason"
	kindMove      = "move that the state machine does not have"
	kindLimits    = "too many mails or too soon"
	kindLog       = "log tells too much"
	kindProcess   = "replica ended by itself"
	kindStrange   = "mail that nobody asked for"
)

// Violation is one broken promise.
type Violation struct {
	Kind string
	What string // in one sentence, with what the evidence says about it below
}

// evidence is all that is known about a run when it is over. The judge reads nothing else.
type evidence struct {
	subjects   map[string]*subject
	suppressed map[string]time.Time // addresses, and by when that was surely committed
	mails      []accepted
	strange    []string // accepted mails that no slot can be found for
	rows       []row
	moves      []move
	settledBy  time.Time // every slot due by then had all the time that it needs
	waiting    []row     // rows that were not final in spite of it
	injuries   []injury
	resets     []span // of all connections of the mail server
	outages    []span // of the database
	stalls     []span // of the machine
	processes  []*process
}

// judge returns every violation.
func judge(e evidence) []Violation {
	j := &judgement{evidence: e, byKey: map[slotKey]row{}, history: map[slotKey][]move{}, received: map[slotKey][]accepted{}}
	for _, r := range e.rows {
		j.byKey[r.slotKey] = r
	}
	for _, m := range e.moves {
		j.history[m.slotKey] = append(j.history[m.slotKey], m)
	}
	for _, m := range e.mails {
		j.received[m.slotKey] = append(j.received[m.slotKey], m)
	}
	for _, s := range e.strange {
		j.add(kindStrange, "%s", s)
	}
	j.mails()
	j.rowsOf()
	j.handOffs()
	j.skips()
	j.unknowns()
	j.transitions()
	j.settled()
	j.limits()
	j.ends()
	return j.found
}

// judgement is the judge at work.
type judgement struct {
	evidence

	byKey    map[slotKey]row
	history  map[slotKey][]move
	received map[slotKey][]accepted
	found    []Violation
}

func (j *judgement) add(kind, format string, args ...any) {
	j.found = append(j.found, Violation{Kind: kind, What: fmt.Sprintf(format, args...)})
}

// about adds a violation of one slot together with all that is known about it.
func (j *judgement) about(kind string, key slotKey, format string, args ...any) {
	var what strings.Builder
	fmt.Fprintf(&what, format, args...)
	if r, exists := j.byKey[key]; exists {
		fmt.Fprintf(&what, "\n    %s", r)
	}
	for _, m := range j.received[key] {
		fmt.Fprintf(&what, "\n    %s", m)
	}
	for _, m := range j.history[key] {
		fmt.Fprintf(&what, "\n    history %s", m)
	}
	if s, known := j.subjects[key.request]; known {
		for _, v := range s.versions {
			fmt.Fprintf(&what, "\n    application %s to %s: %s", stamp(v.begin), stamp(v.end), v.cause)
		}
	}
	j.found = append(j.found, Violation{Kind: kind, What: what.String()})
}

// mails holds what was accepted against the ledger.
func (j *judgement) mails() {
	byID := map[string]slotKey{}
	for _, m := range j.evidence.mails {
		if other, taken := byID[m.messageID]; taken && other != m.slotKey {
			j.about(kindLedger, m.slotKey, "the Message-ID of %s is that of %s", m.slotKey, other)
		}
		byID[m.messageID] = m.slotKey
		r, exists := j.byKey[m.slotKey]
		switch {
		case !exists:
			j.about(kindLedger, m.slotKey, "%s was accepted, the ledger has no such row", m.slotKey)
		case r.state != "sent" && r.state != "unknown":
			j.about(kindLedger, m.slotKey, "%s was accepted, the ledger says %s", m.slotKey, r.state)
		case r.messageID != m.messageID || r.recipient != m.recipient:
			j.about(kindLedger, m.slotKey, "%s was accepted as another mail than the ledger says", m.slotKey)
		}
	}
	for key, all := range j.received {
		if len(all) > 1 {
			j.about(kindTwice, key, "%s was accepted %d times", key, len(all))
		}
	}
}

// rowsOf holds the ledger against what was accepted.
func (j *judgement) rowsOf() {
	for _, r := range j.rows {
		if r.state == "sent" && len(j.received[r.slotKey]) == 0 {
			j.about(kindLedger, r.slotKey, "%s is sent, the server accepted no such mail", r.slotKey)
		}
	}
}

// handOffs applies the rule for closed requests to every hand-off.
func (j *judgement) handOffs() {
	for _, m := range j.moves {
		if m.state != "sending" {
			continue
		}
		s, known := j.subjects[m.request]
		if !known {
			j.about(kindClosed, m.slotKey, "%s was handed off, the application never wrote that request", m.slotKey)
			continue
		}
		if end, yes := j.suppressed[m.recipient]; yes && end.Before(m.handedOff) {
			j.about(kindClosed, m.slotKey, "%s was handed off at %s, the address was suppressed by %s",
				m.slotKey, stamp(m.handedOff), stamp(end))
		}
		var reasons []string
		open := false
		for _, v := range s.visible(m.handedOff, m.at) {
			reason := v.closedAt(m.handedOff, m.link, m.recipient)
			open = open || reason == ""
			reasons = append(reasons, fmt.Sprintf("%s (%s, committed by %s)", reason, v.cause, stamp(v.end)))
		}
		if !open {
			j.about(kindClosed, m.slotKey, "%s was handed off at %s in spite of %s",
				m.slotKey, stamp(m.handedOff), strings.Join(reasons, " and "))
		}
	}
}

// skips holds the reasons of skipped slots against what the application did.
func (j *judgement) skips() {
	for _, m := range j.moves {
		s, known := j.subjects[m.request]
		if m.state != "skipped" || !known {
			continue
		}
		justified := slices.ContainsFunc(s.visible(m.begun, m.at), func(v version) bool {
			return v.justifies(m.reason, m.begun, m.link, m.due)
		})
		if !justified {
			j.about(kindSkipped, m.slotKey, "%s was skipped as %s, which it was not", m.slotKey, m.reason)
		}
	}
}

// transitions holds the history against the state machine.
func (j *judgement) transitions() {
	allowed := map[string][]string{
		"":         {"claimed", "skipped"},
		"claimed":  {"sending", "skipped", "deferred", "failed"},
		"sending":  {"sending", "skipped", "deferred", "failed", "sent", "unknown"},
		"deferred": {"claimed", "skipped", "failed"},
		"unknown":  {"unknown", "sent", "deferred", "failed"}, // by the worker that knows better
	}
	for _, m := range j.moves {
		switch {
		case !slices.Contains(allowed[m.oldState], m.state):
			j.about(kindMove, m.slotKey, "%s went from %q to %q", m.slotKey, m.oldState, m.state)
		case m.oldState != "" && m.claim != m.oldClaim && m.state != "claimed":
			j.about(kindMove, m.slotKey, "%s changed hands without a claim", m.slotKey)
		}
	}
}

// limits counts the mails of each link and measures the gaps between those of each request.
func (j *judgement) limits() {
	type link struct {
		request string
		created time.Time
	}
	count := map[link]int{}
	last := map[string]row{}
	rows := slices.SortedFunc(slices.Values(j.rows), func(a, b row) int { return a.handedOff.Compare(b.handedOff) })
	for _, r := range rows {
		if r.state != "sent" && r.state != "unknown" {
			continue
		}
		if before, mailed := last[r.request]; mailed && r.handedOff.Sub(before.handedOff) < minGap {
			j.about(kindLimits, r.slotKey, "%s was handed off %s after %s", r.slotKey, r.handedOff.Sub(before.handedOff), before.slotKey)
		}
		last[r.request] = r
		l := link{r.request, r.link}
		if count[l]++; count[l] == maxMails+1 {
			j.about(kindLimits, r.slotKey, "%s is mail %d of its link", r.slotKey, count[l])
		}
	}
}

// ends checks that replicas ended by our signals only, and well where they could.
func (j *judgement) ends() {
	for _, p := range j.processes {
		switch {
		case !p.killed.IsZero():
		case p.terminated.IsZero() || p.ended.Before(p.terminated):
			j.add(kindProcess, "replica %s ended at %s with status %d, last words:\n%s", p.worker, stamp(p.ended), p.status, p.lastWords)
		case p.status != 0:
			j.add(kindProcess, "replica %s ended on SIGTERM at %s with status %d, last words:\n%s", p.worker, stamp(p.ended), p.status, p.lastWords)
		}
	}
}
