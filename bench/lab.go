package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/cadence"
	"nudged/internal/pgserver"
	"nudged/internal/postgres"
	"nudged/migrations"
	"nudged/scheduler"
)

// lab is where the measurements are made: one durable PostgreSQL, one sink.
type lab struct {
	size   size
	dir    string
	server *pgserver.Server
	admin  *pgxpool.Pool
	sink   *sink
	next   int
}

func newLab(ctx context.Context, s size) (_ *lab, err error) {
	if err := pgserver.ForgetEnvironment(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "nudged-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user
		return nil, err
	}
	l := &lab{size: s, dir: dir}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	l.server, err = pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(dir, "pg"), Durable: true,
		Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "8GB", "max_connections": "200"},
	})
	if err != nil {
		return nil, err
	}
	if l.admin, err = pgxpool.New(ctx, l.server.ConnString("postgres")); err != nil {
		return nil, err
	}
	l.sink, err = startSink()
	return l, err
}

func (l *lab) close() {
	if l.sink != nil {
		l.sink.stop()
	}
	if l.admin != nil {
		l.admin.Close()
	}
	if l.server != nil {
		_ = l.server.Kill()
	}
	_ = os.RemoveAll(l.dir)
}

// database is a fresh one with the schema.
type database struct {
	url  string
	name string
	pool *pgxpool.Pool
	lab  *lab
}

func (l *lab) database(ctx context.Context) (*database, error) {
	l.next++
	d := &database{name: fmt.Sprintf("bench%d", l.next), lab: l}
	if _, err := l.admin.Exec(ctx, "CREATE DATABASE "+d.name); err != nil {
		return nil, err
	}
	d.url = l.server.ConnString(d.name)
	if _, err := migrations.Up(ctx, d.url); err != nil {
		return nil, err
	}
	var err error
	d.pool, err = pgxpool.New(ctx, d.url)
	return d, err
}

func (d *database) drop() {
	d.pool.Close()
	_, _ = d.lab.admin.Exec(context.Background(), "DROP DATABASE "+d.name+" WITH (FORCE)")
}

// insert writes n requests and links of the given age, each in one statement.
func (d *database) insert(ctx context.Context, n int, age string) error {
	_, err := d.pool.Exec(ctx, `INSERT INTO nudged.requests (id, account_id, status, recipient_email, recipient_name, title, sender_name)
		SELECT 'r-' || i, 'a-' || i % 100, 'pending', 'r' || i || '@example.net', 'Client ' || i, 'Tax return', 'Ann Accountant'
		FROM generate_series(1, $1::int) i`, n)
	if err != nil {
		return err
	}
	_, err = d.pool.Exec(ctx, `INSERT INTO nudged.links (request_id, url, created_at)
		SELECT 'r-' || i, 'https://upload.example.com/r/' || i, now() - $2::interval - i * interval '1 millisecond'
		FROM generate_series(1, $1::int) i`, n, age)
	return err
}

// planned does what passes did the days before: each schedule wakes when its first slot is due.
func (d *database) planned(ctx context.Context) error {
	_, err := d.pool.Exec(ctx, `UPDATE nudged.schedules s SET wake_at = l.created_at + interval '3 days'
		FROM nudged.links l WHERE l.request_id = s.request_id`)
	return err
}

func (d *database) documents(ctx context.Context, n int) error {
	_, err := d.pool.Exec(ctx, `INSERT INTO nudged.documents (request_id, position, title)
		SELECT 'r-' || i, p, 'Document ' || p FROM generate_series(1, $1::int) i, generate_series(1, 3) p`, n)
	return err
}

// analyze settles the tables that were filled. The ledger is empty, and nobody vacuums an empty table.
func (d *database) analyze(ctx context.Context) error {
	_, err := d.pool.Exec(ctx, "VACUUM ANALYZE nudged.requests, nudged.links, nudged.documents, nudged.schedules")
	return err
}

func (d *database) store(ctx context.Context) (*postgres.Store, error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: d.url})
	if err != nil {
		return nil, err
	}
	return store, store.Adopt(ctx, "bench")
}

func policy() (*scheduler.Policy, error) {
	weekly := "7d"
	c, err := cadence.Parse("default", cadence.Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: &weekly})
	if err != nil {
		return nil, err
	}
	return &scheduler.Policy{
		Cadences: map[string]*cadence.Cadence{"default": c}, DefaultCadence: "default", DefaultZone: time.UTC,
		Limits: scheduler.Limits{
			MaxLateness: 48 * time.Hour, RetryFor: 24 * time.Hour,
			Backoff: scheduler.Backoff{Initial: time.Minute, Max: time.Hour}, Retention: 400 * 24 * time.Hour,
		},
	}, nil
}

// binary builds nudged once.
func (l *lab) binary() (string, error) {
	path := filepath.Join(l.dir, "nudged")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "nudged").Output()
	if err != nil {
		return "", fmt.Errorf("find the module nudged: %w", err)
	}
	cmd := exec.Command("go", "build", "-o", path, "./cmd/nudged")
	cmd.Dir = strings.TrimSpace(string(module)) // with its own dependencies, not those of the peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nudged: %w: %s", err, out)
	}
	return path, nil
}
