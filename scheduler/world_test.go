package scheduler

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"nudged/cadence"
)

// world is one request whose days are drawn: what the application writes, when passes happen, and
// what becomes of the claims.
type world struct {
	*memory
	t      *rapid.T
	policy *Policy
	clock  time.Time
	sub    *subject

	held    *Task // claimed, and not yet given up by its worker
	sent    bool  // held is handed off
	blocked bool  // the last plan met a reminder whose outcome was not known yet
	// mails has what reached the recipient or may have.
	mails map[mailKey]handOffs
}

type mailKey struct {
	link time.Time
	slot string
}

// handOffs are the first and the last one of a slot, of those that were not refused.
type handOffs struct{ first, last time.Time }

func newWorld(t *rapid.T) *world {
	w := &world{t: t, clock: at("2026-02-01T10:00Z"), mails: map[mailKey]handOffs{}}
	w.policy = &Policy{
		Cadences: map[string]*cadence.Cadence{"default": w.drawCadence(), "other": w.drawCadence()}, DefaultCadence: "default",
		DefaultZone: time.UTC,
		Limits: Limits{
			MaxLateness: w.drawSpan("max_lateness", time.Hour, 90*time.Hour),
			MinGap:      w.drawSpan("min_gap", time.Second, 72*time.Hour),
			RetryFor:    w.drawSpan("retry_for", time.Minute, 72*time.Hour),
			Retention:   20 * 365 * day, // so that dead links are always followed
			Backoff:     Backoff{Initial: time.Minute, Max: time.Hour},
		},
	}
	if rapid.Bool().Draw(t, "idempotent relay") {
		w.policy.RepeatWithin = w.drawSpan("repeat_within", time.Minute, 72*time.Hour)
	}
	w.memory = newMemory(t, func() time.Time { return w.clock }, w.clock.Add(w.drawSpan("adopted", -60*day, 30*day)))
	if rapid.Bool().Draw(t, "restored") {
		w.notBefore = w.clock.Add(w.drawSpan("not_before", -10*day, 10*day))
	}
	w.edit(subjectID, func(sub *subject) {
		w.sub = sub
		sub.request = &Request{
			ID: subjectID, Status: StatusPending, RecipientEmail: "ana@example.com",
			TimeZone: rapid.SampledFrom([]string{"", "America/New_York", "Africa/Cairo", "Nowhere/Land"}).Draw(t, "zone"),
			Deadline: cadence.Date{Year: 2026, Month: time.March, Day: rapid.IntRange(1, 31).Draw(t, "deadline")},
		}
		sub.link = &Link{CreatedAt: w.clock.Add(-w.drawSpan("age", 0, 100*day))}
	})
	return w
}

func (w *world) drawSpan(label string, low, high time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(low/time.Microsecond), int64(high/time.Microsecond)).Draw(w.t, label)) * time.Microsecond
}

func (w *world) drawCadence() *cadence.Cadence {
	var def cadence.Definition
	unit := rapid.SampledFrom([]string{"h", "d", "d", "bd"}).Draw(w.t, "unit")
	n := 0
	for range rapid.IntRange(1, 4).Draw(w.t, "slots") {
		n += rapid.IntRange(1, 9).Draw(w.t, "step")
		def.After = append(def.After, fmt.Sprint(n, unit))
	}
	flip := func(label string) bool { return rapid.Bool().Draw(w.t, label) }
	if flip("for ever") {
		def.ThenEvery = new(fmt.Sprint(rapid.IntRange(1, 7).Draw(w.t, "every"), unit))
	}
	if unit != "h" && flip("hour") {
		def.At = new("09:00")
		def.BeforeDeadline = []string{"2d"}
	}
	if unit == "d" && flip("workdays") {
		def.Days = []string{"mon", "tue", "wed", "thu", "fri"}
	}
	def.FirstMail = flip("first mail")
	if flip("cron") {
		def = cadence.Definition{Cron: new(rapid.SampledFrom([]string{"0 9 * * MON-FRI", "30 */6 * * *", "0 9 1 * *"}).Draw(w.t, "expression"))}
	}
	if flip("capped") {
		def.Max = new(rapid.IntRange(1, 4).Draw(w.t, "max"))
	}
	return parse(w.t, "drawn", def)
}

// advance lets time pass, with a liking for the instants at which something changes.
func (w *world) advance() {
	var to time.Time
	switch rapid.SampledFrom([]string{"moments", "days", "wake", "slot", "expiry", "pause"}).Draw(w.t, "advance") {
	case "moments":
		to = w.clock.Add(w.drawSpan("moments", 0, 6*time.Hour))
	case "days":
		to = w.clock.Add(w.drawSpan("days", 0, 20*day))
	case "wake":
		to = w.sub.wake
	case "slot":
		if w.sub.request != nil && w.sub.link != nil {
			series, _ := w.policy.Series(*w.sub.request, *w.sub.link)
			next, _ := series.Cadence.Next(series.Origin, w.clock)
			to = next.Due
		}
	case "expiry":
		if w.sub.link != nil {
			to = w.sub.link.ExpiresAt
		}
	case "pause":
		if until := w.sub.request.PausedUntil; !until.Equal(Forever()) {
			to = until
		}
	}
	if rapid.IntRange(0, 4).Draw(w.t, "just before") == 0 {
		to = to.Add(-time.Microsecond)
	}
	w.clock = later(w.clock, to)
}

