package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// querier is a pool or a transaction.
type querier interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// readInputs reads what a plan needs about the requests of the given ids, in their order. views: the
// transaction is pinned, and the application's tables are views. known: of what links the ledger was purged, as a pass
// knows from taking them; nil: it is read.
func readInputs(ctx context.Context, db querier, ids []string, views bool, known purged) ([]scheduler.Input, error) {
	var reminders []scheduler.Reminder
	var inputs []scheduler.Input
	batch := &pgx.Batch{}
	batch.Queue(ledgerSQL, ids).Query(func(rows pgx.Rows) (err error) {
		reminders, err = pgx.CollectRows(rows, scanReminder)
		return err
	})
	if known == nil { // behind the ledger: a purge in between is noticed
		known = readPurged(batch, ids)
	}
	queueForApplication(ctx, batch, views, func() {
		batch.Queue(subjectsSQL, ids).Query(func(rows pgx.Rows) (err error) {
			if err := rows.Err(); err != nil { // there are no descriptions then
				return err
			}
			if err := checkInstants(rows.FieldDescriptions()); err != nil {
				return err
			}
			inputs, err = scanInputs(rows, make([]scheduler.Input, 0, len(ids)))
			return err
		})
	})
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	byID := make(map[string]*scheduler.Input, len(inputs))
	for i := range inputs {
		byID[inputs[i].RequestID] = &inputs[i]
	}
	for _, r := range reminders {
		in := byID[r.RequestID]
		in.Reminders = append(in.Reminders, r)
	}
	for i := range inputs {
		in := &inputs[i]
		keepIdentity(in)
		in.Purged = known.of(in.RequestID, in.Link)
	}
	return inputs, nil
}

// What a pass holds in memory of the ledger: so many requests at once, and about so many of their rows, as
// far as the first few tell. A cadence with a short tail leaves a request thousands of rows over the years.
const (
	requestsAtFirst = 10
	requestsAtOnce  = 250
	rowsAtOnce      = 20_000
)

// eachInput reads some requests at a time and calls f with each, in their order.
func eachInput(ctx context.Context, db querier, ids []string, views bool, known purged, f func(scheduler.Input) error) error {
	for n := requestsAtFirst; len(ids) > 0; {
		n = min(n, len(ids))
		inputs, err := readInputs(ctx, db, ids[:n], views, known)
		if err != nil {
			return err
		}
		rows := 0
		for _, in := range inputs {
			rows += len(in.Reminders)
			if err := f(in); err != nil {
				return err
			}
		}
		ids = ids[n:]
		n = min(requestsAtOnce, max(1, n*rowsAtOnce/max(1, rows)))
	}
	return nil
}

// sameLink is how far a created_at may move without being a refresh: an application that writes a
// row back as it read it may cut or round its instants, to milliseconds or to seconds.
const sameLink = time.Second

// keepIdentity gives a link the created_at that the ledger knows it by.
func keepIdentity(in *scheduler.Input) {
	if in.Link == nil {
		return
	}
	var known *scheduler.Reminder
	for i, r := range in.Reminders {
		moved := r.LinkCreatedAt.Sub(in.Link.CreatedAt).Abs() < sameLink
		if moved && (known == nil || r.CreatedAt.After(known.CreatedAt)) {
			known = &in.Reminders[i]
		}
	}
	if known != nil {
		in.Link.CreatedAt = known.LinkCreatedAt
	}
}

// checkInstants refuses an instant without a time zone, as a view over an application's own table may
// have it, a day in the place of an instant, and an instant in that of the deadline, which is a day. The driver
// would take the first two for UTC and cut the last without a word.
func checkInstants(columns []pgconn.FieldDescription) error {
	for _, c := range columns {
		isInstant := c.DataTypeOID == pgtype.TimestampOID || c.DataTypeOID == pgtype.TimestamptzOID
		switch {
		case isInstant && c.Name == "nudged.requests.deadline":
			return fmt.Errorf("%s is an instant: make it a day in the view, as in (due AT TIME ZONE 'Europe/Paris')::date", c.Name)
		case c.DataTypeOID == pgtype.DateOID && c.Name != "nudged.requests.deadline":
			return fmt.Errorf("%s is a day: make it an instant in the view, as in valid_until::timestamp AT TIME ZONE 'Europe/Paris'", c.Name)
		case c.DataTypeOID == pgtype.TimestampOID:
			return fmt.Errorf("%s is a timestamp without time zone: name its zone in the view, as in AT TIME ZONE 'UTC'", c.Name)
		}
	}
	return nil
}

