package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// queuePin fixes how the statements behind it are planned, or takes that off again, and bounds them
// by the deadline of ctx.
func queuePin(ctx context.Context, batch *pgx.Batch, pinned bool) {
	var limit int64 // milliseconds; 0: none
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(1, time.Until(deadline).Milliseconds())
	}
	batch.Queue(pinSQL, pinned, limit)
}

// queueForApplication queues statements that read the application's tables into a pinned transaction.
// Where these are views, over whatever there is, PostgreSQL plans for them as it sees fit.
func queueForApplication(ctx context.Context, batch *pgx.Batch, views bool, queue func()) {
	if !views {
		queue()
		return
	}
	queuePin(ctx, batch, false)
	queue()
	queuePin(ctx, batch, true)
}
