package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// restless are the requests that must be looked at although their schedule could not be moved:
// somebody had it locked. Should that transaction roll back, nobody else would wake them. They are
// kept in memory; what a crash loses, the first pass of the next daemon finds.
type restless struct {
	mu     sync.Mutex
	ids    map[string]bool
	healed bool // the ledger was searched for those that an earlier process left
}

func (r *restless) add(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.ids[id] = true
	}
}

// calm forgets those that were woken: all that were asked for but the ones passed over.
func (r *restless) calm(asked, passedOver []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range asked {
		if !slices.Contains(passedOver, id) {
			delete(r.ids, id)
		}
	}
}

// list returns what is to be woken, searching the ledger the first time.
func (r *restless) list(ctx context.Context, tx pgx.Tx) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.healed {
		rows, err := tx.Query(ctx, healSQL)
		if err != nil {
			return nil, fmt.Errorf("search for requests that wake too late: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("search for requests that wake too late: %w", err)
		}
		for _, id := range ids {
			r.ids[id] = true
		}
		r.healed = true
	}
	ids := make([]string, 0, len(r.ids))
	for id := range r.ids {
		ids = append(ids, id)
	}
	return ids, nil
}

// queueWake makes the requests be looked at, and calls passedOver with those that are locked.
func queueWake(batch *pgx.Batch, ids []string, passedOver func([]string)) {
	if len(ids) == 0 {
		return
	}
	batch.Queue(wakeSQL, ids).Query(func(rows pgx.Rows) error {
		locked, err := pgx.CollectRows(rows, pgx.RowTo[string])
		passedOver(locked)
		return err
	})
}
