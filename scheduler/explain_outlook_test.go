package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
)

// TestOutlook: what is said to come is what may come: what is tried again or repeated takes its place
// among the mails that the maximum allows, and nothing is listed that has none.
func TestOutlook(t *testing.T) {
	limit := func(most int) func(*Policy) {
		return func(p *Policy) {
			p.with(t, "default", cadence.Definition{After: []string{"3d", "7d", "14d", "21d"}, Max: &most})
		}
	}
	repeating := func(more ...func(*Policy)) func(*Policy) {
		return func(p *Policy) {
			p.RepeatWithin = 20 * time.Hour
			for _, change := range more {
				change(p)
			}
		}
	}
	const (
		maxOne   = "max: 1 of cadence default: 0 mails went out for this link, 1 may follow, slot 3d first"
		repeated = "smtp.idempotency_window 20h: slot 3d is repeated until Tue 2026-05-05 06:00:00 +00:00; a newer slot falling due ends that: 7d, due Fri 2026-05-08 10:00:00 +00:00"
		tried    = "limits.retry_for 24h: slot 3d is tried until Tue 2026-05-05 10:00:00 +00:00; a newer slot falling due ends that: 7d, due Fri 2026-05-08 10:00:00 +00:00"
	)
	unknown := []Reminder{doubted("3d", "2026-05-04T10:00Z")}
	for name, row := range map[string]struct {
		now   string
		rows  []Reminder
		in    func(*Input)
		p     func(*Policy)
		says  string
		next  string   // slots to come, parted by blanks
		first string   // the slot that goes out next; empty: the first to come
		stops []string // those about the maximum and the end of attempts
	}{
		"unknown, and repeated after a while": {
			now: "2026-05-04T10:10:30Z", rows: unknown, p: repeating(),
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00; slot 3d is repeated by itself after Mon 2026-05-04 10:11:00 +00:00, as the mail server drops repetitions, until Tue 2026-05-05 06:00:00 +00:00.",
			next: "7d 14d 21d", first: "3d", stops: []string{repeated},
		},
		"unknown, the one mail of the maximum, and repeated": {
			now: "2026-05-04T10:10:30Z", rows: unknown, p: repeating(limit(1)),
			says:  "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00; slot 3d is repeated by itself after Mon 2026-05-04 10:11:00 +00:00, as the mail server drops repetitions, until Tue 2026-05-05 06:00:00 +00:00.",
			first: "3d", stops: []string{maxOne, repeated},
		},
		"unknown, and repeated at the next pass": {
			now: "2026-05-04T10:11Z", rows: unknown, p: repeating(limit(2)),
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00; slot 3d is repeated by itself at the next pass, as the mail server drops repetitions, until Tue 2026-05-05 06:00:00 +00:00.",
			next: "7d", first: "3d", stops: []string{"max: 2 of cadence default: 0 mails went out for this link, 2 may follow, slot 3d first", repeated},
		},
		"unknown, and repeated until the link expires": {
			now: "2026-05-04T10:10:30Z", rows: unknown, p: repeating(), in: func(in *Input) { in.Link.ExpiresAt = at("2026-05-04T20:00Z") },
			says:  "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00; slot 3d is repeated by itself after Mon 2026-05-04 10:11:00 +00:00, as the mail server drops repetitions, until Mon 2026-05-04 20:00:00 +00:00.",
			first: "3d", stops: []string{repeated},
		},
		"unknown, and the time for repetitions is over": {
			now: "2026-05-05T06:00Z", rows: unknown, p: repeating(limit(1)),
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it; nothing is sent now: the cadence's maximum of 1 mail for this link is reached.",
		},
		"unknown, and never repeated": {
			now: "2026-05-04T10:10:30Z", rows: unknown, p: limit(2),
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
			next: "7d", stops: []string{"max: 2 of cadence default: 1 mail went out for this link, 1 may follow"},
		},
		"unknown, and the address was edited": {
			now: "2026-05-04T10:10:30Z", rows: unknown, p: repeating(), in: func(in *Input) { in.Request.RecipientEmail = "ana@example.org" },
			says: "Slot 3d may have gone out, Mon 2026-05-04 10:00:00 +00:00, and a person has to settle it; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
			next: "7d 14d 21d",
		},
		"unknown, and a newer slot is due before it could be repeated": {
			now: "2026-05-08T09:50Z", rows: []Reminder{func() Reminder {
				r := doubted("6d23h", "2026-05-08T09:00Z")
				r.FinishedAt = at("2026-05-08T09:49Z")
				return r
			}()},
			p:    repeating(func(p *Policy) { p.Limits.Backoff.Initial = 15 * time.Minute }),
			says: "Slot 6d23h may have gone out, Fri 2026-05-08 09:00:00 +00:00, and a person has to settle it; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
			next: "7d 14d 21d",
		},
		"put off, and may have been accepted before": {
			now: "2026-05-04T11:01Z", rows: []Reminder{doubtedAndDeferred("3d", "2026-05-04T10:00Z", "2026-05-04T11:05Z")}, p: repeating(limit(1)),
			says:  "Slot 3d is tried again after Mon 2026-05-04 11:05:00 +00:00: the server asked to try again later.",
			first: "3d", stops: []string{maxOne, repeated},
		},

		"due, the last place": {
			now: "2026-05-08T10:30Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")}, p: limit(2),
			says:  "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; slot 7d is due since Fri 2026-05-08 10:00:00 +00:00 and goes out at the next pass.",
			first: "7d", stops: []string{"max: 2 of cadence default: 1 mail went out for this link, 1 may follow, slot 7d first"},
		},
		"due, the only place": {
			now: "2026-05-04T10:30Z", p: limit(1),
			says:  "Slot 3d is due since Mon 2026-05-04 10:00:00 +00:00 and goes out at the next pass.",
			first: "3d", stops: []string{maxOne},
		},
		"tried again, the only place": {
			now: "2026-05-04T10:10Z", rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-04T10:30Z")}, p: limit(1),
			says:  "Slot 3d is tried again after Mon 2026-05-04 10:30:00 +00:00: the server asked to try again later.",
			first: "3d", stops: []string{maxOne, tried},
		},
		"tried again, with places left": {
			now: "2026-05-04T10:30Z", rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-04T10:30Z")}, p: limit(2),
			says: "Slot 3d is tried again at the next pass.",
			next: "7d", first: "3d", stops: []string{"max: 2 of cadence default: 0 mails went out for this link, 2 may follow, slot 3d first", tried},
		},
		"tried again until it is too late": {
			now: "2026-05-04T10:10Z", rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-04T10:30Z")},
			p:    func(p *Policy) { p.Limits.MaxLateness = 2 * time.Hour },
			says: "Slot 3d is tried again after Mon 2026-05-04 10:30:00 +00:00: the server asked to try again later.",
			next: "7d 14d 21d", first: "3d",
			stops: []string{"limits.max_lateness 2h: slot 3d is tried until Mon 2026-05-04 12:00:00 +00:00; a newer slot falling due ends that: 7d, due Fri 2026-05-08 10:00:00 +00:00"},
		},
		"waits, the last place": {
			now: "2026-05-04T10:10Z", rows: []Reminder{ofLink("2026-04-01T00:00Z", row("33d", "2026-05-04T09:30Z", StateSent, ""))}, p: limit(1),
			says:  "The link was refreshed Fri 2026-05-01 10:00:00 +00:00 and its series began anew, after 1 mail for the link before; slot 3d is due since Mon 2026-05-04 10:00:00 +00:00 and waits until Mon 2026-05-04 10:30:00 +00:00: limits.min_gap 1h between two mails of one request.",
			first: "3d", stops: []string{maxOne},
		},
		"claimed, the last place": {
			now: "2026-05-08T10:01Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, ""), row("7d", "2026-05-08T10:00Z", StateClaimed, "")}, p: limit(2),
			says: "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; slot 7d is being sent right now.",
		},
		"claimed, with one place left": {
			now: "2026-05-08T10:01Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, ""), row("7d", "2026-05-08T10:00Z", StateClaimed, "")}, p: limit(3),
			says: "Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; slot 7d is being sent right now.",
			next: "14d", stops: []string{"max: 3 of cadence default: 1 mail went out for this link, 2 may follow"},
		},
		"being sent, and a newer one is due": {
			now: "2026-05-08T10:01Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSending, "")}, p: limit(2),
			in:    func(in *Input) { in.Reminders[0].LeaseUntil = at("2026-05-08T10:02Z") },
			says:  "Slot 3d is being sent right now.",
			first: "7d",
		},
		"full, and another falls due soon after the last mail": {
			now: "2026-05-04T12:10Z", rows: []Reminder{row("72h", "2026-05-04T10:00Z", StateSent, ""), row("73h", "2026-05-04T11:00Z", StateSkipped, ReasonMaxReached)},
			p: func(p *Policy) {
				p.Limits.MinGap = day
				p.with(t, "default", cadence.Definition{After: []string{"72h", "73h", "74h"}, Max: new(1)})
			},
			says: "Slot 74h was not sent, and nothing is sent now: the cadence's maximum of 1 mail for this link is reached.",
		},
		"a stale row of the same name, and the slot waits": {
			now: "2026-05-04T10:10Z", rows: []Reminder{
				ofLink("2026-04-01T00:00Z", deferred("3d", "2026-04-04T00:00Z", "2026-04-04T01:00Z")),
				ofLink("2026-04-01T00:00Z", row("33d", "2026-05-04T09:30Z", StateSent, "")),
			},
			says: "The link was refreshed Fri 2026-05-01 10:00:00 +00:00 and its series began anew, after 1 mail for the link before; slot 3d is due since Mon 2026-05-04 10:00:00 +00:00 and waits until Mon 2026-05-04 10:30:00 +00:00: limits.min_gap 1h between two mails of one request.",
			next: "7d 14d 21d", first: "3d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := asked(row.now)
			in.Reminders, in.Request.RecipientEmail = row.rows, "ana@example.com"
			p := newPolicy(t)
			if row.in != nil {
				row.in(&in)
			}
			if row.p != nil {
				row.p(p)
			}
			e := p.Explain(in, nil, 3)
			var next, stops []string
			for _, slot := range e.Next {
				next = append(next, slot.Name)
			}
			for _, stop := range e.Stops {
				if strings.HasPrefix(stop, "max:") || strings.Contains(stop, "falling due") {
					stops = append(stops, stop)
				}
			}
			if e.Sentence != row.says {
				t.Errorf("sentence %q\nwant     %q", e.Sentence, row.says)
			}
			if diff := cmp.Diff(row.next, strings.Join(next, " ")); diff != "" {
				t.Errorf("slots to come (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.stops, stops); diff != "" {
				t.Errorf("stops (-want +got):\n%s", diff)
			}
			want, _, _ := strings.Cut(row.next, " ")
			if row.first != "" {
				want = row.first
			}
			if slot, ok := p.NextSlot(in); ok != (want != "") || slot.Name != want {
				t.Errorf("the next slot is %q, want %q", slot.Name, want)
			}
		})
	}
}

