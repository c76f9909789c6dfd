//go:build chaos

package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// instant is so many seconds after the begin of a made-up run.
func instant(seconds float64) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// good is the evidence of a run of one request, one reminder of which was sent at second 4, as it
// should be. The request was completed at second 5.
func good() evidence {
	pending := state{status: "pending", address: "r.0@" + markAddress, linkCreated: instant(0), url: "u"}
	completed := pending
	completed.status = "completed"
	s := &subject{id: "r", cadence: "once", versions: []version{
		{state: pending, cause: "create", begin: instant(0), end: instant(0.1)},
		{state: completed, cause: "complete", begin: instant(5), end: instant(5.1)},
	}}
	key := keyOf("r", instant(0), "2s")
	first := move{slotKey: key, due: instant(2), state: "claimed", claim: "a", claimedBy: "w", begun: instant(3), at: instant(3)}
	second, third := first, first
	second.oldState, second.oldClaim, second.state = "claimed", "a", "sending"
	second.recipient, second.handedOff, second.begun, second.at = pending.address, instant(4), instant(4), instant(4.1)
	third.oldState, third.oldClaim, third.state, third.begun, third.at = "sending", "a", "sent", instant(4.5), instant(4.5)
	return evidence{
		subjects:  map[string]*subject{"r": s},
		mails:     []accepted{{slotKey: key, messageID: "m", recipient: pending.address, at: instant(4.3)}},
		moves:     []move{first, second, third},
		settledBy: instant(4.8),
		rows: []row{{
			slotKey: key, due: instant(2), state: "sent", claimedBy: "w", recipient: pending.address, messageID: "m",
			handedOff: instant(4), finished: instant(4.5),
		}},
		processes: []*process{{worker: "w", started: instant(0), ended: instant(9), killed: instant(8.9), status: -1}},
	}
}

// Each promise is broken once, and the judge has to see it and nothing else.
func TestJudgeSeesEachViolation(t *testing.T) {
	unknown := func(e *evidence, reason string) {
		e.rows[0].state, e.rows[0].reason = "unknown", reason
		e.moves[2].state, e.moves[2].reason = "unknown", reason
	}
	handOffAt := func(e *evidence, h, u float64) {
		e.moves[1].handedOff, e.moves[1].at = instant(h), instant(u)
	}
	tests := []struct {
		name  string
		spoil func(e *evidence)
		want  string // "" where it is no violation
	}{
		{"nothing", func(*evidence) {}, ""},
		{"accepted again", func(e *evidence) { e.mails = append(e.mails, e.mails[0]) }, kindTwice},
		{"accepted and not in the ledger", func(e *evidence) { e.rows, e.settledBy = nil, instant(1) }, kindLedger},
		{"accepted and deferred", func(e *evidence) { e.rows[0].state = "failed" }, kindLedger},
		{"accepted and unknown", func(e *evidence) { unknown(e, "worker_lost"); e.outages = []span{{from: instant(4), to: instant(4.2)}} }, ""},
		{"accepted under another Message-ID", func(e *evidence) { e.mails[0].messageID = "other" }, kindLedger},
		{"accepted for another recipient", func(e *evidence) { e.mails[0].recipient = "other" }, kindLedger},
		{"sent and not accepted", func(e *evidence) { e.mails = nil }, kindLedger},
		{"a mail of nobody", func(e *evidence) { e.strange = []string{"?"} }, kindStrange},
		{"handed off before the change ended", func(e *evidence) { handOffAt(e, 5.05, 5.2) }, ""},
		{"handed off after the change ended", func(e *evidence) { handOffAt(e, 5.2, 5.3) }, kindClosed},
		{"handed off before the request was reopened", func(e *evidence) {
			s := e.subjects["r"]
			s.versions = append(s.versions, version{state: s.versions[0].state, begin: instant(5.5), end: instant(5.6)})
			handOffAt(e, 5.2, 5.4)
		}, kindClosed},
		{"handed off perhaps after the request was reopened", func(e *evidence) {
			s := e.subjects["r"]
			s.versions = append(s.versions, version{state: s.versions[0].state, begin: instant(5.25), end: instant(5.6)})
			handOffAt(e, 5.2, 5.4)
		}, ""},
		{"handed off for an expired link", func(e *evidence) { e.subjects["r"].versions[0].expires = instant(4) }, kindClosed},
		{"handed off just before the expiry", func(e *evidence) { e.subjects["r"].versions[0].expires = instant(4.01) }, ""},
		{"handed off while paused", func(e *evidence) { e.subjects["r"].versions[0].pausedUntil = instant(4.01) }, kindClosed},
		{"handed off after opting out", func(e *evidence) { e.subjects["r"].versions[0].optedOut = true }, kindClosed},
		{"handed off for a revoked link", func(e *evidence) { e.subjects["r"].versions[0].revoked = true }, kindClosed},
		{"handed off for an old address", func(e *evidence) { e.subjects["r"].versions[0].address = "new" }, kindClosed},
		{"handed off for a replaced link", func(e *evidence) { e.subjects["r"].versions[0].linkCreated = instant(4.5) }, kindClosed},
		{"handed off for a suppressed address", func(e *evidence) {
			e.suppressed = map[string]time.Time{e.rows[0].recipient: instant(3.9)}
		}, kindClosed},
		{"handed off for no request", func(e *evidence) { e.subjects = nil }, kindClosed},
		{"unknown without cause", func(e *evidence) { unknown(e, "reply_lost") }, kindUnknown},
		{"unknown by silence", func(e *evidence) {
			unknown(e, "reply_lost")
			e.injuries = []injury{{silencing: true, recipient: e.rows[0].recipient, at: instant(4.2)}}
		}, ""},
		{"unknown, silence to somebody else", func(e *evidence) {
			unknown(e, "reply_lost")
			e.injuries = []injury{{silencing: true, recipient: "other", at: instant(4.2)}}
		}, kindUnknown},
		{"unknown by a stop", func(e *evidence) {
			unknown(e, "reply_lost")
			e.processes[0].stops = []span{{from: instant(4.1), to: instant(4.4)}}
		}, ""},
		{"worker lost without cause", func(e *evidence) { unknown(e, "worker_lost") }, kindUnknown},
		{"worker stopped, and killed before it could tell", func(e *evidence) {
			unknown(e, "worker_lost")
			e.processes[0].stops = []span{{from: instant(4.1), to: instant(5)}}
			e.processes[0].killed, e.processes[0].ended = instant(6), instant(6)
		}, ""},
		{"worker stopped, and had time to tell", func(e *evidence) {
			unknown(e, "worker_lost")
			e.processes[0].stops = []span{{from: instant(4.1), to: instant(5)}}
		}, kindUnknown},
		{"worker lost by a kill", func(e *evidence) {
			unknown(e, "worker_lost")
			e.processes[0].killed, e.processes[0].ended = instant(4.2), instant(4.2)
		}, ""},
		{"moved on from the end", func(e *evidence) {
			again := e.moves[2]
			again.oldState, again.state = "sent", "claimed"
			e.moves = append(e.moves, again)
		}, kindMove},
		{"changed hands without a claim", func(e *evidence) { e.moves[2].claim = "b" }, kindMove},
		{"skipped for no reason", func(e *evidence) {
			e.moves = append(e.moves, move{slotKey: keyOf("r", instant(0), "5s"), state: "skipped", reason: "paused", begun: instant(4), at: instant(4)})
		}, kindSkipped},
		{"skipped for a reason", func(e *evidence) {
			e.moves = append(e.moves, move{slotKey: keyOf("r", instant(0), "5s"), state: "skipped", reason: "request_closed", begun: instant(6), at: instant(6)})
		}, ""},
		{"still claimed", func(e *evidence) { e.rows[0].state, e.mails = "claimed", nil }, kindUnsettled},
		{"deferred for too long", func(e *evidence) { e.waiting = e.rows }, kindUnsettled},
		{"slot forgotten", func(e *evidence) { e.rows, e.mails = nil, nil }, kindUnsettled},
		{"too soon after another", func(e *evidence) {
			next := e.rows[0]
			next.slot, next.handedOff = "1s", instant(4.9)
			next.state, next.reason = "unknown", "reply_lost"
			e.rows, e.stalls = append(e.rows, next), []span{{from: instant(4), to: instant(5)}}
		}, kindLimits},
		{"replica died", func(e *evidence) { e.processes[0].killed = time.Time{} }, kindProcess},
		{"replica ended badly", func(e *evidence) {
			e.processes[0].killed, e.processes[0].terminated, e.processes[0].status = time.Time{}, instant(8), 1
		}, kindProcess},
		{"replica ended well", func(e *evidence) {
			e.processes[0].killed, e.processes[0].terminated, e.processes[0].status = time.Time{}, instant(8), 0
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := good()
			tt.spoil(&e)
			var kinds []string
			for _, v := range judge(e) {
				kinds = append(kinds, v.Kind)
			}
			kinds = slices.Compact(kinds)
			if got := strings.Join(kinds, ", "); got != tt.want {
				t.Errorf("got %q, want %q: %v", got, tt.want, judge(e))
			}
		})
	}
}

