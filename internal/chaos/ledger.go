//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// row is one row of the ledger as it is in the end.
type row struct {
	slotKey

	due                 time.Time
	state, reason       string
	claimedBy           string
	recipient           string
	messageID           string
	handedOff, finished time.Time
}

func (r row) String() string {
	return fmt.Sprintf("ledger: %s, due %s: %s %s, claimed by %s, for %s, Message-ID %s, handed off %s, finished %s",
		r.slotKey, stamp(r.due), r.state, r.reason, r.claimedBy, r.recipient, r.messageID, stamp(r.handedOff), stamp(r.finished))
}

// move is one change of a row. Its statement's snapshot was taken between begun and at.
type move struct {
	slotKey

	due                time.Time
	oldState, oldClaim string // empty: the row is new
	state, reason      string
	claim, claimedBy   string
	recipient          string
	handedOff          time.Time
	begun, at          time.Time
}

func (m move) String() string {
	from := m.oldState
	if from == "" {
		from = "nothing"
	}
	return fmt.Sprintf("%s: %s -> %s %s, claim %.8s of %s, for %s, transaction began %s",
		stamp(m.at), from, m.state, m.reason, m.claim, m.claimedBy, m.recipient, stamp(m.begun))
}

func readRows(ctx context.Context, pool *pgxpool.Pool) ([]row, error) {
	found, err := pool.Query(ctx, `
		SELECT request_id, link_created_at, slot, due_at, state, coalesce(reason, ''), coalesce(claimed_by, ''),
		       coalesce(recipient, ''), coalesce(message_id, ''), handed_off_at, finished_at
		FROM nudged.reminders ORDER BY due_at, request_id`)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	rows, err := pgx.CollectRows(found, func(from pgx.CollectableRow) (row, error) {
		var r row
		var handedOff, finished pgtype.Timestamptz
		err := from.Scan(&r.request, &r.link, &r.slot, &r.due, &r.state, &r.reason, &r.claimedBy,
			&r.recipient, &r.messageID, &handedOff, &finished)
		r.link, r.handedOff, r.finished = r.link.UTC(), handedOff.Time, finished.Time
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return rows, nil
}

func readMoves(ctx context.Context, pool *pgxpool.Pool) ([]move, error) {
	found, err := pool.Query(ctx, `
		SELECT request_id, link_created_at, slot, due_at, coalesce(old_state, ''), coalesce(old_claim, ''), state,
		       coalesce(reason, ''), coalesce(claim, ''), coalesce(claimed_by, ''), coalesce(recipient, ''),
		       handed_off_at, begun_at, at
		FROM chaos.moves ORDER BY n`)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	moves, err := pgx.CollectRows(found, func(from pgx.CollectableRow) (move, error) {
		var m move
		var handedOff pgtype.Timestamptz
		err := from.Scan(&m.request, &m.link, &m.slot, &m.due, &m.oldState, &m.oldClaim, &m.state,
			&m.reason, &m.claim, &m.claimedBy, &m.recipient, &handedOff, &m.begun, &m.at)
		m.link, m.handedOff = m.link.UTC(), handedOff.Time
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return moves, nil
}

// unsettled counts the rows that are not in a final state, of slots due at or before the instant.
func unsettled(rows []row, until time.Time) []row {
	var open []row
	for _, r := range rows {
		if !final(r.state) && !r.due.After(until) {
			open = append(open, r)
		}
	}
	return open
}

func final(state string) bool {
	return state == "sent" || state == "failed" || state == "unknown" || state == "skipped"
}
