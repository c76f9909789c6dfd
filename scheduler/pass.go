package scheduler

import (
	"context"
	"time"
)

// passTimeout bounds one pass, so that a database that does not answer cannot hold the loop.
const passTimeout = 30 * time.Second

// maxNamed is how many requests that cannot be read one pass names in the log.
const maxNamed = 10

// passes runs a pass at each tick, and at once when a batch was full or the queue has room
// again, until ctx ends.
func (s *Scheduler) passes(ctx context.Context) {
	var told fault
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ticks:
		case <-s.demand.room:
		}
		if ctx.Err() != nil {
			return
		}
		switch err := s.pass(ctx); {
		case err != nil && told.worthSaying(err, time.Now()):
			s.log.Error("the pass failed; the same failure is not logged again", "err", err)
		case err == nil && told.over():
			s.log.Info("passes succeed again")
		}
	}
}

// pass looks at what is due and puts the claims it wins on the queue.
func (s *Scheduler) pass(ctx context.Context) error {
	begun := time.Now()
	open := s.gate.isOpen()
	request := Pass{Worker: s.cfg.Worker, Lease: s.cfg.Lease, Fresh: s.cfg.Batch}
	capacity := 0
	if open {
		capacity = s.demand.free()
		request.Due = capacity
	}
	policy := s.policy.Load()
	request.PlannedBy = policy.Fingerprint
	taking := map[string]bool{} // request ids
	request.Plan = func(in Input) Decision {
		d := s.plan(policy, in)
		if d.Claim == nil {
			return d
		}
		if len(taking) == capacity && !taking[in.RequestID] {
			// Nobody is free to send it: it waits among those whose wake has come, by its due.
			d.Wake = in.Now
			if !d.Claim.Retry {
				d.Wake = d.Claim.Slot.Due
			}
			d.Claim = nil
			return d
		}
		taking[in.RequestID] = true
		return d
	}

	// A pass that has begun is let finish: giving up inside its COMMIT would leave claims to expire.
	passCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), passTimeout)
	defer cancel()
	result, err := s.cfg.Store.RunPass(passCtx, request)
	now := time.Now()
	if err != nil {
		s.failing.Store(true)
		s.metrics.passes.WithLabelValues("error").Inc()
		s.metrics.passDuration.Observe(now.Sub(begun).Seconds())
		return err
	}
	s.succeeded.Store(now.UnixNano())
	s.failing.Store(false)
	s.metrics.passed(result, now, now.Sub(begun))
	for _, r := range result.Unknown {
		s.log.Warn("a worker went away during a delivery: what became of it is unknown", "request_id", r.RequestID, "slot", r.Slot,
			"link_created_at", r.LinkCreatedAt, "attempt", r.Attempt, "outcome", StateUnknown, "reason", ReasonWorkerLost)
	}
	for i, r := range result.Unreadable {
		if i == maxNamed {
			s.log.Warn("more requests cannot be read; nudged.schedules has their problem", "count", len(result.Unreadable)-maxNamed)
			break
		}
		s.log.Warn("a request cannot be read; it is left alone for a while, or until it is touched", "request_id", r.RequestID, "err", r.Err)
	}
	s.demand.claimed(len(result.Tasks), open && (result.More || max(result.Due, len(taking)) >= capacity))
	for _, task := range result.Tasks {
		s.flights.add(task.ClaimID, begun.Add(s.cfg.Lease))
		s.queue <- queued{task: task, at: now} // it has room for all that demand allows
	}
	if result.Fresh == s.cfg.Batch || result.Partial {
		s.Poke()
	}
	return nil
}

// plan turns a panic over one request into a plan that leaves it alone for a while, so that one
// bad row stops no batch.
func (s *Scheduler) plan(policy *Policy, in Input) (d Decision) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a request cannot be planned; it is left alone for an hour", "request_id", in.RequestID, "err", r)
			d = Decision{Wake: in.Now.Add(time.Hour)}
		}
	}()
	return policy.Plan(in)
}