// TestOutlookComesTrue: where explain says that a reminder of unknown fate is repeated, the plan of then
// repeats it, and where it does not, no plan does.
func TestOutlookComesTrue(t *testing.T) {
	p := newPolicy(t)
	for _, within := range []time.Duration{0, 10 * time.Minute, 15 * time.Minute, 20 * time.Hour} {
		for _, wait := range []time.Duration{time.Minute, 30 * time.Minute, 5 * day} {
			for _, most := range []int{0, 1, 2} {
				for _, rest := range [][]Reminder{nil, {row("1d", "2026-05-02T10:00Z", StateSkipped, ReasonMaxReached)}} {
					p.RepeatWithin, p.Limits.Backoff.Initial = within, wait
					def := cadence.Definition{After: []string{"3d", "7d"}}
					if most > 0 {
						def.Max = &most
					}
					p.with(t, "default", def)
					rows := slices.Concat(rest, []Reminder{doubted("3d", "2026-05-04T10:00Z")})
					in := asked("2026-05-04T10:10:30Z", rows...)
					in.Request.RecipientEmail = "ana@example.com"
					said := p.Explain(in, nil, 3).Slots[len(rows)-1].RepeatAt
					repeated := false
					for d := p.Plan(in); d.Claim != nil || !d.Wake.IsZero(); d = p.Plan(in) {
						if d.Claim != nil {
							repeated = d.Claim.Slot.Name == "3d"
							break
						}
						in.Now = d.Wake
					}
					if repeated == said.IsZero() || repeated && !in.Now.Equal(later(said, at("2026-05-04T10:10:30Z"))) {
						t.Errorf("within %s, after %s, at most %d, %d rows: it is to be repeated at %s, and repeated %v at %s", within, wait, most, len(rows), said, repeated, in.Now)
					}
				}
			}
		}
	}
}
