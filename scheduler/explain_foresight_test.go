package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nudged/cadence"
)

// TestForesight: what waits in vain is not promised, and what is said to come next comes.
func TestForesight(t *testing.T) {
	crowded := func(p *Policy) {
		p.with(t, "default", cadence.Definition{After: []string{"1d", "2d", "3d", "74h", "7d"}})
		p.Limits.MinGap = 30 * time.Hour
	}
	const (
		sent    = "Slot 2d went out 4h late, Sun 2026-05-03 14:00:00 +00:00; "
		gap     = "limits.min_gap 30h between two mails of one request"
		waiting = sent + "slot 3d is due since Mon 2026-05-04 10:00:00 +00:00, waits for " + gap + ", and is not sent: "
	)
	late := row("2d", "2026-05-03T10:00Z", StateSent, "")
	late.HandedOffAt, late.CreatedAt = at("2026-05-03T14:00Z"), at("2026-05-03T14:00Z")
	retry := deferred("1d", "2026-05-02T10:00Z", "2026-05-03T10:30Z")
	lapsed := func(state State) Reminder {
		r := row("3d", "2026-05-04T10:00Z", state, "")
		r.LeaseUntil = at("2026-05-04T10:05Z")
		return r
	}
	for name, row := range map[string]struct {
		now   string
		rows  []Reminder
		in    func(*Input)
		p     func(*Policy)
		says  string
		slots string // each with its fate and reason; empty: not looked at
		first string
	}{
		"the gap is longer than the distance to a newer slot": {
			now: "2026-05-03T18:00Z", rows: []Reminder{late}, p: crowded,
			says:  sent + "the next reminder is slot 74h, due Mon 2026-05-04 12:00:00 +00:00, and waits until Mon 2026-05-04 20:00:00 +00:00: " + gap + ".",
			slots: "1d not_sent, 2d late, 74h to_come, 7d to_come", first: "74h",
		},
		"the link expires within the gap": {
			now: "2026-05-03T18:00Z", rows: []Reminder{late}, p: crowded, in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-04T20:00Z") },
			says:  sent + "nothing more is sent before the link expires Mon 2026-05-04 20:00:00 +00:00: " + gap + ".",
			slots: "1d not_sent, 2d late",
		},
		"waits until the link has expired": {
			now: "2026-05-04T11:00Z", rows: []Reminder{late}, in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-04T20:00Z") },
			p: func(p *Policy) {
				p.Limits.MinGap = 30 * time.Hour
				p.with(t, "default", cadence.Definition{After: []string{"2d", "3d", "7d"}})
			},
			says:  waiting + "the upload link has expired; nothing more is sent.",
			slots: "2d late, 3d waits link_expired",
		},
		"waits until a newer slot is due": {
			now: "2026-05-04T11:00Z", rows: []Reminder{late}, p: crowded,
			says:  waiting + "a newer slot was due as well, and only the newest is sent; the next reminder is slot 74h, due Mon 2026-05-04 12:00:00 +00:00, and waits until Mon 2026-05-04 20:00:00 +00:00: " + gap + ".",
			slots: "1d not_sent, 2d late, 3d waits superseded, 74h to_come, 7d to_come", first: "74h",
		},
		"put off until its time is over": {
			now: "2026-05-03T09:00Z", rows: []Reminder{retry},
			says:  "Slot 1d was not sent: its time for retries was over; the next reminder is slot 3d, due Mon 2026-05-04 10:00:00 +00:00.",
			slots: "1d failed retries_exhausted, 3d to_come, 7d to_come, 14d to_come", first: "3d",
		},
		"put off until a newer slot is due": {
			now: "2026-05-03T09:00Z", rows: []Reminder{retry}, p: func(p *Policy) { crowded(p); p.Limits.RetryFor = 5 * day },
			says:  "Slot 1d was not sent: its time for retries was over; the next reminder is slot 2d, due Sun 2026-05-03 10:00:00 +00:00.",
			slots: "1d failed retries_exhausted, 2d to_come, 74h to_come, 7d to_come", first: "2d",
		},
		"put off until it is too late": {
			now: "2026-05-03T09:00Z", rows: []Reminder{retry}, p: func(p *Policy) { p.Limits.MaxLateness, p.Limits.RetryFor = day, 5*day },
			says:  "Slot 1d was not sent: it was found later than limits.max_lateness allows; the next reminder is slot 3d, due Mon 2026-05-04 10:00:00 +00:00.",
			slots: "1d not_sent missed, 3d to_come, 7d to_come, 14d to_come", first: "3d",
		},
		"claimed, and the worker is gone": {
			now: "2026-05-04T10:30Z", rows: []Reminder{lapsed(StateClaimed)},
			says:  "Slot 3d is tried again at the next pass: its worker has not been heard of since its lease ended Mon 2026-05-04 10:05:00 +00:00.",
			slots: "3d retry lease_lost, 7d to_come, 14d to_come, 21d to_come", first: "3d",
		},
		"claimed again, and the worker is gone for longer than it may be repeated": {
			now: "2026-05-05T10:30Z", rows: []Reminder{func() Reminder {
				r := lapsed(StateClaimed)
				r.UnknownSince, r.Recipient = r.HandedOffAt, "ana@example.net"
				return r
			}()},
			p: func(p *Policy) { p.RepeatWithin = 40 * time.Hour },
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it: its worker has not been heard of since its lease ended Mon 2026-05-04 10:05:00 +00:00; " +
				"the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
			slots: "3d unknown reply_lost, 7d to_come, 14d to_come, 21d to_come", first: "7d",
		},
		"put off, and the request is closed": {
			now: "2026-05-03T09:00Z", rows: []Reminder{retry}, in: func(in *Input) { in.Request.Status = "completed" },
			says:  `Slot 1d was not sent, and nothing is sent: the request is "completed", and only pending and pending_resubmission are reminded.`,
			slots: "1d not_sent request_closed",
		},
		"put off, and the link is gone": {
			now: "2026-05-03T09:00Z", rows: []Reminder{retry}, in: func(in *Input) { in.Link = nil },
			says:  "Slot 1d was not sent: the upload link was withdrawn; nothing more is sent: the request has no upload link.",
			slots: "1d not_sent link_revoked",
		},
		"a long pause of many slots": {
			now: "2026-05-02T10:30Z", in: func(in *Input) { in.Request.PausedUntil = at("2027-05-02T12:00Z") },
			p:     func(p *Policy) { p.with(t, "default", cadence.Definition{Cron: new("0 * * * *")}) },
			says:  "Slot 2026-05-02T10:00 was not sent, and nothing is sent now: the request is paused until Sun 2027-05-02 12:00:00 +00:00; after that comes slot 2027-05-02T12:00, due Sun 2027-05-02 12:00:00 +00:00.",
			first: "2027-05-02T12:00",
		},
		"being sent, and the worker is gone": {
			now: "2026-05-04T10:30Z", rows: []Reminder{lapsed(StateSending)},
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it: its worker has not been heard of since its lease ended Mon 2026-05-04 10:05:00 +00:00; " +
				"the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
			slots: "3d unknown worker_lost, 7d to_come, 14d to_come, 21d to_come", first: "7d",
		},
		"being sent, and the request is closed": {
			now: "2026-05-04T10:30Z", rows: []Reminder{lapsed(StateSending)}, in: func(in *Input) { in.Request.Status = "completed" },
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it: its worker has not been heard of since its lease ended Mon 2026-05-04 10:05:00 +00:00; " +
				`nothing is sent: the request is "completed", and only pending and pending_resubmission are reminded.`,
			slots: "3d unknown worker_lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, p := asked(row.now, row.rows...), newPolicy(t)
			if row.in != nil {
				row.in(&in)
			}
			if row.p != nil {
				row.p(p)
			}
			e := p.Explain(in, nil, 3)
			if e.Sentence != row.says {
				t.Errorf("sentence %q\nwant     %q", e.Sentence, row.says)
			}
			var slots []string
			for _, f := range e.Slots {
				slots = append(slots, strings.TrimSpace(fmt.Sprint(f.Slot.Name, " ", f.Fate, " ", f.Reason)))
				if f.Row != nil && f.Row != &in.Reminders[0] {
					t.Errorf("slot %s has the row %+v, want that of the ledger", f.Slot.Name, f.Row)
				}
			}
			if got := strings.Join(slots, ", "); row.slots != "" && got != row.slots {
				t.Errorf("slots %q\nwant  %q", got, row.slots)
			}
			if slot, ok := p.NextSlot(in); ok != (row.first != "") || slot.Name != row.first {
				t.Errorf("the next slot is %q, want %q", slot.Name, row.first)
			}
		})
	}
}
