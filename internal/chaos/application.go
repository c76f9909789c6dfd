//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// application is what writes requests and links: a few clients, each with requests of its own, so
// that changes of one request are in an order that is known.
type application struct {
	pool    *pgxpool.Pool
	seed    uint64
	tally   *tally
	clients []*client

	mu         sync.Mutex
	suppressed map[string]time.Time // addresses, and by when that was surely committed
}

// client is one user of the application.
type client struct {
	app      *application
	name     string
	draw     *rand.Rand
	subjects []*subject
	byID     map[string]*subject
}

const clients = 3

func newApplication(pool *pgxpool.Pool, seed uint64, tally *tally) *application {
	a := &application{pool: pool, seed: seed, tally: tally, suppressed: map[string]time.Time{}}
	for i := range clients {
		name := fmt.Sprintf("c%d", i)
		a.clients = append(a.clients, &client{app: a, name: name, draw: newDraw(seed, name), byID: map[string]*subject{}})
	}
	return a
}

// subjects returns every request by its id. The clients must have ended.
func (a *application) subjects() map[string]*subject {
	all := map[string]*subject{}
	for _, c := range a.clients {
		for _, s := range c.subjects {
			all[s.id] = s
		}
	}
	return all
}

// clock reads the database's clock, outside of any transaction that matters.
func (a *application) clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := persist(ctx, func() error {
		return a.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	})
	return now, err
}

// change brings a request into another state and notes when. It may be broken off by an outage in
// the middle, even of its COMMIT, and is then repeated: it writes absolute values.
func (c *client) change(ctx context.Context, s *subject, cause string, to state) error {
	c.app.tally.add("application: " + cause)
	v := version{state: to, cause: cause}
	hold := time.Duration(0)
	if c.draw.Float64() < 0.2 {
		hold = between(c.draw, 0, 150*time.Millisecond)
	}
	err := persist(ctx, func() error {
		return pgx.BeginFunc(ctx, c.app.pool, func(tx pgx.Tx) error {
			if err := c.begin(ctx, tx, &v.begin); err != nil {
				return err
			}
			if err := write(ctx, tx, s, to); err != nil {
				return err
			}
			pause(ctx, hold)
			return nil
		})
	})
	if err == nil {
		v.end, err = c.app.clock(ctx)
	}
	if err != nil {
		return fmt.Errorf("application: %s %s: %w", cause, s.id, err)
	}
	s.versions = append(s.versions, v)
	return nil
}

// begin reads the clock before the first try of a change writes anything.
func (c *client) begin(ctx context.Context, tx pgx.Tx, at *time.Time) error {
	if !at.IsZero() {
		return nil
	}
	return tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(at)
}

// write puts a state into the tables. Only what differs is written.
func write(ctx context.Context, tx pgx.Tx, s *subject, to state) error {
	before := state{}
	if len(s.versions) > 0 {
		before = s.now()
	}
	link, request := to, to
	link.status, link.address, link.pausedUntil, link.optedOut = before.status, before.address, before.pausedUntil, before.optedOut
	request.linkCreated, request.url, request.expires, request.revoked = before.linkCreated, before.url, before.expires, before.revoked
	if request != before {
		_, err := tx.Exec(ctx, `
			INSERT INTO nudged.requests (id, account_id, status, recipient_email, recipient_name, title, message, cadence, paused_until, opted_out_at)
			VALUES ($1, 'account', $2, $3, $4, $5, $6, $7, $8, CASE WHEN $9 THEN now() END)
			ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, recipient_email = EXCLUDED.recipient_email,
				paused_until = EXCLUDED.paused_until, opted_out_at = EXCLUDED.opted_out_at, updated_at = now()`,
			s.id, to.status, to.address, markName, markSubject+" "+s.id, markMessage, s.cadence,
			timestamp(to.pausedUntil), to.optedOut)
		if err != nil {
			return err
		}
	}
	if link == before {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO nudged.links (request_id, url, created_at, expires_at, revoked_at)
		VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN now() END)
		ON CONFLICT (request_id) DO UPDATE SET url = EXCLUDED.url, created_at = EXCLUDED.created_at,
			expires_at = EXCLUDED.expires_at, revoked_at = EXCLUDED.revoked_at`,
		s.id, to.url, to.linkCreated, timestamp(to.expires), to.revoked)
	return err
}

// farAway stands for infinity.
func farAway() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }

func timestamp(t time.Time) pgtype.Timestamptz {
	switch {
	case t.IsZero():
		return pgtype.Timestamptz{}
	case t.Equal(farAway()):
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	default:
		return pgtype.Timestamptz{Time: t, Valid: true}
	}
}

// suppress writes down that an address must not be mailed.
func (c *client) suppress(ctx context.Context, address string) error {
	c.app.tally.add("application: suppress")
	err := persist(ctx, func() error {
		_, err := c.app.pool.Exec(ctx, `INSERT INTO nudged.suppressions (address, reason) VALUES ($1, 'a person')
			ON CONFLICT (address) DO NOTHING`, address)
		return err
	})
	if err != nil {
		return fmt.Errorf("application: suppress: %w", err)
	}
	return c.app.noteSuppressed(ctx)
}

// noteSuppressed notes the addresses that are suppressed by now, whoever did it.
func (a *application) noteSuppressed(ctx context.Context) error {
	var addresses []string
	err := persist(ctx, func() error {
		rows, err := a.pool.Query(ctx, `SELECT address FROM nudged.suppressions`)
		if err != nil {
			return err
		}
		addresses, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return fmt.Errorf("read suppressions: %w", err)
	}
	now, err := a.clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, address := range addresses {
		if _, known := a.suppressed[address]; !known {
			a.suppressed[address] = now
		}
	}
	return nil
}

// completeAll closes every request at once.
func (a *application) completeAll(ctx context.Context) error {
	begin, err := a.clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	err = persist(ctx, func() error {
		_, err := a.pool.Exec(ctx, `UPDATE nudged.requests SET status = 'completed' WHERE status <> 'completed'`)
		return err
	})
	if err != nil {
		return fmt.Errorf("complete all requests: %w", err)
	}
	end, err := a.clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	for _, s := range a.subjects() {
		to := s.now()
		to.status = "completed"
		s.versions = append(s.versions, version{state: to, cause: "complete all", begin: begin, end: end})
	}
	return nil
}
