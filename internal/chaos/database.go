//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/internal/pgserver"
	"nudged/migrations"
)

// trapsSQL installs what the run adds to the schema: triggers that let writes of the ledger fail, or
// hang before they begin, above all new claims, which others may overtake; and one that keeps a
// history of the ledger. The instant at which the history is written lies behind the snapshot of
// the statement that wrote the ledger.
const trapsSQL = `
CREATE SCHEMA chaos;
CREATE TABLE chaos.weather (fail float8 NOT NULL, hang float8 NOT NULL);
INSERT INTO chaos.weather VALUES (0, 0.03);
CREATE TABLE chaos.moves (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_id text, link_created_at timestamptz, slot text, due_at timestamptz,
    old_state text, old_claim text, state text, reason text, claim text, claimed_by text, recipient text,
    handed_off_at timestamptz, begun_at timestamptz, at timestamptz);
CREATE FUNCTION chaos.fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < (SELECT fail FROM chaos.weather) THEN
        RAISE EXCEPTION 'injected serialization failure' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION chaos.hang() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < (SELECT hang FROM chaos.weather) THEN
        PERFORM pg_sleep(CASE TG_OP WHEN 'INSERT' THEN 0.5 + 1.5 * random() ELSE 0.5 * random() END);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR (OLD.state, OLD.reason, OLD.claim_id, OLD.handed_off_at)
       IS DISTINCT FROM (NEW.state, NEW.reason, NEW.claim_id, NEW.handed_off_at) THEN
        INSERT INTO chaos.moves (request_id, link_created_at, slot, due_at, old_state, old_claim, state, reason,
                                 claim, claimed_by, recipient, handed_off_at, begun_at, at)
        VALUES (NEW.request_id, NEW.link_created_at, NEW.slot, NEW.due_at,
                CASE TG_OP WHEN 'UPDATE' THEN OLD.state END, CASE TG_OP WHEN 'UPDATE' THEN OLD.claim_id::text END,
                NEW.state, NEW.reason, NEW.claim_id::text, NEW.claimed_by, NEW.recipient, NEW.handed_off_at,
                now(), clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON nudged.reminders
    FOR EACH ROW EXECUTE FUNCTION chaos.fail();
CREATE TRIGGER hang BEFORE INSERT OR UPDATE ON nudged.reminders
    FOR EACH STATEMENT EXECUTE FUNCTION chaos.hang();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON nudged.reminders
    FOR EACH ROW EXECUTE FUNCTION chaos.note();`

// database is the server and what is done to it.
type database struct {
	server *pgserver.Server
	pool   *pgxpool.Pool // of the application and the judge
	draw   *rand.Rand
	tally  *tally

	mu      sync.Mutex
	outages []span // in which sessions were cut
}

// connect makes the pool of the application. A database that is read-only by default is not so for it.
func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "off"
	config.ConnConfig.RuntimeParams["application_name"] = "application"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.MaxConns = clients + hesitants + 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

func newDatabase(ctx context.Context, cfg Config, tally *tally) (*database, error) {
	url := cfg.Database.ConnString("postgres")
	if _, err := migrations.Up(ctx, url); err != nil {
		return nil, err
	}
	pool, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, trapsSQL); err != nil {
		pool.Close()
		return nil, fmt.Errorf("install the traps: %w", err)
	}
	return &database{server: cfg.Database, pool: pool, draw: newDraw(cfg.Seed, "database"), tally: tally}, nil
}

func (d *database) choices() []choice {
	const second = time.Second
	return []choice{
		{do: "restart", weight: 2, most: second / 10},
		{do: "crash", weight: 2, most: second},
		{do: "terminate sessions", weight: 3, least: second / 5, most: second},
		{do: "read-only", weight: 2, least: second / 2, most: 2 * second},
		{do: "serialization failures", weight: 2, least: second, most: 3 * second},
		{do: "slow writes", weight: 3, least: second, most: 4 * second},
	}
}

// do plays one step on the database and notes when sessions were cut.
func (d *database) do(ctx context.Context, s step) error {
	d.tally.add("database: " + s.do)
	begun := time.Now()
	err := d.trouble(ctx, s)
	if s.do != "serialization failures" && s.do != "slow writes" {
		d.mu.Lock()
		d.outages = append(d.outages, span{what: s.do, from: begun, to: time.Now()})
		d.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("database: %s: %w", s.do, err)
	}
	return nil
}

func (d *database) trouble(ctx context.Context, s step) error {
	steady := context.WithoutCancel(ctx) // what is broken is mended, whenever the storm ends
	switch s.do {
	case "restart":
		return d.server.Restart(steady)
	case "crash":
		if err := d.server.Kill(); err != nil {
			return err
		}
		pause(ctx, s.lasts)
		return d.server.Restart(steady)
	case "terminate sessions":
		for end := time.Now().Add(s.lasts); time.Now().Before(end); {
			if err := d.terminateSessions(steady); err != nil {
				return err
			}
			if !pause(ctx, between(d.draw, 20*time.Millisecond, 300*time.Millisecond)) {
				break
			}
		}
		return nil
	case "read-only":
		if err := d.exec(steady, `ALTER SYSTEM SET default_transaction_read_only = on`); err != nil {
			return err
		}
		if err := d.exec(steady, `SELECT pg_reload_conf()`); err != nil {
			return err
		}
		if err := d.terminateSessions(steady); err != nil {
			return err
		}
		pause(ctx, s.lasts)
		return d.writable(steady)
	case "serialization failures":
		return d.weather(ctx, s, `UPDATE chaos.weather SET fail = 0.1`)
	default:
		return d.weather(ctx, s, `UPDATE chaos.weather SET hang = 0.1`)
	}
}

func (d *database) weather(ctx context.Context, s step, sql string) error {
	steady := context.WithoutCancel(ctx)
	if err := d.exec(steady, sql); err != nil {
		return err
	}
	pause(ctx, s.lasts)
	return d.exec(steady, `UPDATE chaos.weather SET fail = 0, hang = 0.03`)
}

// terminateSessions ends about half of the daemons' sessions.
func (d *database) terminateSessions(ctx context.Context) error {
	return d.exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'nudged' AND random() < 0.5`)
}

// heal undoes whatever is left of the storm.
func (d *database) heal(ctx context.Context) error {
	if err := d.exec(ctx, `UPDATE chaos.weather SET fail = 0, hang = 0`); err != nil {
		return err
	}
	return d.writable(ctx)
}

func (d *database) writable(ctx context.Context) error {
	if err := d.exec(ctx, `ALTER SYSTEM RESET default_transaction_read_only`); err != nil {
		return err
	}
	return d.exec(ctx, `SELECT pg_reload_conf()`)
}

// exec repeats a statement until it succeeds: a session of the pool may have died in a restart.
func (d *database) exec(ctx context.Context, sql string) error {
	return persist(ctx, func() error {
		_, err := d.pool.Exec(ctx, sql)
		return err
	})
}

// persistence bounds how long the application tries to get one thing done.
const persistence = 30 * time.Second

// persist does something that may be repeated until it succeeds.
func persist(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, persistence)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
