package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// Settle records outcomes and hands off claims in one commit. Where a view fails for the row of a hand-off, it would
// hold up what the others wait for: then the outcomes go first, and each hand-off in a commit of its own. A claim
// that the view fails for is left to its lease, and the next pass looks at its request.
func (s *Store) Settle(ctx context.Context, b scheduler.Batch) ([]scheduler.HandOffResult, error) {
	results, err := s.settle(ctx, b)
	if !failsForARow(err) {
		return results, ofAView(err)
	}
	if _, err := s.settle(ctx, scheduler.Batch{Settlements: b.Settlements}); err != nil {
		return nil, err
	}
	for _, h := range b.HandOffs {
		one, err := s.settle(ctx, scheduler.Batch{HandOffs: []scheduler.HandOff{h}, Lease: b.Lease})
		switch {
		case failsForARow(err):
			one = []scheduler.HandOffResult{{ClaimID: h.ClaimID, Reason: scheduler.ReasonLeaseLost, Err: ofAView(err)}}
			s.restless.add(h.RequestID)
		case err != nil:
			return nil, err
		}
		results = append(results, one...)
	}
	return results, nil
}

// settle is one commit and one round trip: a batch outside a transaction block is one implicit transaction.
func (s *Store) settle(ctx context.Context, b scheduler.Batch) ([]scheduler.HandOffResult, error) {
	if len(b.Settlements) == 0 && len(b.HandOffs) == 0 {
		return nil, nil
	}
	batch := &pgx.Batch{}
	queuePin(ctx, batch, true)
	queueSettlements(batch, b.Settlements)
	queueWake(batch, unsettled(b.Settlements), func(locked []string) { s.restless.add(locked...) })
	var results []scheduler.HandOffResult
	queueForApplication(ctx, batch, s.overViews.Load() && len(b.HandOffs) > 0, func() {
		queueHandOffs(batch, b.HandOffs, b.Lease, &results)
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("settle %d outcomes and hand off %d reminders: %w", len(b.Settlements), len(b.HandOffs), err)
	}
	s.restless.add(changed(b.HandOffs, results)...)
	return results, nil
}

// unsettled lists the requests whose reminder is not over: the next pass plans when to go on.
func unsettled(settlements []scheduler.Settlement) []string {
	var ids []string
	for _, st := range settlements {
		if st.Outcome.State == scheduler.StateDeferred || st.Outcome.State == scheduler.StateUnknown {
			ids = append(ids, st.RequestID)
		}
	}
	return ids
}

// changed lists the requests whose address was edited before the hand-off: they are planned anew.
func changed(handOffs []scheduler.HandOff, results []scheduler.HandOffResult) []string {
	requests := make(map[scheduler.ClaimID]string, len(handOffs))
	for _, h := range handOffs {
		requests[h.ClaimID] = h.RequestID
	}
	var ids []string
	for _, r := range results {
		if r.Reason == scheduler.ReasonRecipientChanged {
			ids = append(ids, requests[r.ClaimID])
		}
	}
	return ids
}

func queueSettlements(batch *pgx.Batch, settlements []scheduler.Settlement) {
	if len(settlements) == 0 {
		return
	}
	n := len(settlements)
	var (
		claims              = make([]pgtype.UUID, n)
		requests, slots     = make([]string, n), make([]string, n)
		links               = make([]time.Time, n)
		states              = make([]string, n)
		reasons, replies    = make([]pgtype.Text, n), make([]pgtype.Text, n)
		codes               = make([]pgtype.Int4, n)
		keep                = make([]bool, n)
		retryIn             = make([]time.Duration, n)
		suppressed, because []string
	)
	for i, st := range settlements {
		claims[i], requests[i], links[i], slots[i] = uuid(st.ClaimID), st.RequestID, st.LinkCreatedAt, st.Slot
		states[i], reasons[i] = string(st.Outcome.State), text(string(st.Outcome.Reason))
		codes[i], replies[i] = integer(st.Outcome.SMTPCode), text(st.Outcome.SMTPReply)
		keep[i], retryIn[i] = st.KeepAttempt, st.RetryIn
		if st.Outcome.Suppress {
			for _, address := range append(spellings(st.Recipient), st.Recipient) { // and as SQL lowers it
				suppressed, because = append(suppressed, address), append(because, st.Outcome.SMTPReply)
			}
		}
	}
	batch.Queue(settleSQL, claims, requests, links, slots, states, reasons, codes, replies, keep, retryIn)
	if len(suppressed) > 0 {
		batch.Queue(suppressSQL, suppressed, because)
	}
}

func queueHandOffs(batch *pgx.Batch, handOffs []scheduler.HandOff, lease time.Duration, results *[]scheduler.HandOffResult) {
	if len(handOffs) == 0 {
		return
	}
	n := len(handOffs)
	var (
		claims                 = make([]pgtype.UUID, n)
		requests, slots        = make([]string, n), make([]string, n)
		links                  = make([]time.Time, n)
		recipients, messageIDs = make([]string, n), make([]string, n)
		envelopes              = make([]string, n)
	)
	for i, h := range handOffs {
		claims[i], requests[i], links[i], slots[i] = uuid(h.ClaimID), h.RequestID, h.LinkCreatedAt, h.Slot
		recipients[i], messageIDs[i], envelopes[i] = h.Recipient, h.MessageID, strings.ToLower(h.To)
	}
	batch.Queue(handOffSQL, claims, requests, links, slots, recipients, messageIDs, lease, envelopes).Query(func(rows pgx.Rows) error {
		var claim pgtype.UUID
		var reason scheduler.Reason
		_, err := pgx.ForEachRow(rows, []any{&claim, &reason}, func() error {
			*results = append(*results, scheduler.HandOffResult{ClaimID: claim.Bytes, Reason: reason})
			return nil
		})
		return err
	})
}