// happen is what the application or a person does, or nothing.
func (w *world) happen() {
	now := w.clock
	changes := map[string]func(*subject){
		"close":   func(sub *subject) { sub.request.Status = "completed" },
		"reopen":  func(sub *subject) { sub.request.Status = StatusPendingResubmission },
		"refresh": func(sub *subject) { sub.link = &Link{CreatedAt: now} },
		"pause":   func(sub *subject) { sub.request.PausedUntil = now.Add(w.drawSpan("pause", 0, 20*day)) },
		"pause for ever": func(sub *subject) {
			sub.request.PausedUntil = Forever()
		},
		"resume":     func(sub *subject) { sub.request.PausedUntil = time.Time{} },
		"opt out":    func(sub *subject) { sub.request.OptedOutAt = now },
		"opt in":     func(sub *subject) { sub.request.OptedOutAt = time.Time{} },
		"expire":     func(sub *subject) { sub.link.ExpiresAt = now.Add(w.drawSpan("expire", 0, 20*day)) },
		"not expire": func(sub *subject) { sub.link.ExpiresAt = time.Time{} },
		"revoke":     func(sub *subject) { sub.link.RevokedAt = now },
		"suppress":   func(sub *subject) { sub.suppressed = !sub.suppressed },
		"cadence":    func(sub *subject) { sub.request.Cadence = "other" },
		"zone":       func(sub *subject) { sub.request.TimeZone = "Pacific/Auckland" },
		"look":       func(*subject) {},
		"settle":     func(sub *subject) { w.settleUnknown(sub) },
	}
	what := rapid.SampledFrom([]string{
		"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing",
		"close", "reopen", "refresh", "pause", "pause for ever", "resume", "opt out", "opt in", "expire", "not expire",
		"revoke", "suppress", "cadence", "zone", "look", "settle",
	}).Draw(w.t, "event")
	if change := changes[what]; change != nil {
		w.edit(subjectID, change)
	}
}

// settleUnknown is a person who finds out that an unknown mail was not sent.
func (w *world) settleUnknown(sub *subject) {
	for _, r := range sub.rows {
		if r.State == StateUnknown {
			r.State, r.Reason, r.FinishedAt, r.RetryAt, r.RetrySince = StateDeferred, ReasonNotSent, time.Time{}, w.clock, w.clock
			r.UnknownSince = time.Time{}
			delete(w.mails, mailKey{r.LinkCreatedAt, r.Slot})
			if w.held != nil && w.held.ClaimID == r.ClaimID {
				w.held = nil
			}
			return
		}
	}
}

// work lets the worker of a claim get on with it: hand it off, end it, sleep or vanish.
func (w *world) work() {
	for w.held != nil {
		switch what := rapid.SampledFrom([]string{"go on", "go on", "go on", "sleep", "vanish"}).Draw(w.t, "worker"); {
		case what == "sleep":
			return
		case what == "vanish":
			w.held = nil
		case !w.sent:
			w.handOver()
		default:
			w.deliver()
		}
	}
}

func (w *world) handOver() {
	results, _ := w.Settle(context.Background(), Batch{Lease: 5 * time.Minute, HandOffs: []HandOff{{
		ClaimID: w.held.ClaimID, LinkCreatedAt: w.held.Link.CreatedAt, Recipient: w.held.Request.RecipientEmail,
	}}})
	if len(results) == 0 || results[0].Reason != "" {
		w.held = nil
		return
	}
	w.sent = true
	key := mailKey{w.held.Link.CreatedAt, w.held.Slot.Name}
	w.mails[key] = handOffs{first: firstOf(w.mails[key].first, w.clock), last: w.clock}
}

func (w *world) deliver() {
	outcome := rapid.SampledFrom([]Outcome{
		{State: StateSent}, {State: StateSent},
		{State: StateDeferred, Reason: ReasonGreylisted},
		{State: StateDeferred, Reason: ReasonRelayRefused},
		{State: StateFailed, Reason: ReasonRecipientRefused, Suppress: true},
		{State: StateUnknown, Reason: ReasonReplyLost},
	}).Draw(w.t, "outcome")
	if outcome.State == StateDeferred || outcome.State == StateFailed {
		key := mailKey{w.held.Link.CreatedAt, w.held.Slot.Name}
		if m := w.mails[key]; m.first.Equal(m.last) {
			delete(w.mails, key)
		} else { // the attempt before this one is still in doubt
			w.mails[key] = handOffs{m.first, m.first}
		}
		w.blocked = w.blocked || w.byClaim(w.held.ClaimID).State == StateUnknown
	}
	st := Settlement{ClaimID: w.held.ClaimID, Outcome: outcome, RetryIn: w.drawSpan("retry in", time.Second, time.Hour)}
	if outcome.Reason == ReasonRelayRefused {
		st.KeepAttempt, st.RetryIn = true, 0
	}
	w.held = nil
	if _, err := w.Settle(context.Background(), Batch{Settlements: []Settlement{st}}); err != nil {
		w.t.Fatalf("record: %v", err)
	}
}
