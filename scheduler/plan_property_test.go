package scheduler

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudged/cadence"
)

// TestPlanProperties holds whatever happens: see the checks.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.advance()
			w.happen()
			if rapid.IntRange(0, 9).Draw(t, "outage") > 0 {
				w.pass()
			}
			w.work()
		}
	})
}

// pass is one round of the loop with everything that has to hold around it.
func (w *world) pass() {
	w.checkSleep()
	planned := false
	var decision Decision
	result, err := w.RunPass(context.Background(), Pass{
		Worker: "w", Lease: 5 * time.Minute, Fresh: 1, Due: 1,
		Plan: func(in Input) Decision {
			planned, decision, w.blocked = true, w.policy.Plan(in), in.inFlight()
			w.checkDecision(in, decision)
			return decision
		},
	})
	if err != nil {
		w.t.Fatalf("pass: %v", err)
	}
	for _, task := range result.Tasks {
		w.held, w.sent = &task, false
	}
	if planned {
		w.checkIdempotent(decision)
		w.checkNothingForgotten()
	}
}

// checkSleep: a wake is never too late. Where the pass does not look, a look would have found
// nothing to send, nor a slot to write down but for one that waits for min_gap. A request that was
// looked at before the outcome of a reminder of it was known may sleep a little longer: to the end
// of the lease, or of the min_gap behind what turned out to be no mail.
func (w *world) checkSleep() {
	w.recover(&PassResult{})
	if w.blocked || w.sub.fresh || !w.sub.wake.IsZero() && !w.sub.wake.After(w.clock) {
		return
	}
	d := w.policy.Plan(w.input(subjectID))
	unwritten := slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return !v.Existing })
	if d.Claim != nil || unwritten && !w.clock.Before(lastHandOff(w.input(subjectID)).Add(w.policy.Limits.MinGap)) {
		w.t.Fatalf("asleep until %q at %s, while there is %v", instant(w.sub.wake), instant(w.clock), d.lines())
	}
}

func (w *world) checkDecision(in Input, d Decision) {
	w.t.Logf("%s: %v", instant(in.Now), d.lines())
	if again := w.policy.Plan(in); !reflect.DeepEqual(d, again) {
		w.t.Fatalf("planned twice: %v, then %v", d.lines(), again.lines())
	}
	if !d.Wake.IsZero() && !d.Wake.After(in.Now) {
		w.t.Fatalf("wake %s is not after now", instant(d.Wake))
	}
	seen := map[mailKey]bool{}
	for _, v := range d.Verdicts {
		key := mailKey{v.LinkCreatedAt, v.Slot.Name}
		reasons := map[State][]Reason{StateSkipped: SkipReasons(), StateFailed: FailReasons(), StateUnknown: UnknownReasons()}[v.State]
		if seen[key] || v.Slot.Due.After(in.Now) || !slices.Contains(reasons, v.Reason) {
			w.t.Fatalf("verdict %+v", v)
		}
		seen[key] = true
	}
	if d.Claim != nil {
		if seen[mailKey{in.Link.CreatedAt, d.Claim.Slot.Name}] {
			w.t.Fatalf("slot %s is claimed and has a verdict", d.Claim.Slot.Name)
		}
		w.checkClaim(in, *d.Claim)
	}
}

