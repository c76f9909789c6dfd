package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"nudged/scheduler"
)

// failsForARow tells whether a statement failed for what one row of a view holds: a value that does not convert, a
// division by zero, a subquery with two rows, the check of a domain, whatever a function raises. Other rows may well
// be read. What is wrong with the statement, the connection or the server is wrong for all of them.
func failsForARow(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(refusal.Code) < 2 {
		return false
	}
	ofAll := []string{
		"08", "0A", "25", "26", "28", "2D", "3B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "F0", "HV", "XX",
	}
	return !slices.Contains(ofAll, refusal.Code[:2])
}

// ofAView says where to look when a view in the place of a table makes a statement fail. PostgreSQL names the operator
// that it does not find for a column of another type, and neither view nor column. Of a value that a view cannot
// convert it quotes the value, which may be a link or an address: those words go no further.
func ofAView(err error) error {
	const undefinedFunction = "42883"
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && refusal.Code == undefinedFunction:
		return fmt.Errorf("a view in the place of requests, links or documents has a column of another type, such as an id that is not text: %w", err)
	case failsForARow(err):
		return fmt.Errorf("a view in the place of requests, links or documents fails for a row: let it give NULL there (SQLSTATE %s; the server's log has the value)", refusal.Code)
	default:
		return err
	}
}

// unreadable finds those of a pass's requests that a view fails for: in their own rows, or in the documents of a mail
// that is due. It halves what fails until single requests are left. Each try is a savepoint, so that tx goes on.
func unreadable(ctx context.Context, tx pgx.Tx, p scheduler.Pass, ids []string, views bool, known purged) ([]scheduler.Unreadable, error) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		var mailed []string
		err := eachInput(ctx, tx, ids, views, known, func(in scheduler.Input) error {
			if p.Plan(in).Claim != nil {
				mailed = append(mailed, in.RequestID)
			}
			return nil
		})
		if err != nil || len(mailed) == 0 {
			return err
		}
		batch := &pgx.Batch{}
		queueForApplication(ctx, batch, views, func() { batch.Queue(documentsSQL, mailed) })
		return tx.SendBatch(ctx, batch).Close()
	})
	switch {
	case err == nil:
		return nil, nil
	case !failsForARow(err):
		return nil, err
	case len(ids) == 1:
		return []scheduler.Unreadable{{RequestID: ids[0], Err: ofAView(err)}}, nil
	}
	half := len(ids) / 2
	first, err := unreadable(ctx, tx, p, ids[:half], views, known)
	if err != nil {
		return nil, err
	}
	second, err := unreadable(ctx, tx, p, ids[half:], views, known)
	return append(first, second...), err
}

// readable lists the requests of some ids but those that cannot be read, in the same order.
func readable(ids []string, not []scheduler.Unreadable) []string {
	if len(not) == 0 {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.ContainsFunc(not, func(u scheduler.Unreadable) bool { return u.RequestID == id })
	})
}

// UnreadableError says that a view fails for some requests, and how for the first of them.
type UnreadableError struct {
	Count int
	First scheduler.Unreadable
}

func (e *UnreadableError) Error() string {
	if e.Count == 1 {
		return fmt.Sprintf("request %q cannot be read: %s", e.First.RequestID, e.First.Err)
	}
	return fmt.Sprintf("%d requests cannot be read, of which the first is %q: %s", e.Count, e.First.RequestID, e.First.Err)
}

func failure(failed []scheduler.Unreadable) error {
	if len(failed) == 0 {
		return nil
	}
	return &UnreadableError{len(failed), failed[0]}
}

// readOneByOne reads the requests of some ids outside of a transaction, and adds those that a view fails for to failed.
func readOneByOne(ctx context.Context, db querier, ids []string, failed *[]scheduler.Unreadable) ([]scheduler.Input, error) {
	var inputs []scheduler.Input
	for _, id := range ids {
		one, err := readInputs(ctx, db, []string{id}, false, nil)
		switch {
		case failsForARow(err):
			*failed = append(*failed, scheduler.Unreadable{RequestID: id, Err: ofAView(err)})
		case err != nil:
			return nil, err
		}
		inputs = append(inputs, one...)
	}
	return inputs, nil
}
