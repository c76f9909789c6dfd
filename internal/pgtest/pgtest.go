package pgtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudged/internal/pgserver"
)

// EnvURL names the environment variable with the URL of a server to use instead of an own one.
// Its user must be allowed to create databases.
const EnvURL = "NUDGED_TEST_DATABASE_URL"

// patience bounds every single step: a start, a creation, a removal.
const patience = time.Minute

// current is set by Main for as long as the tests run: New knows nothing but its test.
var current atomic.Pointer[suite] //nolint:gochecknoglobals // testing.M hands nothing to a test

// Main runs the tests of a package, removes what they used and returns the exit status. It fails
// the run where goroutines outlive the tests; options say which may.
func Main(m *testing.M, options ...goleak.Option) int {
	s := &suite{external: os.Getenv(EnvURL)}
	if err := forgetEnvironment(s.external != ""); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	current.Store(s)
	code := m.Run()
	current.Store(nil)
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code
	}
	if err := goleak.Find(options...); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return 0
}

// forgetEnvironment leaves the tests, and the programs they start, nothing of how whoever runs them uses nudged and
// PostgreSQL elsewhere. A server that is not ours may need what is said about reaching it.
func forgetEnvironment(external bool) error {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		ours := strings.HasPrefix(name, "NUDGED_TEST_") || name == pgserver.EnvBin
		if !strings.HasPrefix(name, "NUDGED_") || ours {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("unset %s: %w", name, err)
		}
	}
	if external {
		return nil
	}
	return pgserver.ForgetEnvironment()
}

// New returns the URL of a fresh database that has every migration. It is dropped with the test.
func New(t testing.TB) string {
	t.Helper()
	return database(t, (*suite).migrated)
}

// Empty returns the URL of a fresh database that has nothing. It is dropped with the test.
func Empty(t testing.TB) string {
	t.Helper()
	return database(t, func(*suite, context.Context) (string, error) { return "template0", nil })
}

// OwnServer starts a durable server on disk for one test, to be stopped, killed and restarted by
// it. It has no database of ours: apply the migrations to its database postgres.
func OwnServer(t testing.TB) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := startServer(ctx, os.TempDir(), pgserver.Config{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.close(); err != nil {
			t.Error(err)
		}
	})
	return server.Server
}

func database(t testing.TB, template func(*suite, context.Context) (string, error)) string {
	t.Helper()
	s := running(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	from, err := template(s, ctx)
	if err != nil {
		t.Fatal(err)
	}
	name, err := s.create(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Error(err)
		}
	})
	url, err := s.url(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func running(t testing.TB) *suite {
	t.Helper()
	s := current.Load()
	if s == nil {
		t.Fatal("pgtest: the package's TestMain must call pgtest.Main")
	}
	return s
}
