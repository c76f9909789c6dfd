package scheduler

import (
	"cmp"
	"regexp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nudged/cadence"
)

// TestForesightComesTrue: what is said to come next are the claims of the plans to come, one after
// another, each at the wake of the one before, with all that they decide written down.
func TestForesightComesTrue(t *testing.T) {
	promise := regexp.MustCompile(`[Ss]lot (\S+) (?:is due since [^;]* and (?:waits until|goes out)|is tried again|is repeated by itself)` +
		`|(?:next reminder is|after that comes) slot ([^ ,]+),`)
	rapid.Check(t, func(t *rapid.T) {
		p, in := newPolicy(t), drawInput(t)
		def := cadence.Definition{After: []string{"1d", "2d", "3d", "74h", "7d", "14d"}}
		if most := rapid.IntRange(0, 4).Draw(t, "max"); most > 0 {
			def.Max = &most
		}
		p.with(t, "default", def)
		p.Limits.MinGap = rapid.SampledFrom([]time.Duration{0, time.Hour, 12 * time.Hour, 30 * time.Hour}).Draw(t, "min_gap")
		p.Limits.MaxLateness = rapid.SampledFrom([]time.Duration{2 * time.Hour, day, 3 * day}).Draw(t, "max_lateness")
		p.RepeatWithin = rapid.SampledFrom([]time.Duration{0, 20 * time.Hour}).Draw(t, "idempotency_window")
		drawRows(t, p, &in)

		all := p.live(t, in)
		e := p.Explain(in, nil, 10)
		if diff := gocmp.Diff(laterThan(all, in.Now), dues(e.Next...)); diff != "" {
			t.Errorf("%s\nthe slots to come (-as they came +as said):\n%s", e.Sentence, diff)
		}
		first := ""
		if len(all) > 0 {
			first = all[0].Slot.Name
		}
		if slot, _ := p.NextSlot(in); slot.Name != first {
			t.Errorf("%s\nthe next slot is said to be %q and was %q", e.Sentence, slot.Name, first)
		}
		if said := promise.FindStringSubmatch(e.Sentence); said != nil && cmp.Or(said[1:]...) != first {
			t.Errorf("%s\npromises another slot than %q", e.Sentence, first)
		}
	})
}

func dues(slots ...cadence.Slot) (lines []string) {
	for _, s := range slots {
		lines = append(lines, s.Name+" "+instant(s.Due))
	}
	return lines
}

func laterThan(claims []Claim, now time.Time) (lines []string) {
	for _, c := range claims {
		if c.Slot.Due.After(now) {
			lines = append(lines, dues(c.Slot)...)
		}
	}
	return lines
}

// live makes every plan to come, and has each mail accepted at once.
func (p *Policy) live(t *rapid.T, in Input) (claims []Claim) {
	in.Reminders = slices.Clone(in.Reminders)
	write := func(link time.Time, slot cadence.Slot, existing bool, change func(*Reminder)) {
		if !existing {
			in.Reminders = append(in.Reminders, Reminder{LinkCreatedAt: link, Slot: slot.Name, DueAt: slot.Due, RetrySince: in.Now})
		}
		for i := range in.Reminders {
			if r := &in.Reminders[i]; r.Slot == slot.Name && r.LinkCreatedAt.Equal(link) {
				change(r)
			}
		}
	}
	for i := range in.Reminders {
		r := &in.Reminders[i]
		switch alive := r.LeaseUntil.After(in.Now); {
		case !r.State.InFlight():
		case alive:
			r.State, r.HandedOffAt = StateSent, firstOf(r.HandedOffAt, in.Now)
		case r.State == StateClaimed:
			r.State, r.Reason, r.RetryAt = StateDeferred, ReasonLeaseLost, in.Now
			if r.UnknownSince.IsZero() {
				r.RetrySince = in.Now
			}
		default:
			r.State, r.Reason, r.FinishedAt, r.UnknownSince = StateUnknown, ReasonWorkerLost, in.Now, firstOf(r.UnknownSince, r.HandedOffAt)
		}
	}
	for range 100 {
		d := p.Plan(in)
		for _, v := range d.Verdicts {
			write(v.LinkCreatedAt, v.Slot, v.Existing, func(r *Reminder) { r.State, r.Reason, r.FinishedAt = v.State, v.Reason, in.Now })
		}
		if c := d.Claim; c != nil {
			claims = append(claims, *c)
			write(in.Link.CreatedAt, c.Slot, c.Retry, func(r *Reminder) { r.State, r.HandedOffAt, r.FinishedAt = StateSent, in.Now, in.Now })
		}
		if d.Wake.IsZero() {
			return claims
		}
		in.Now = d.Wake
	}
	t.Fatal("the plans have no end")
	return nil
}

