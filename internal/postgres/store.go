package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/migrations"
	"nudged/scheduler"
)

// Config is how to reach the database.
type Config struct {
	URL string // postgres:// URL or key=value string
}

// Store is the ledger. It is safe for concurrent use.
type Store struct {
	pool        *pgxpool.Pool
	environment atomic.Pointer[string]        // that Adopt was called with
	refusal     atomic.Pointer[AdoptionError] // why the database is not ours; nil: it is
	restless    restless
	turns       turns
	overViews   atomic.Bool // one of the application's tables is a view, as the last pass saw them
}

// Open reads the configuration and makes the pool. It does not connect yet, so that a daemon can
// start before its database.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	config, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "nudged"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make the connection pool: %w", err)
	}
	store := &Store{pool: pool, restless: restless{ids: map[string]bool{}}}
	store.environment.Store(new(string))
	return store, nil
}

// closeTimeout bounds how long a connection is waited for that does not answer any more.
const closeTimeout = 2 * time.Second

// Close closes all connections, and waits for those in use to be given back, but not for ever.
func (s *Store) Close() {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// CheckSchema returns a *migrations.VersionError unless the schema is the one this build knows.
func (s *Store) CheckSchema(ctx context.Context) error { return migrations.Check(ctx, s.pool) }

// AdoptionError says that this database is not the one that was adopted: it belongs to another
// environment, or it is a restored copy.
type AdoptionError struct {
	Have, Want string // environments; no Have: the database does not know any more
	Copy       bool   // it is not the very database that was adopted
}

func (e *AdoptionError) Error() string {
	switch {
	case e.Have == "":
		return "this database is adopted for no environment any more, and its ledger may lack mails that went out: nothing is sent before `nudged adopt`; a restart would take it for a new one"
	case !e.Copy:
		return fmt.Sprintf("this database is adopted for the environment %q and the configuration says %q: nothing is sent; the database url or the environment of the configuration is wrong, "+
			"and `nudged adopt` is right only where the database is meant to change its environment", e.Have, e.Want)
	case e.Have != e.Want:
		return fmt.Sprintf("this database is a copy of the one adopted for %q, and the configuration says %q: nothing is sent before `nudged adopt`", e.Have, e.Want)
	default:
		return fmt.Sprintf("this database is a copy of the one adopted for %q, and its ledger may lack mails that went out: nothing is sent before `nudged adopt`", e.Have)
	}
}

// refusalOf says why a database is not that of an environment; nil: it is.
func refusalOf(have, want string, same bool) *AdoptionError {
	if have == want && same {
		return nil
	}
	return &AdoptionError{Have: have, Want: want, Copy: !same}
}

// judge notes and returns why this database is not ours; nil: it is.
func (s *Store) judge(have, want string, same bool) error {
	s.refusal.Store(refusalOf(have, want, same))
	return s.Refusal()
}

// Refusal says why this database is not ours, as Adopt or the last pass found it; nil: it is, or it was
// not asked yet.
func (s *Store) Refusal() error {
	if refusal := s.refusal.Load(); refusal != nil {
		return refusal
	}
	return nil
}

// Adopt notes the environment and the present instant the first time a daemon meets a database. It
// must succeed before the first pass.
// Afterwards it returns an *AdoptionError where the environment or the database is another one.
func (s *Store) Adopt(ctx context.Context, environment string) error {
	var have string
	var same bool
	err := s.pool.QueryRow(ctx, adoptSQL, environment).Scan(&have, &same)
	if errors.Is(err, pgx.ErrNoRows) { // another replica inserted the row in this very moment
		err = s.pool.QueryRow(ctx, adoptSQL, environment).Scan(&have, &same)
	}
	if err != nil {
		return fmt.Errorf("read the installation: %w", err)
	}
	s.environment.Store(&environment)
	return s.judge(have, environment, same)
}

// Renew extends the leases of claims that this process still works on and returns those it holds.
func (s *Store) Renew(ctx context.Context, claims []scheduler.ClaimID, lease time.Duration) ([]scheduler.ClaimID, error) {
	rows, err := s.pool.Query(ctx, renewSQL, uuids(claims), lease)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	ids := make([]scheduler.ClaimID, len(kept))
	for i, id := range kept {
		ids[i] = id.Bytes
	}
	return ids, nil
}

func uuids(ids []scheduler.ClaimID) []pgtype.UUID {
	out := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		out[i] = uuid(id)
	}
	return out
}

// uuid is NULL for the zero claim id.
func uuid(id scheduler.ClaimID) pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: id != scheduler.ClaimID{}}
}
