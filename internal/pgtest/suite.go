package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"nudged/internal/pgserver"
	"nudged/migrations"
)

// suite is what the tests of one package share. All of it is made when first asked for.
type suite struct {
	external string // URL of a server that is not ours; empty: start one

	mu     sync.Mutex
	server *server

	templateMu sync.Mutex // taken before mu
	template   string     // name of the database with the migrations
}

// maintenance returns the URL of the database to create others from.
func (s *suite) maintenance(ctx context.Context) (string, error) {
	if s.external != "" {
		return s.external, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		server, err := startServer(ctx, fastDir(), pgserver.Config{
			Settings: map[string]string{"max_connections": "200"},
		})
		if err != nil {
			return "", err
		}
		s.server = server
	}
	return s.server.ConnString("postgres"), nil
}

// url returns the URL of another database of the same server.
func (s *suite) url(ctx context.Context, database string) (string, error) {
	maintenance, err := s.maintenance(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(maintenance)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s is not a URL of the form postgres://user@host:port/database", EnvURL)
	}
	u.Path = "/" + database
	return u.String(), nil
}

// migrated returns the database that has the migrations, to be copied by each test.
func (s *suite) migrated(ctx context.Context) (string, error) {
	s.templateMu.Lock()
	defer s.templateMu.Unlock()
	if s.template != "" {
		return s.template, nil
	}
	name, err := s.create(ctx, "template0")
	if err != nil {
		return "", err
	}
	target, err := s.url(ctx, name)
	if err == nil {
		_, err = migrations.Up(ctx, target)
	}
	if err != nil {
		return "", errors.Join(err, s.drop(ctx, name))
	}
	s.template = name
	return name, nil
}

func (s *suite) create(ctx context.Context, template string) (string, error) {
	name := "nudged_test_" + strings.ToLower(rand.Text())
	if err := s.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return "", fmt.Errorf("create a test database: %w", err)
	}
	return name, nil
}

func (s *suite) drop(ctx context.Context, database string) error {
	if err := s.execute(ctx, "DROP DATABASE "+database+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop a test database: %w", err)
	}
	return nil
}

func (s *suite) execute(ctx context.Context, sql string) error {
	maintenance, err := s.maintenance(ctx)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, maintenance)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// close removes the template and the server.
func (s *suite) close() error {
	if s.server != nil {
		return s.server.close()
	}
	if s.template == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.drop(ctx, s.template)
}