// inputRow is what one row of subjects.sql is scanned into; it is used for all of them.
type inputRow struct {
	requestID                   string
	now, adoptedAt              time.Time
	suppressed                  bool
	hasRequest, hasLink         pgtype.Bool
	account, status, email      pgtype.Text
	name, title, message        pgtype.Text
	cadence, zone, locale       pgtype.Text
	sender, replyTo, why, url   pgtype.Text
	deadline                    pgtype.Date
	paused, opted               pgtype.Timestamptz
	linkCreated, expires, taken pgtype.Timestamptz
	notBefore                   pgtype.Timestamptz
}

// targets are where the columns go, in their order.
func (r *inputRow) targets() []any {
	return []any{
		&r.requestID, &r.now, &r.adoptedAt, &r.notBefore,
		&r.hasRequest, &r.account, &r.status, &r.email, &r.name, &r.title, &r.message, &r.deadline,
		&r.cadence, &r.zone, &r.locale, &r.sender, &r.replyTo, &r.paused, &r.why, &r.opted,
		&r.hasLink, &r.url, &r.linkCreated, &r.expires, &r.taken, &r.suppressed,
	}
}

func (r *inputRow) input() scheduler.Input {
	in := scheduler.Input{
		RequestID: r.requestID, Now: r.now.UTC(), AdoptedAt: r.adoptedAt.UTC(), NotBefore: instant(r.notBefore),
		Suppressed: r.suppressed,
	}
	if r.hasRequest.Bool {
		in.Request = &scheduler.Request{
			ID: r.requestID, AccountID: r.account.String, Status: scheduler.Status(r.status.String),
			RecipientEmail: r.email.String, RecipientName: r.name.String, Title: r.title.String,
			Message: r.message.String, Deadline: date(r.deadline), Cadence: r.cadence.String,
			TimeZone: r.zone.String, Locale: r.locale.String, SenderName: r.sender.String, ReplyTo: r.replyTo.String,
			PausedUntil: instant(r.paused), PauseReason: r.why.String, OptedOutAt: instant(r.opted),
		}
	}
	if r.hasLink.Bool {
		in.Link = &scheduler.Link{
			URL: r.url.String, CreatedAt: instant(r.linkCreated), ExpiresAt: instant(r.expires), RevokedAt: instant(r.taken),
		}
	}
	return in
}

// scanInputs names the request whose row has what does not fit.
func scanInputs(rows pgx.Rows, into []scheduler.Input) ([]scheduler.Input, error) {
	var row inputRow
	_, err := pgx.ForEachRow(rows, row.targets(), func() error {
		into = append(into, row.input())
		return nil
	})
	if _, misfit := errors.AsType[pgx.ScanArgError](err); misfit {
		err = fmt.Errorf("request %q: %w", row.requestID, err)
	}
	return into, err
}

func scanReminder(row pgx.CollectableRow) (scheduler.Reminder, error) {
	var (
		r                                       scheduler.Reminder
		claim                                   pgtype.UUID
		lease, retry, handed, finished, created pgtype.Timestamptz
		linkCreated, due, since, unknown        pgtype.Timestamptz
	)
	err := row.Scan(&r.RequestID, &linkCreated, &r.Slot, &due, &r.State, &r.Reason, &r.Attempt, &claim,
		&r.ClaimedBy, &lease, &retry, &since, &unknown, &r.Recipient, &r.MessageID, &r.SMTPCode, &r.SMTPReply,
		&created, &handed, &finished)
	r.ClaimID = claim.Bytes
	r.LinkCreatedAt, r.DueAt, r.RetrySince = instant(linkCreated), instant(due), instant(since)
	r.UnknownSince = instant(unknown)
	r.LeaseUntil, r.RetryAt, r.CreatedAt = instant(lease), instant(retry), instant(created)
	r.HandedOffAt, r.FinishedAt = instant(handed), instant(finished)
	return r, err
}

// document is one document and the request it belongs to.
type document struct {
	requestID string
	scheduler.Document
}

func scanDocument(row pgx.CollectableRow) (document, error) {
	var d document
	err := row.Scan(&d.requestID, &d.Title, &d.Description, &d.Required, &d.State, &d.RejectionReason)
	return d, err
}

// Load reads all about one request: the input of its plan and its documents. A request that does
// not exist has neither Request nor Link.
func (s *Store) Load(ctx context.Context, requestID string) (scheduler.Input, []scheduler.Document, error) {
	inputs, err := readInputs(ctx, s.pool, []string{requestID}, false, nil)
	if err != nil {
		return scheduler.Input{}, nil, ofAView(err)
	}
	rows, err := s.pool.Query(ctx, documentsSQL, []string{requestID})
	if err != nil {
		return scheduler.Input{}, nil, fmt.Errorf("read documents: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanDocument)
	if err != nil {
		return scheduler.Input{}, nil, fmt.Errorf("read documents: %w", ofAView(err))
	}
	documents := make([]scheduler.Document, len(found))
	for i, d := range found {
		documents[i] = d.Document
	}
	return inputs[0], documents, nil
}