func TestMaximumOfMails(t *testing.T) {
	e := good()
	e.stalls = []span{{from: instant(0), to: instant(99)}}
	for i := range maxMails {
		next := e.rows[0]
		next.slot, next.state, next.reason = slotName(time.Duration(100+i)*time.Second), "unknown", "reply_lost"
		next.handedOff, next.finished = instant(float64(10*i+10)), instant(float64(10*i+11))
		e.rows = append(e.rows, next)
	}
	if found := judge(e); len(found) != 1 || found[0].Kind != kindLimits {
		t.Errorf("got %v, want the fifth mail of the link", found)
	}
}

func TestLogTells(t *testing.T) {
	clean := []byte("level=INFO msg=\"delivery ended\" request_id=c0-1 slot=3s\n")
	if found := searchLog("log", clean); len(found) != 0 {
		t.Errorf("a clean log tells %v", found)
	}
	for _, line := range []string{"to=c0-1.0@" + markAddress, "url=https://" + markLink + "/u/1", markPassword + "-smtp", "panic: nil"} {
		if found := searchLog("log", []byte("one line\n"+line+"\nanother\n")); len(found) != 1 || found[0].Kind != kindLog {
			t.Errorf("%q: got %v", line, found)
		}
	}
}

func TestEqualSeedsDrawEqualScripts(t *testing.T) {
	r := &replicas{}
	one := drawTrack(newDraw(1, "replica 0"), time.Hour, time.Second, r.choices())
	same := drawTrack(newDraw(1, "replica 0"), time.Hour, time.Second, r.choices())
	other := drawTrack(newDraw(2, "replica 0"), time.Hour, time.Second, r.choices())
	if len(one) == 0 || !slices.Equal(one, same) {
		t.Error("equal seeds draw different scripts")
	}
	if slices.Equal(one, other) {
		t.Error("different seeds draw equal scripts")
	}
}
