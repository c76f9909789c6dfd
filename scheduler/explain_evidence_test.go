package scheduler

import (
	"testing"
	"time"

	"nudged/cadence"
)

// TestEvidence: what is told as a cause was there when the slot ended, and concerned it.
func TestEvidence(t *testing.T) {
	const (
		paused     = "  requests.paused_until: a slot that falls due or waits in a pause is skipped, and not sent after it"
		suppressed = "  nudged.suppressions: an address in it is not mailed"
		changed    = "  - the row said so then, and has been changed since"
		expiry     = "  links.expires_at: nothing is sent at that instant or after it"
		revoked    = "  links.revoked_at: nothing is sent for a link that was withdrawn, or whose row is gone"
		opted      = "  requests.opted_out_at: nothing is sent once it is set"
		of33d      = "33d not_sent max_reached (earlier link)"
		nobody     = "  - who suppressed it is not known: the request had another address then, or nudged.suppressions was written by hand"
	)
	skipped := func(reason Reason) []Reminder {
		return []Reminder{taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, reason))}
	}
	act := func(when, action, detail, why string) Event {
		return Event{At: at(when), Actor: "ann@desk", Action: action, Detail: detail, Why: why}
	}
	of := func(e Event, address string) Event {
		e.Address = address
		return e
	}
	ana := func(in *Input) { in.Request.RecipientEmail = " Ana@example.com" }
	runFates(t, map[string]fateRow{
		"paused, resumed by a person and paused by the application": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonPaused),
			in: func(in *Input) { in.Request.PausedUntil, in.Request.PauseReason = Forever(), "asked by phone" },
			events: []Event{
				act("2026-05-02T10:00Z", "pause", "until infinity", "holiday"), act("2026-05-03T10:00Z", "resume", "", "is back"),
			},
			want: []string{"3d not_sent paused", paused, "  - the application paused the request until resumed: asked by phone"},
			says: "Slot 3d was not sent, and nothing is sent now: the request is paused until resumed (asked by phone).",
		},
		"paused by the application once the pause of a person was over": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonPaused),
			in:     func(in *Input) { in.Request.PausedUntil, in.Request.PauseReason = at("2026-05-06T00:00Z"), "holiday" },
			events: []Event{act("2026-05-02T10:00Z", "pause", "until 2026-05-03 12:00:00+02", "holiday")},
			want:   []string{"3d not_sent paused", paused, "  - the application paused the request until Wed 2026-05-06 00:00:00 +00:00: holiday"},
			says:   "Slot 3d was not sent, and nothing is sent now: the request is paused until Wed 2026-05-06 00:00:00 +00:00 (holiday); after that comes slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"paused by the application over the pause of a person": {
			now: "2026-05-04T11:00Z",
			in: func(in *Input) {
				in.Request.PausedUntil, in.Request.PauseReason = at("2026-05-06T00:00Z"), "asked by phone"
			},
			events: []Event{
				act("2026-05-02T10:00Z", "pause", "until infinity", "holiday"),
			},
			want: []string{
				"3d not_sent paused", paused, "  - the application paused the request until Wed 2026-05-06 00:00:00 +00:00: asked by phone",
				"  - the next pass records this",
			},
			says: "Slot 3d was not sent, and nothing is sent now: the request is paused until Wed 2026-05-06 00:00:00 +00:00 (asked by phone); after that comes slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"paused by a person, and by the application before or after": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonPaused),
			in: func(in *Input) {
				in.Request.PausedUntil, in.Request.PauseReason = at("2026-05-06T00:00Z"), "asked by phone"
			},
			events: []Event{act("2026-05-02T10:00Z", "pause", "until infinity", "holiday")},
			want: []string{
				"3d not_sent paused", paused, "  - 2026-05-02T10:00Z ann@desk paused the request until infinity: holiday",
				"  - the row says now: paused until Wed 2026-05-06 00:00:00 +00:00: asked by phone",
			},
		},
		"paused by the application, and later by a person": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonPaused),
			in:     func(in *Input) { in.Request.PausedUntil, in.Request.PauseReason = Forever(), "ill" },
			events: []Event{act("2026-05-04T20:00Z", "pause", "until infinity", "ill")},
			want:   []string{"3d not_sent paused", paused, "  - the application paused the request"},
			says:   "Slot 3d was not sent, and nothing is sent now: the request is paused until resumed (ann@desk: ill).",
		},
		"paused after it was due, while it waited": {
			now: "2026-05-04T10:20Z",
			rows: []Reminder{
				ofLink("2026-04-01T00:00Z", row("33d", "2026-05-04T09:30Z", StateSent, "")),
			},
			in:     func(in *Input) { in.Request.PausedUntil, in.Request.PauseReason = at("2026-05-04T10:30Z"), "a call" },
			events: []Event{act("2026-05-04T10:10Z", "pause", "until 2026-05-04 10:30:00+00", "a call")},
			want: []string{
				"33d on_time (earlier link)", "  slot 33d of the cadence of that time, counted from the link of that time",
				"3d not_sent paused", paused, "  - 2026-05-04T10:10Z ann@desk paused the request until 2026-05-04 10:30:00+00: a call",
				"  - the next pass records this",
			},
		},

		"suppressed: the address of another time": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonSuppressed), in: ana,
			events: []Event{
				of(act("2026-05-02T10:00Z", "suppress", "", "asked"), "ana@example.com"),
				of(act("2026-05-03T10:00Z", "suppress", "", "another"), "former@example.com"),
			},
			want: []string{"3d not_sent suppressed", suppressed, "  - 2026-05-02T10:00Z ann@desk suppressed the address: asked"},
		},
		"suppressed: another address, which the request had then": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonSuppressed), in: ana,
			events: []Event{
				of(act("2026-05-02T10:00Z", "suppress", "", "asked"), "ana@example.com"),
				of(act("2026-05-03T10:00Z", "unsuppress", "", "asked back"), "ana@example.com"),
				of(act("2026-05-03T10:00Z", "suppress", "", "another"), "former@example.com"),
			},
			want: []string{"3d not_sent suppressed", suppressed, nobody},
		},
		"suppressed by hand now": {
			now: "2026-05-04T11:00Z",
			in: func(in *Input) {
				ana(in)
				in.Suppressed = true
			},
			events: []Event{of(act("2026-05-03T10:00Z", "suppress", "", "another"), "former@example.com")},
			want:   []string{"3d not_sent suppressed", suppressed, nobody, "  - the next pass records this"},
			says:   "Slot 3d was not sent, and nothing is sent now: the address is suppressed.",
		},

		"expired, and extended since": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonLinkExpired), in: func(in *Input) { in.Link.ExpiresAt = at("2026-06-04T10:00Z") },
			want: []string{"3d not_sent link_expired", expiry, changed},
		},
		"expired, and without an end since": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonLinkExpired), want: []string{"3d not_sent link_expired", expiry, changed},
		},
		"expired, and shown as it was": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonLinkExpired), in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-04T10:00Z") },
			want: []string{"3d not_sent link_expired", expiry, "  - 2026-05-04T10:00Z the link expires"},
		},
		"expired, and replaced since": {
			now: "2026-05-02T00:00Z", in: func(in *Input) { in.Link.ExpiresAt = at("2026-04-01T00:00Z") },
			rows: []Reminder{ofLink("2026-03-01T00:00Z", taken(at("2026-04-30T00:00Z"), row("60d", "2026-04-30T00:00Z", StateSkipped, ReasonLinkExpired)))},
			want: []string{"60d not_sent link_expired (earlier link)", expiry, "  - the link of that time said so, and has been replaced since"},
		},
		"opted out, in again and out again": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonOptedOut), in: func(in *Input) { in.Request.OptedOutAt = at("2026-05-04T20:00Z") },
			want: []string{"3d not_sent opted_out", opted, changed},
		},
		"opted out, and in again": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonOptedOut), want: []string{"3d not_sent opted_out", opted, changed},
		},
		"opted out by an instant to come": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonOptedOut), in: func(in *Input) { in.Request.OptedOutAt = at("2026-06-04T20:00Z") },
			want: []string{"3d not_sent opted_out", opted, "  - the recipient opted out, says the row: Thu 2026-06-04 20:00:00 +00:00"},
		},
		"withdrawn, and given again": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonLinkRevoked), want: []string{"3d not_sent link_revoked", revoked, changed},
		},
		"withdrawn again": {
			now: "2026-05-05T00:00Z", rows: skipped(ReasonLinkRevoked), in: func(in *Input) { in.Link.RevokedAt = at("2026-05-04T20:00Z") },
			want: []string{"3d not_sent link_revoked", revoked, changed},
		},

		"the maximum of an earlier link": {
			now: "2026-05-04T09:00Z", p: func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"1d", "3d"}, Max: new(2)}) },
			rows: []Reminder{
				ofLink("2026-03-27T10:00Z", row("3d", "2026-03-30T10:00Z", StateSent, "")),
				ofLink("2026-03-27T10:00Z", row("7d", "2026-04-03T10:00Z", StateUnknown, ReasonReplyLost)),
				ofLink("2026-03-27T10:00Z", taken(at("2026-04-29T10:00Z"), row("33d", "2026-04-29T10:00Z", StateSkipped, ReasonMaxReached))),
				row("1d", "2026-05-02T10:00Z", StateSent, ""),
			},
			want: []string{
				"3d on_time (earlier link)", "  slot 3d of the cadence of that time, counted from the link of that time",
				"7d unknown reply_lost (earlier link)", "  a mail that may have been accepted is never sent again by itself: a person settles it",
				of33d, "  max of the cadence of that time: so many mails for one link, unknown ones included",
				"  - 2 mails went out for this link, or may have",
				"1d on_time", "  cadence default: slot 1d, counted from the creation of the link",
			},
		},
		"a maximum that was raised since": {
			now: "2026-05-09T09:00Z", p: func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"3d", "7d"}, Max: new(5)}) },
			rows: []Reminder{
				row("3d", "2026-05-04T10:00Z", StateSent, ""),
				taken(at("2026-05-08T10:00Z"), row("7d", "2026-05-08T10:00Z", StateSkipped, ReasonMaxReached)),
			},
			want: []string{
				"3d on_time", "  cadence default: slot 3d, counted from the creation of the link",
				"7d not_sent max_reached", "  max of the cadence of that time: so many mails for one link, unknown ones included",
				"  - 1 mail went out for this link, or may have",
			},
		},

		"superseded by one that waits": {
			now: "2026-05-08T10:20Z",
			rows: []Reminder{
				ofLink("2026-04-01T00:00Z", row("37d", "2026-05-08T09:30Z", StateSent, "")),
				taken(at("2026-05-08T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonSuperseded)),
			},
			want: []string{
				"37d on_time (earlier link)", "  slot 37d of the cadence of that time, counted from the link of that time",
				"3d not_sent superseded", "  of several slots that are due at once only the newest is sent", "  - 2026-05-08T10:00Z slot 7d was due as well",
				"7d waits", "  limits.min_gap 1h between two mails of one request", "  - 2026-05-08T09:30Z slot 37d had gone out",
				"  - 2026-05-08T10:30Z it goes out at the first pass after this",
			},
		},
		"superseded by one that waited, with a newer one since": {
			now: "2026-05-09T10:20Z", p: func(p *Policy) {
				p.Limits.MinGap = 48 * time.Hour
				p.with(t, "default", cadence.Definition{After: []string{"3d", "7d", "8d"}})
			},
			rows: []Reminder{
				ofLink("2026-04-01T00:00Z", row("37d", "2026-05-08T09:30Z", StateSent, "")),
				taken(at("2026-05-08T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonSuperseded)),
			},
			want: []string{
				"37d on_time (earlier link)", "  slot 37d of the cadence of that time, counted from the link of that time",
				"3d not_sent superseded", "  of several slots that are due at once only the newest is sent", "  - 2026-05-08T10:00Z slot 7d was due as well",
				"7d not_sent superseded", "  of several slots that are due at once only the newest is sent", "  - 2026-05-09T10:00Z slot 8d was due as well",
				"  - the next pass records this",
				"8d waits", "  limits.min_gap 48h between two mails of one request", "  - 2026-05-08T09:30Z slot 37d had gone out",
				"  - 2026-05-10T09:30Z it goes out at the first pass after this",
			},
		},
		"out of tries at the next pass": {
			now: "2026-05-05T10:30Z", rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-05T11:00Z")},
			want: []string{
				"3d failed retries_exhausted", "  limits.retry_for 24h: a slot is tried for so long, and never once a newer one is due",
				"  - the next pass records this",
			},
			says: "Slot 3d was not sent: its time for retries was over; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"unknown at the next pass": {
			now: "2026-05-05T06:00Z", rows: []Reminder{doubtedAndDeferred("3d", "2026-05-04T10:00Z", "2026-05-05T07:00Z")},
			p: func(p *Policy) { p.RepeatWithin = 20 * time.Hour }, in: func(in *Input) { in.Request.RecipientEmail = "ana@example.com" },
			want: []string{
				"3d unknown reply_lost", "  smtp.idempotency_window 20h: the latest slot is repeated for so long, to the same address; after that a person settles it",
				"  - 2026-05-04T10:00Z handed off before, and may have been accepted then", "  - the next pass records this",
			},
			says: "Slot 3d may have gone out, Mon 2026-05-04 11:00:00 +00:00, and a person has to settle it; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"closed, and opted out": {
			now: "2026-05-05T00:00Z",
			in:  func(in *Input) { in.Request.Status, in.Request.OptedOutAt = "completed", at("2026-05-03T00:00Z") },
			want: []string{
				"3d not_sent request_closed", "  requests.status: only pending and pending_resubmission are reminded",
				`  - the status is "completed" now; when it changed, the application knows`,
			},
		},
		"closed too long ago for a slot to go out": {
			now: "2026-05-06T11:00Z", in: func(in *Input) { in.Request.Status = "completed" },
			want: []string{
				"3d not_sent request_closed", "  requests.status: only pending and pending_resubmission are reminded",
				`  - the status is "completed" now; when it changed, the application knows`,
			},
		},
		"closed with several due": {
			now: "2026-05-08T11:00Z", in: func(in *Input) { in.Request.Status = "completed" },
			want: []string{
				"3d not_sent request_closed", "  requests.status: only pending and pending_resubmission are reminded",
				`  - the status is "completed" now; when it changed, the application knows`,
				"7d not_sent request_closed", "  requests.status: only pending and pending_resubmission are reminded",
				`  - the status is "completed" now; when it changed, the application knows`,
				"  - 2026-05-10T10:00Z if the request is opened again by then, and no newer slot is due, it still goes out",
			},
			says: `Slot 7d is not sent while the request is "completed": only pending and pending_resubmission are reminded.`,
		},
	})
}

func TestUntil(t *testing.T) {
	for detail, want := range map[string]time.Time{
		"until infinity": Forever(), "until 2026-05-03 12:00:00+02": at("2026-05-03T10:00Z"), "until 2026-05-03 12:00:00.5-05:30": at("2026-05-03T17:30Z").Add(500 * time.Millisecond),
		"until 03.05.2026 12:00:00 CEST": {}, "": {},
	} {
		if got, ok := (Event{Detail: detail}).until(); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%q: %v %v, want %v", detail, got, ok, want)
		}
	}
}

// Told says what holds now of a slot that was never decided about.
func TestTold(t *testing.T) {
	in := Input{
		Now: at("2026-05-05T00:00Z"), AdoptedAt: at("2020-01-01T00:00Z"), RequestID: "r",
		Request: &Request{ID: "r", Status: "completed"}, Link: &Link{CreatedAt: created},
	}
	p := newPolicy(t)
	if got := p.Explain(in, nil, 3).Slots[0].Told(); got != `is not sent while the request is "completed"` {
		t.Error(got)
	}
	in.Reminders = []Reminder{row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonRequestClosed)}
	if got := p.Explain(in, nil, 3).Slots[0].Told(); got != "was not sent: the request was no longer open" {
		t.Error(got)
	}
	in.Reminders = []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")}
	if got := p.Explain(in, nil, 3).Slots[0].Told(); got != "went out on time" {
		t.Error(got)
	}
}
