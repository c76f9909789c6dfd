package scheduler

import (
	"context"
	"time"
)

// Settle implements Store.
func (m *memory) Settle(_ context.Context, b Batch) ([]HandOffResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, st := range b.Settlements {
		m.settle(st)
	}
	var results []HandOffResult
	for _, h := range b.HandOffs {
		if reason, ours := m.handOff(h, b.Lease); ours {
			results = append(results, HandOffResult{ClaimID: h.ClaimID, Reason: reason})
		}
	}
	sending := 0
	for r := range m.all() {
		if r.State == StateSending {
			sending++
		}
	}
	m.mostSending = max(m.mostSending, sending)
	return results, nil
}

func (m *memory) settle(st Settlement) {
	r, now := m.byClaim(st.ClaimID), m.now()
	if r == nil || !r.State.InFlight() && r.State != StateUnknown && (r.State != StateDeferred || st.Outcome.State != StateSent) {
		return
	}
	inDoubt := !r.UnknownSince.IsZero() && !r.UnknownSince.Equal(r.HandedOffAt) // because of an earlier attempt
	r.State, r.Reason, r.SMTPCode, r.SMTPReply = st.Outcome.State, st.Outcome.Reason, st.Outcome.SMTPCode, st.Outcome.SMTPReply
	if r.State == StateFailed && inDoubt {
		r.State, r.Reason = StateUnknown, ReasonReplyLost
	}
	if st.KeepAttempt {
		r.Attempt--
		r.RetrySince = now
	}
	switch {
	case st.Outcome.State == StateUnknown:
		r.UnknownSince = firstOf(r.UnknownSince, r.HandedOffAt)
	case !inDoubt:
		r.UnknownSince = time.Time{}
	}
	r.HandedOffAt = firstOf(r.HandedOffAt, r.UnknownSince)
	r.LeaseUntil, r.RetryAt, r.FinishedAt = time.Time{}, time.Time{}, now
	if r.State == StateDeferred {
		r.RetryAt, r.FinishedAt = now.Add(st.RetryIn), time.Time{}
	}
	s := m.subjects[r.RequestID]
	if st.Outcome.Suppress {
		s.suppressed = true
	}
	if r.State == StateDeferred || r.State == StateUnknown {
		if wake := firstOf(r.RetryAt, now); s.wake.IsZero() || s.wake.After(wake) {
			s.wake = wake
		}
	}
}

func (m *memory) handOff(h HandOff, lease time.Duration) (reason Reason, ours bool) {
	r, now := m.byClaim(h.ClaimID), m.now()
	if r == nil || !r.State.InFlight() {
		return "", false
	}
	s := m.subjects[r.RequestID]
	r.Recipient, r.MessageID = h.Recipient, h.MessageID
	if reason = s.closedFor(h, now); reason == "" {
		r.State, r.HandedOffAt, r.LeaseUntil = StateSending, now, now.Add(lease)
		return reason, true
	}
	r.LeaseUntil, r.HandedOffAt = time.Time{}, r.UnknownSince
	if reason == ReasonRecipientChanged {
		r.Attempt--
		s.wake = now
	}
	switch {
	case !r.UnknownSince.IsZero():
		r.State, r.Reason, r.FinishedAt = StateUnknown, ReasonReplyLost, now
	case reason == ReasonRecipientChanged:
		r.State, r.Reason, r.RetryAt = StateDeferred, reason, now
	default:
		r.State, r.Reason, r.FinishedAt = StateSkipped, reason, now
	}
	return reason, true
}

// firstOf returns the first instant that there is.
func firstOf(instants ...time.Time) time.Time {
	for _, t := range instants {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// closedFor says what forbids a hand-off by everything that can have changed since the plan.
func (s *subject) closedFor(h HandOff, now time.Time) Reason {
	switch {
	case s.request == nil || !s.request.Status.Open():
		return ReasonRequestClosed
	case s.link == nil || !s.link.RevokedAt.IsZero():
		return ReasonLinkRevoked
	case !s.link.CreatedAt.Equal(h.LinkCreatedAt):
		return ReasonLinkReplaced
	case !s.link.ExpiresAt.IsZero() && !s.link.ExpiresAt.After(now):
		return ReasonLinkExpired
	case !s.request.OptedOutAt.IsZero():
		return ReasonOptedOut
	case s.suppressed:
		return ReasonSuppressed
	case s.request.PausedUntil.After(now):
		return ReasonPaused
	case s.request.RecipientEmail != h.Recipient:
		return ReasonRecipientChanged
	default:
		return ""
	}
}

// Renew implements Store.
func (m *memory) Renew(_ context.Context, claims []ClaimID, lease time.Duration) ([]ClaimID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []ClaimID
	for _, id := range claims {
		if r := m.byClaim(id); r != nil && r.State.InFlight() {
			r.LeaseUntil = m.now().Add(lease)
			kept = append(kept, id)
		}
	}
	return kept, nil
}
