package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// composeAll renders what was claimed and passes it on to be handed off, at the configured rate.
// When ctx ends, what is left of the queue is given back.
func (s *Scheduler) composeAll(ctx context.Context) {
	defer close(s.ready)
	for q := range s.queue {
		s.demand.left(time.Since(q.at))
		if err := s.limiter.Wait(ctx); err != nil {
			s.outcomes <- delivered{task: q.task, outcome: Outcome{State: StateDeferred, Reason: ReasonShutdown}}
			continue
		}
		message, failure := s.compose(q.task)
		if failure != nil {
			outcome := Outcome{State: StateFailed, Reason: failure.Reason, SMTPReply: failure.Err.Error()}
			s.logOutcome(q.task, outcome, 0)
			s.outcomes <- delivered{task: q.task, outcome: outcome}
			continue
		}
		s.ready <- composed{q.task, message}
	}
}

// compose calls the mailer and turns whatever goes wrong, a panic in a template included, into
// the end of this one reminder.
func (s *Scheduler) compose(task Task) (m Message, failure *ComposeError) {
	defer func() {
		if r := recover(); r != nil {
			failure = &ComposeError{Reason: ReasonTemplateError, Err: fmt.Errorf("template panics: %v", r)}
		}
	}()
	m, err := s.cfg.Mailer.Compose(task)
	if err == nil {
		m.ClaimID = task.ClaimID
		return m, nil
	}
	if failure, ok := errors.AsType[*ComposeError](err); ok {
		return m, failure
	}
	return m, &ComposeError{Reason: ReasonTemplateError, Err: err}
}

// deliverAll sends what was handed off, one message at a time, until there is no more.
func (s *Scheduler) deliverAll(ctx context.Context) {
	for c := range s.handed {
		outcome, took := s.deliver(ctx, c)
		s.outcomes <- delivered{task: c.task, outcome: outcome, handedOff: true, took: took}
	}
}

// deliver also tells how long it took.
func (s *Scheduler) deliver(ctx context.Context, c composed) (Outcome, time.Duration) {
	if !s.gate.isOpen() {
		return Outcome{State: StateDeferred, Reason: ReasonRelayRefused, SMTPReply: "the relay is unwell"}, 0
	}
	until := s.flights.heldUntil(c.task.ClaimID)
	s.metrics.attempts.Inc()
	begun := time.Now()
	outcome := s.cfg.Mailer.Deliver(ctx, c.message, until)
	took := time.Since(begun)
	s.metrics.sendDuration.Observe(took.Seconds())
	if outcome.State == StateSent {
		s.gate.accepted()
		s.metrics.lateness.Observe(max(0, time.Since(c.task.Slot.Due).Seconds()))
	}
	if outcome.RelayFault {
		s.gate.shut(outcome.SMTPCode)
	}
	s.logOutcome(c.task, outcome, took)
	return outcome, took
}

func (s *Scheduler) logOutcome(task Task, outcome Outcome, took time.Duration) {
	log := s.log.Info
	if outcome.State == StateUnknown {
		log = s.log.Warn
	}
	log("delivery ended", "request_id", task.Request.ID, "slot", task.Slot.Name,
		"link_created_at", task.Link.CreatedAt, "attempt", task.Attempt, "outcome", outcome.State,
		"reason", outcome.Reason, "smtp_code", outcome.SMTPCode, "duration", took)
}

// settlement is how an outcome goes into the ledger.
func (s *Scheduler) settlement(d delivered, draw *rand.Rand) Settlement {
	st := Settlement{
		ClaimID: d.task.ClaimID, RequestID: d.task.Request.ID, LinkCreatedAt: d.task.Link.CreatedAt,
		Slot: d.task.Slot.Name, Recipient: d.task.Request.RecipientEmail, Outcome: d.outcome,
	}
	if d.outcome.State == StateDeferred {
		switch d.outcome.Reason {
		case ReasonRelayRefused, ReasonLeaseLost, ReasonShutdown:
			st.KeepAttempt = true // the reminder is not to blame; it goes as soon as it can
		default:
			st.RetryIn = s.policy.Load().Limits.Backoff.Wait(d.task.Attempt, draw)
		}
	}
	return st
}

// renewLeases keeps the claims of this process from being settled by another one while they wait
// or are being delivered, until ctx ends.
func (s *Scheduler) renewLeases(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := time.Now()
		ids := s.flights.endingBefore(begun.Add(s.cfg.Lease * 2 / 3))
		if len(ids) == 0 {
			continue
		}
		renewCtx, cancel := context.WithTimeout(ctx, s.cfg.Lease/3)
		kept, err := s.cfg.Store.Renew(renewCtx, ids, s.cfg.Lease)
		cancel()
		if err != nil {
			s.log.Debug("leases are not renewed", "err", err)
			continue
		}
		s.flights.renewed(ids, kept, begun.Add(s.cfg.Lease))
	}
}
