//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// hesitants is how many users of the application cannot make up their mind.
const hesitants = 4

// hesitate begins changes, waits and takes them back, until ctx ends: what nudged does meanwhile finds
// a request locked by a change that never comes. It likes those best whose lease ends first: their
// worker is stuck or gone, and they will have to be tried again.
func (a *application) hesitate(ctx context.Context, user int) error {
	draw := newDraw(a.seed, fmt.Sprintf("hesitant %d", user))
	const shortest, longest = 200 * time.Millisecond, 2200 * time.Millisecond
	for pause(ctx, between(draw, 0, shortest)) {
		if err := a.changeNothing(ctx, between(draw, shortest, longest)); errors.Is(err, errChanged) {
			return err
		}
		// Whatever else ended it, it did not happen.
	}
	return nil
}

var (
	errTakenBack = errors.New("taken back")
	errChanged   = errors.New("a change that was taken back has happened")
)

func (a *application) changeNothing(ctx context.Context, hold time.Duration) error {
	err := pgx.BeginFunc(context.WithoutCancel(ctx), a.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE nudged.requests SET recipient_email = 'nobody@' || recipient_email
			WHERE id = (SELECT m.request_id FROM nudged.reminders m JOIN nudged.requests r ON r.id = m.request_id
			            WHERE m.lease_until IS NOT NULL ORDER BY m.lease_until LIMIT 1 FOR UPDATE OF r SKIP LOCKED)`)
		if err != nil {
			return err
		}
		if tag.RowsAffected() > 0 {
			a.tally.add("application: hesitate")
			pause(ctx, hold)
		}
		return errTakenBack
	})
	if err == nil {
		return errChanged
	}
	return err
}