// checkClaim has what makes a mail allowed, written down independently of the plan.
func (w *world) checkClaim(in Input, c Claim) {
	request, link, now := in.Request, in.Link, in.Now
	name := request.Cadence
	if name == "" {
		name = "default"
	}
	rule := w.policy.Cadences[name]
	ofLink := 0
	var last time.Time
	for key, m := range w.mails {
		if key == (mailKey{link.CreatedAt, c.Slot.Name}) {
			continue
		}
		last = later(last, m.last)
		if key.link.Equal(link.CreatedAt) {
			ofLink++
		}
	}
	before, again := w.mails[mailKey{link.CreatedAt, c.Slot.Name}]
	settled := slices.ContainsFunc(in.Reminders, func(r Reminder) bool {
		return r.Slot == c.Slot.Name && (r.Reason == ReasonNotSent && r.RetrySince.After(in.NotBefore) || r.HandedOffAt.After(in.NotBefore))
	})
	newer := func() bool {
		newest, _ := rule.Last(w.origin(), now)
		return !c.Retry && newest.Due.After(c.Slot.Due)
	}
	for what, wrong := range map[string]bool{
		"a second mail of a slot":    again && !now.Before(before.first.Add(w.policy.RepeatWithin)),
		"another one is in flight":   in.inFlight(),
		"closed":                     request.Status != StatusPending && request.Status != StatusPendingResubmission,
		"revoked":                    !link.RevokedAt.IsZero(),
		"expired":                    !link.ExpiresAt.IsZero() && !now.Before(link.ExpiresAt),
		"opted out":                  !request.OptedOutAt.IsZero(),
		"suppressed":                 in.Suppressed,
		"paused":                     now.Before(request.PausedUntil),
		"not due":                    c.Slot.Due.After(now),
		"too late":                   now.Sub(c.Slot.Due) > w.policy.Limits.MaxLateness,
		"too soon after another one": now.Sub(last) < w.policy.Limits.MinGap,
		"before the ledger began":    c.Slot.Due.Before(in.NotBefore) && !settled,
		"more than the maximum":      rule.Max() > 0 && ofLink >= rule.Max(),
		"not its number":             c.Number != ofLink+1,
		"not the newest slot":        newer(),
	} {
		if wrong {
			w.t.Fatalf("claim of slot %s at %s: %s", c.Slot.Name, instant(now), what)
		}
	}
}

// lastHandOff is when the latest of what was mailed or may have been was handed off.
func lastHandOff(in Input) time.Time {
	var last time.Time
	for _, r := range in.Reminders {
		if r.State.Mailed() {
			last = later(last, r.HandedOffAt)
		}
	}
	return last
}

func (in Input) inFlight() bool {
	return slices.ContainsFunc(in.Reminders, func(r Reminder) bool { return r.State.InFlight() })
}

func (w *world) origin() cadence.Origin {
	zone, err := cadence.LoadZone(w.sub.request.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	return cadence.Origin{Anchor: w.sub.link.CreatedAt, Zone: zone, Deadline: w.sub.request.Deadline}
}

// checkIdempotent: planning again after a plan was carried out finds nothing to do, unless there was
// more than one plan may write.
func (w *world) checkIdempotent(d Decision) {
	if len(d.Verdicts) >= maxVerdicts-1 {
		return
	}
	in := w.input(subjectID)
	again := w.policy.Plan(in)
	if again.Claim != nil || len(again.Verdicts) > 0 || !in.inFlight() && !again.Wake.Equal(d.Wake) {
		w.t.Fatalf("after %v the next plan is %v", d.lines(), again.lines())
	}
}

// checkNothingForgotten: after a plan every slot that fell due has a row or is older than the
// newest row, but for a slot that waits for min_gap and for what lies beyond the maximum.
func (w *world) checkNothingForgotten() {
	in := w.input(subjectID)
	if in.inFlight() || !in.Request.Status.Open() {
		return
	}
	rule := w.policy.Cadences["default"]
	if in.Request.Cadence != "" {
		rule = w.policy.Cadences[in.Request.Cadence]
	}
	newest := in.Link.CreatedAt.Add(-time.Second)
	rows := map[string]bool{}
	mails, reached := 0, false
	for _, r := range in.Reminders {
		if r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			rows[r.Slot] = true
			newest = later(newest, r.DueAt)
			reached = reached || r.Reason == ReasonMaxReached
			if r.State.Mailed() {
				mails++
			}
		}
	}
	if reached && rule.Max() > 0 && mails >= rule.Max() {
		return
	}
	waiting := in.Now.Before(lastHandOff(in).Add(w.policy.Limits.MinGap))
	final, _ := rule.Last(w.origin(), in.Now)
	for slot := range rule.Slots(w.origin(), newest) {
		if slot.Due.After(in.Now) {
			return
		}
		if !rows[slot.Name] && !(waiting && slot == final) {
			w.t.Fatalf("slot %s, due %s, is forgotten at %s", slot.Name, instant(slot.Due), instant(in.Now))
		}
	}
}