// drawInput draws a request with a link, up to ten days old.
func drawInput(t *rapid.T) Input {
	link := at("2026-05-01T10:00Z")
	in := asked(instant(link.Add(minutes(t, "age", 0, 10*day))))
	if rapid.Bool().Draw(t, "expires") {
		in.Link.ExpiresAt = in.Now.Add(minutes(t, "expiry", -day, 4*day))
	}
	if rapid.IntRange(0, 4).Draw(t, "paused") == 0 {
		in.Request.PausedUntil = in.Now.Add(minutes(t, "pause", -day, 3*day))
	}
	if rapid.IntRange(0, 5).Draw(t, "restored") == 0 {
		in.NotBefore = in.Now.Add(minutes(t, "not_before", -4*day, 0))
		in.AdoptedAt = in.NotBefore
	}
	return in
}

// drawRows draws what became of the slots that fell due.
func drawRows(t *rapid.T, p *Policy, in *Input) {
	series, _ := p.Series(*in.Request, *in.Link)
	made := in.Link.CreatedAt
	for slot := range series.Cadence.Slots(series.Origin, made) {
		if slot.Due.After(in.Now) {
			break
		}
		state := rapid.SampledFrom([]State{"", StateSent, StateSent, StateSkipped, StateUnknown, StateDeferred, StateDeferred}).Draw(t, "state of "+slot.Name)
		made = later(made, slot.Due.Add(minutes(t, "taken up", 0, min(in.Now.Sub(slot.Due), 20*time.Hour))))
		if state == "" || made.After(in.Now) {
			continue
		}
		r := Reminder{
			RequestID: in.RequestID, LinkCreatedAt: in.Link.CreatedAt, Slot: slot.Name, DueAt: slot.Due, State: state, Attempt: 1,
			Recipient: in.Request.RecipientEmail, CreatedAt: made, RetrySince: made, HandedOffAt: made, FinishedAt: made,
		}
		switch state {
		case StateSkipped:
			r.Reason, r.HandedOffAt = ReasonMissed, time.Time{}
		case StateUnknown:
			r.Reason, r.UnknownSince = ReasonReplyLost, made
		case StateDeferred:
			r.Reason, r.FinishedAt, r.RetryAt = ReasonGreylisted, time.Time{}, in.Now.Add(minutes(t, "retry_at", -time.Hour, 30*time.Hour))
			if rapid.IntRange(0, 2).Draw(t, "in doubt") == 0 {
				r.UnknownSince = made
			}
			if rapid.IntRange(0, 3).Draw(t, "settled") == 0 {
				r.Reason, r.RetrySince = ReasonNotSent, in.Now.Add(minutes(t, "retry_since", -10*time.Hour, 0))
			}
		}
		in.Reminders = append(in.Reminders, r)
	}
	if n := len(in.Reminders); n > 0 && rapid.IntRange(0, 5).Draw(t, "in flight") == 0 {
		last := &in.Reminders[n-1]
		last.State, last.Reason, last.RetryAt, last.FinishedAt = StateSending, "", time.Time{}, time.Time{}
		last.HandedOffAt = last.CreatedAt
		if rapid.Bool().Draw(t, "claimed") {
			last.State, last.HandedOffAt = StateClaimed, time.Time{}
		}
		last.LeaseUntil = in.Now.Add(minutes(t, "lease", -10*time.Minute, 5*time.Minute))
	}
}

// minutes draws a length of time in whole minutes.
func minutes(t *rapid.T, label string, low, high time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(low/time.Minute), int64(high/time.Minute)).Draw(t, label)) * time.Minute
}
