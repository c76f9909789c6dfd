package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"nudged/migrations"
)

// envEnd makes TestEnding end this test binary in the way it names.
const envEnd = "NUDGED_TEST_END"

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestNewHasTheMigrations(t *testing.T) {
	t.Parallel()
	conn := connect(t, New(t))
	if err := migrations.Check(t.Context(), conn); err != nil {
		t.Error(err)
	}
}

func TestEmptyHasNothing(t *testing.T) {
	t.Parallel()
	var exists bool
	err := connect(t, Empty(t)).QueryRow(t.Context(), "SELECT to_regnamespace('nudged') IS NOT NULL").Scan(&exists)
	if err != nil || exists {
		t.Errorf("schema nudged exists = %t, %v", exists, err)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	one, other := connect(t, New(t)), connect(t, New(t))
	if _, err := one.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
		t.Errorf("the other database has the table too: %v", err)
	}
}

func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	var url string
	var conn *pgx.Conn
	t.Run("user", func(t *testing.T) {
		url = New(t)
		var err error
		if conn, err = pgx.Connect(t.Context(), url); err != nil { // and never closes it
			t.Fatal(err)
		}
	})
	defer conn.Close(t.Context())
	_, err := pgx.Connect(t.Context(), url)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "3D000" {
		t.Errorf("connecting to the database of a test that ended: %v, want that it does not exist", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 8
	var (
		mu   sync.Mutex
		urls = map[string]bool{}
	)
	t.Run("all", func(t *testing.T) {
		for i := range many {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				url := New(t)
				connect(t, url)
				mu.Lock()
				defer mu.Unlock()
				urls[url] = true
			})
		}
	})
	if len(urls) != many {
		t.Errorf("%d different databases for %d tests", len(urls), many)
	}
}

func TestOwnServerCanBeRestarted(t *testing.T) {
	t.Parallel()
	server := OwnServer(t)
	url := server.ConnString("postgres")
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(t.Context(), connect(t, url)); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeftHoweverItEnds(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"pass", "fail", "leak", "panic", "kill"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			temp, err := os.MkdirTemp(fastDir(), "pgtest-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(temp)
			if err := os.Chmod(temp, 0o711); err != nil {
				t.Fatal(err)
			}
			out, err := rerun(t, envEnd+"="+end, "TMPDIR="+temp, EnvURL+"=", "PGSSLMODE=require", "PGSERVICE=elsewhere").CombinedOutput()
			if (err == nil) != (end == "pass") {
				t.Fatalf("the run ended with %v:\n%s", err, out)
			}
			var pid int
			_, after, _ := strings.Cut(string(out), "postmaster ")
			if _, err := fmt.Sscan(after, &pid); err != nil {
				t.Fatalf("no server was started:\n%s", out)
			}
			// Only the end by a signal or a panic leaves the work to the sweeper.
			eventually(t, "folder and server are gone", func() bool {
				entries, err := os.ReadDir(temp)
				return err == nil && len(entries) == 0 && !alive(pid)
			})
		})
	}
}

func TestServerOfTheEnvironment(t *testing.T) {
	t.Parallel()
	server := OwnServer(t)
	out, err := rerun(t, envEnd+"=pass", EnvURL+"="+server.ConnString("postgres")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	var databases, created int
	err = connect(t, server.ConnString("postgres")).QueryRow(t.Context(),
		"SELECT count(*), max(oid::bigint) FROM pg_database").Scan(&databases, &created)
	if err != nil {
		t.Fatal(err)
	}
	if databases != 3 { // postgres, template0, template1
		t.Errorf("%d databases are left", databases-3)
	}
	_, after, _ := strings.Cut(string(out), "port ")
	if !strings.HasPrefix(after, fmt.Sprint(server.Port())) {
		t.Errorf("the tests did not use port %d:\n%s", server.Port(), out)
	}
}

// TestEnding is run by other tests, in a process of its own.
func TestEnding(t *testing.T) {
	end := os.Getenv(envEnd)
	if end == "" {
		t.Skip("only for other tests")
	}
	var pid int
	conn := connect(t, New(t))
	err := conn.QueryRow(t.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int").Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("postmaster", pid, "port", conn.Config().Port)
	switch end {
	case "fail":
		t.Fatal("failed on purpose")
	case "leak":
		go func() { select {} }()
	case "panic":
		panic("on purpose")
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func rerun(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnding$")
	cmd.Env = append(os.Environ(), environment...)
	return cmd
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// eventually polls what no signal tells: the fate of processes that are not our children.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		case <-tick.C:
		}
	}
}

// alive takes a zombie for dead: in a container nobody may reap the children of the dead.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z")
}

func BenchmarkNew(b *testing.B) {
	New(b)
	for b.Loop() {
		New(b)
	}
}
