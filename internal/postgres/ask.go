package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// Events lists what people did about one request, its addresses and the database, the oldest first.
func (s *Store) Events(ctx context.Context, requestID string) ([]scheduler.Event, error) {
	rows, err := s.pool.Query(ctx, eventsSQL, requestID)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (scheduler.Event, error) {
		var e scheduler.Event
		var at, link pgtype.Timestamptz
		err := row.Scan(&at, &e.Actor, &e.Action, &link, &e.Slot, &e.Address, &e.Detail, &e.Why)
		e.At, e.LinkCreatedAt = instant(at), instant(link)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return list, nil
}

// RequestsOf lists the ids of the requests that have an address now or had a mail go to it, the newest
// link first, at most so many, and how many there are. Upper and lower case are the same, as for
// suppressions. It reads whole tables: nothing for the daemon.
func (s *Store) RequestsOf(ctx context.Context, address string, most int) (ids []string, all int, err error) {
	rows, err := s.pool.Query(ctx, requestsOfSQL, address, most)
	if err != nil {
		return nil, 0, fmt.Errorf("look for the requests of an address: %w", ofAView(err))
	}
	ids, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id string, err error) {
		return id, row.Scan(&id, &all)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("look for the requests of an address: %w", ofAView(err))
	}
	return ids, all, nil
}

// Installation is whose database this is.
type Installation struct {
	Environment string // of the daemon that adopted it; empty: none did
	Same        bool   // it is the very database that was adopted, and no restored copy
	PlannedWith string // fingerprint of the configuration, zone data and schema that a daemon planned with last; empty: none yet
}

// Installation reads whose database this is, at the time of asking.
func (s *Store) Installation(ctx context.Context) (Installation, error) {
	var i Installation
	err := s.pool.QueryRow(ctx, installationSQL).Scan(&i.Environment, &i.Same, &i.PlannedWith)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return i, fmt.Errorf("read the installation: %w", err)
	}
	return i, nil
}

// Refusal says why a daemon of this environment sends nothing here; nil: it is its database, or nobody's yet.
func (i Installation) Refusal(environment string) error {
	if i.Environment == "" || i.Environment == environment && i.Same {
		return nil
	}
	return &AdoptionError{Have: i.Environment, Want: environment, Copy: !i.Same}
}

// Ours returns an *AdoptionError where this database is no longer the one that Adopt found, for what writes
// besides the passes. It asks the database: the last pass may be long ago.
func (s *Store) Ours(ctx context.Context) error {
	installed, err := s.Installation(ctx)
	if err != nil {
		return err
	}
	if refusal := refusalOf(installed.Environment, *s.environment.Load(), installed.Same); refusal != nil {
		return refusal
	}
	return nil
}
