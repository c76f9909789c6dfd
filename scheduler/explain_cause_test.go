package scheduler

import "testing"

// TestCauses: nothing is told as the cause of what ended before it, or that concerned another address.
func TestCauses(t *testing.T) {
	const (
		suppressed = "  nudged.suppressions: an address in it is not mailed"
		nobody     = "  - who suppressed it is not known: the request had another address then, or nudged.suppressions was written by hand"
		adoption   = "  a slot due before nudged served this database is not sent, unless within limits.max_lateness 48h; one due before a person adopted the database never is"
	)
	act := func(when, action, address, why string) Event {
		return Event{At: at(when), Actor: "ann@desk", Action: action, Address: address, Why: why}
	}
	ended := func(reason Reason, address string) Reminder {
		r := taken(at("2026-05-08T12:00Z"), row("7d", "2026-05-08T10:00Z", StateSkipped, reason))
		r.Recipient = address
		return r
	}
	before := row("3d", "2026-05-04T10:00Z", StateSent, "")
	before.Recipient = "former@example.com"
	sent := []string{"3d on_time", "  cadence default: slot 3d, counted from the creation of the link"}
	ana := func(in *Input) { in.Request.RecipientEmail = "ana@example.com" }
	acts := []Event{
		act("2026-05-05T10:00Z", "suppress", "ana@example.com", "asked"), act("2026-05-06T10:00Z", "suppress", "former@example.com", "bounced"),
		act("2026-05-07T10:00Z", "suppress", "second@example.com", "bounced too"),
	}
	bounced := "  - 2026-05-06T10:00Z ann@desk suppressed the address: bounced"
	late := taken(at("2026-05-04T15:00Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
	late.HandedOffAt = at("2026-05-04T15:00Z")
	runFates(t, map[string]fateRow{
		"suppressed: the address of the row": {
			now: "2026-05-09T00:00Z", rows: []Reminder{before, ended(ReasonSuppressed, "second@example.com")}, in: ana, events: acts,
			want: append(sent[:2:2], "7d not_sent suppressed", suppressed, "  - 2026-05-07T10:00Z ann@desk suppressed the address: bounced too"),
		},
		"suppressed: the address of the row, by hand": {
			now: "2026-05-09T00:00Z", rows: []Reminder{before, ended(ReasonSuppressed, "second@example.com")}, in: ana, events: acts[:2],
			want: append(sent[:2:2], "7d not_sent suppressed", suppressed, nobody),
		},
		"suppressed: the address of the mail before": {
			now: "2026-05-09T00:00Z", rows: []Reminder{before, ended(ReasonSuppressed, "")}, in: ana, events: acts,
			want: append(sent[:2:2], "7d not_sent suppressed", suppressed, bounced),
		},
		"suppressed: the address now, of a slot that the next pass ends": {
			now: "2026-05-08T12:00Z", rows: []Reminder{before}, events: acts,
			in: func(in *Input) { ana(in); in.Suppressed = true },
			want: append(sent[:2:2], "7d not_sent suppressed", suppressed, "  - 2026-05-05T10:00Z ann@desk suppressed the address: asked",
				"  - the next pass records this"),
		},
		"before an adoption, and adopted anew since": {
			now: "2026-05-09T00:00Z", rows: []Reminder{before, ended(ReasonBeforeAdoption, "")},
			in:     func(in *Input) { in.AdoptedAt = at("2026-05-08T20:00Z") },
			events: []Event{act("2026-05-08T11:00Z", "adopt", "", "restored"), act("2026-05-08T20:00Z", "adopt", "", "restored again")},
			want:   append(sent[:2:2], "7d not_sent before_adoption", adoption, "  - 2026-05-08T11:00Z ann@desk adopted the database for: restored"),
		},
		"before the first adoption, and adopted anew since": {
			now: "2026-05-09T00:00Z", rows: []Reminder{before, ended(ReasonBeforeAdoption, "")},
			in:     func(in *Input) { in.AdoptedAt = at("2026-05-08T20:00Z") },
			events: []Event{act("2026-05-08T20:00Z", "adopt", "", "restored")},
			want: append(sent[:2:2], "7d not_sent before_adoption", adoption,
				"  - when nudged began to serve this database is not known: it was adopted again since"),
		},
		"late, and adopted since": {
			now: "2026-05-07T00:00Z", rows: []Reminder{late}, in: func(in *Input) { in.AdoptedAt = at("2026-05-06T00:00Z") },
			want: []string{
				"3d late", "  limits.max_lateness 48h: a slot that is found late goes out within it",
				"  - 2026-05-04T15:00Z first taken up, 5h after its due: before that nudged did not run or had no database, its mail server took nothing, or the request, its link or the configuration came later",
			},
		},
	})
}
