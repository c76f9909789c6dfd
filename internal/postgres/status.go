package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// StatusQuery says how much of a Status is wanted.
type StatusQuery struct {
	Late  time.Duration // a slot that waits for longer is late
	Rows  int           // entries of each list, at most
	Count int           // where counting stops, but for Late and OnTime, which stop at three times that
	Days  []time.Time   // where the days to come begin, in rising order, and where the last one ends
}

// Status is how things stand at one instant. Instants are UTC.
type Status struct {
	Now       time.Time // by the database's clock
	Late      int       // slots due and not yet sent, for longer than StatusQuery.Late
	OnTime    int       // slots due and not yet sent, for less
	Oldest    time.Time // due of the oldest of both; zero: there is none
	Unplanned int       // requests that the next passes plan
	Unknown   int       // reminders whose fate is unknown
	Outcomes  []scheduler.Reminder
	Unsettled []scheduler.Reminder // those whose fate is unknown, the oldest first
	Mistakes  []Mistake
	Upcoming  []int // requests whose next slot falls into each of the days
}

// Mistake is a request whose row has a mistake.
type Mistake struct {
	RequestID string
	Problem   scheduler.Problem
	Value     string // what the row says; empty where that may be an address
}

// Status reads how things stand, in one round trip. It costs the same whatever the number of
// requests: only the ends of indexes are read.
func (s *Store) Status(ctx context.Context, q StatusQuery) (Status, error) {
	var status Status
	batch := &pgx.Batch{}
	batch.Queue(statusBacklogSQL, q.Late, q.Count).QueryRow(status.scanBacklog)
	batch.Queue(statusOutcomesSQL, q.Rows).Query(collect(&status.Outcomes, scanOutcome))
	batch.Queue(statusUnknownSQL, q.Rows).Query(collect(&status.Unsettled, scanUnsettled))
	batch.Queue(statusMistakesSQL, q.Rows).Query(collect(&status.Mistakes, pgx.RowToStructByPos[Mistake]))
	batch.Queue(statusUpcomingSQL, q.Days[:len(q.Days)-1], q.Days[1:], q.Count).Query(collect(&status.Upcoming, pgx.RowTo[int]))
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return Status{}, fmt.Errorf("read the status: %w", err)
	}
	return status, nil
}

// collect puts the rows of one statement of a batch into a list.
func collect[T any](list *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, scan)
		return err
	}
}

func (s *Status) scanBacklog(row pgx.Row) error {
	var oldest pgtype.Timestamptz
	err := row.Scan(&s.Now, &s.Late, &s.OnTime, &oldest, &s.Unplanned, &s.Unknown)
	s.Now, s.Oldest = s.Now.UTC(), instant(oldest)
	return err
}

func scanOutcome(row pgx.CollectableRow) (scheduler.Reminder, error) {
	var r scheduler.Reminder
	err := row.Scan(&r.RequestID, &r.LinkCreatedAt, &r.Slot, &r.DueAt, &r.State, &r.Reason, &r.Attempt,
		&r.FinishedAt, &r.SMTPCode, &r.SMTPReply)
	r.LinkCreatedAt, r.DueAt, r.FinishedAt = r.LinkCreatedAt.UTC(), r.DueAt.UTC(), r.FinishedAt.UTC()
	return r, err
}

func scanUnsettled(row pgx.CollectableRow) (scheduler.Reminder, error) {
	var r scheduler.Reminder
	err := row.Scan(&r.RequestID, &r.LinkCreatedAt, &r.Slot, &r.DueAt, &r.State, &r.Reason, &r.Attempt,
		&r.HandedOffAt, &r.ClaimedBy, &r.MessageID, &r.SMTPCode, &r.SMTPReply)
	r.LinkCreatedAt, r.DueAt, r.HandedOffAt = r.LinkCreatedAt.UTC(), r.DueAt.UTC(), r.HandedOffAt.UTC()
	return r, err
}
