package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/internal/pgtest"
	"nudged/internal/smtptest"
	"nudged/migrations"
)

// newSiteOnOwnServer is a site whose PostgreSQL the test may stop.
func newSiteOnOwnServer(t *testing.T, smtp smtptest.Config) (*site, func(context.Context) error, func(context.Context) error) {
	t.Helper()
	server := pgtest.OwnServer(t)
	s := &site{
		t: t, dir: t.TempDir(), url: server.ConnString("postgres"), smtp: smtptest.Start(t, smtp),
		binary: os.Getenv("NUDGED_TEST_BINARY"),
	}
	if _, err := migrations.Up(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.db = pool
	t.Cleanup(pool.Close)
	return s, server.Stop, server.Restart
}

// S01: PostgreSQL goes away in the middle of 1,000 due mails and comes back. All is recorded
// rightly, nothing is sent twice, and the daemon goes on by itself.
func TestDatabaseAwayInTheMiddle(t *testing.T) {
	const due, away = 1000, 30 * time.Second
	s, stop, restart := newSiteOnOwnServer(t, smtptest.Config{DiscardData: false})
	s.rate = 150
	s.configure("")
	s.due(due)
	p := s.start().ready()
	s.wait("200 messages", func() bool { return len(s.smtp.Accepted()) >= 200 })
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wait("/-/ready to say so", func() bool { status, _ := p.get("/-/ready"); return status == http.StatusServiceUnavailable })
	if status, _ := p.get("/-/healthy"); status != http.StatusOK {
		t.Errorf("/-/healthy answers %d in a short outage, want 200", status)
	}
	before := len(s.smtp.Accepted())
	time.Sleep(away) // the outage itself: nothing happens that could be waited for
	if extra := len(s.smtp.Accepted()) - before; extra > 8 {
		t.Errorf("%d messages left while the database was away, more than the window", extra)
	}
	if err := restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wait("every reminder to end", func() bool { return s.rowsIfUp()["sent/"] == due })
	if n := s.acceptedOnce(); n != due || len(s.smtp.Accepted()) != due {
		t.Errorf("the server accepted %d messages, %d different ones; want %d", len(s.smtp.Accepted()), n, due)
	}
	p.ready().stop()
	if n := strings.Count(p.log.String(), "the pass failed"); n > 1 {
		t.Errorf("one outage was logged %d times", n)
	}
}

// rowsIfUp is rows for a database that may be away.
func (s *site) rowsIfUp() map[string]int {
	if s.db.Ping(context.Background()) != nil {
		return nil
	}
	return s.rows()
}

// A connection that is killed, a database that turns read-only: the daemon stays up and goes on.
func TestDatabaseTroubles(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	p := s.start().ready()
	var name string
	if err := s.db.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	terminate := `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nudged' AND datname = current_database()`
	s.exec(`ALTER DATABASE ` + name + ` SET default_transaction_read_only = on`)
	s.exec(terminate)
	s.wait("/-/ready to say so", func() bool { status, _ := p.get("/-/ready"); return status == http.StatusServiceUnavailable })
	if _, err := s.db.Exec(t.Context(), `SET default_transaction_read_only = off; ALTER DATABASE `+name+` RESET default_transaction_read_only`); err != nil {
		t.Fatal(err)
	}
	s.exec(terminate)
	p.ready()
	s.exec(`SET default_transaction_read_only = off`)
	s.db.Reset()
	s.due(20)
	for range 5 {
		s.exec(terminate)
	}
	s.waitRows("sent/", 20)
	if n := s.acceptedOnce(); n != 20 || len(s.smtp.Accepted()) != 20 {
		t.Errorf("the server accepted %d messages, want 20", len(s.smtp.Accepted()))
	}
	p.stop()
}

// D10: a serialization failure on the result is retried alone; the mail is not sent again.
func TestSerializationFailureOnTheOutcome(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`CREATE SEQUENCE public.failures;
		CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.state = 'sent' AND nextval('public.failures') <= 3 THEN
				RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail BEFORE UPDATE ON nudged.reminders FOR EACH ROW EXECUTE FUNCTION public.fail()`)
	s.due(1)
	s.start().ready()
	s.waitRows("sent/", 1)
	if n := len(s.smtp.Accepted()); n != 1 {
		t.Errorf("the server accepted %d messages, want 1", n)
	}
}

func TestNoTransactionIsOpenDuringSMTP(t *testing.T) {
	release := make(chan struct{})
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Action{}.Until(release))})
	s.due(1)
	s.start().ready()
	s.wait("the dot", func() bool { return s.smtp.Reached(smtptest.StageDot) == 1 })
	for range 20 {
		var open int
		err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nudged'
			AND datname = current_database() AND state LIKE 'idle in transaction%'
			AND state_change < now() - interval '50 milliseconds'`).Scan(&open)
		if err != nil || open != 0 {
			t.Fatalf("%d transactions are open while SMTP is spoken (%v)", open, err)
		}
		s.exec(`SELECT nudged.touch('r-1')`)
		s.waitPlanned()
	}
	close(release)
	s.waitRows("sent/", 1)
}

// A worker frozen past its lease: after the claim, and after the hand-off. No second message.
func TestFrozenPastTheLease(t *testing.T) {
	t.Run("after the claim", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, smtptest.Config{})
		s.rate = 0.4 // the second reminder waits two and a half seconds in the queue
		s.configure("")
		s.due(2)
		frozen := s.start().ready()
		s.waitRows("sent/", 1)
		frozen.freeze()
		s.rate = 0
		s.configure("")
		s.start().ready()
		s.waitRows("sent/", 2)
		frozen.thaw()
		s.passes(10)
		if n := s.acceptedOnce(); n != 2 || len(s.smtp.Accepted()) != 2 {
			t.Errorf("the server accepted %d messages, want 2", len(s.smtp.Accepted()))
		}
	})
	t.Run("after the hand-off", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		s := newSite(t, smtptest.Config{Script: smtptest.At(smtptest.StageDATA, smtptest.Action{}.Until(release))})
		s.due(1)
		frozen := s.start().ready()
		s.wait("DATA", func() bool { return s.smtp.Reached(smtptest.StageDATA) == 1 })
		frozen.freeze()
		close(release)
		other := s.start().ready()
		s.waitRows("unknown/worker_lost", 1)
		s.wait("a line about it", func() bool {
			return strings.Contains(other.log.String(), "outcome=unknown reason=worker_lost") && strings.Contains(other.log.String(), "slot=3d")
		})
		frozen.thaw()
		s.wait("the frozen worker to give up", func() bool { return s.rows()["unknown/worker_lost"] == 0 || len(s.smtp.Open()) < 3 })
		s.passes(10)
		if n := len(s.smtp.Accepted()); n > 1 {
			t.Errorf("the server accepted %d messages, want at most 1", n)
		}
	})
}

func (p *process) freeze() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) thaw() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// passes lets so many passes look at every request.
func (s *site) passes(n int) {
	s.t.Helper()
	for range n {
		s.exec(`SELECT nudged.touch(id) FROM nudged.requests`)
		s.waitPlanned()
	}
}

// S14: two replicas through PgBouncer in transaction mode, one of them killed.
func TestThroughPgBouncer(t *testing.T) {
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		needsPackage(t, "pgbouncer")
	}
	s := newSite(t, smtptest.Config{})
	s.rate = 100
	s.configure("")
	direct := s.url
	s.url = startPgBouncer(t, binary, direct)
	s.due(300)
	victim := s.start().ready()
	s.start().ready()
	s.wait("60 messages", func() bool { return len(s.smtp.Accepted()) >= 60 })
	victim.kill()
	s.wait("every slot to end", func() bool { rows := s.rows(); return rows["sent/"]+rows["unknown/worker_lost"] == 300 })
	if n := s.acceptedOnce(); n != len(s.smtp.Accepted()) || n < s.rows()["sent/"] {
		t.Errorf("the server accepted %d messages, %d different ones; the ledger has %v", len(s.smtp.Accepted()), n, s.rows())
	}
	if unknown := s.rows()["unknown/worker_lost"]; unknown > 8 {
		t.Errorf("%d unknown outcomes, more than one window", unknown)
	}
	s.settleByRecord()
	s.waitRows("sent/", 300)
	if n := s.acceptedOnce(); n != 300 || len(s.smtp.Accepted()) != 300 {
		t.Errorf("the server accepted %d messages, %d different ones; want 300", len(s.smtp.Accepted()), n)
	}
}

// settleByRecord does what a person does who has the mail server's own record: each unknown outcome is
// resolved as it says.
func (s *site) settleByRecord() {
	s.t.Helper()
	accepted := map[string]bool{}
	for _, message := range s.smtp.Accepted() {
		accepted[message.To[0]] = true
	}
	rows, err := s.db.Query(s.t.Context(), `SELECT request_id, slot, recipient FROM nudged.reminders WHERE state = 'unknown'`)
	if err != nil {
		s.t.Fatal(err)
	}
	var request, slot, recipient string
	var unknown [][3]string
	if _, err := pgx.ForEachRow(rows, []any{&request, &slot, &recipient}, func() error {
		unknown = append(unknown, [3]string{request, slot, recipient})
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	for _, u := range unknown {
		verdict := "--not-sent"
		if accepted[u[2]] {
			verdict = "--sent"
		}
		s.want("", "resolve", u[0], u[1], verdict, "--why", "the record of the mail server")
	}
}

// needsPackage skips on a developer's machine; where everything is installed it is a failure.
func needsPackage(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", name)
	}
	t.Skipf("%s is not installed: this test runs in CI", name)
}

// startPgBouncer puts PgBouncer in transaction mode before a database and returns the URL for it.
func startPgBouncer(t *testing.T, binary, direct string) string {
	t.Helper()
	config, err := pgxpool.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	c := config.ConnConfig
	dir := t.TempDir()
	port := freePort(t)
	ini := fmt.Sprintf(`[databases]
%[1]s = host=%[2]s port=%[3]d user=%[4]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[5]d
auth_type = any
pool_mode = transaction
max_client_conn = 100
default_pool_size = 5
unix_socket_dir =
ignore_startup_parameters = extra_float_digits
`, c.Database, c.Host, c.Port, c.User, port)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, file)
	if os.Geteuid() == 0 { // PgBouncer refuses root
		for path := dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	log := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of pgbouncer:\n%s", log)
		}
	})
	// Transaction mode shares server connections: prepared statements must not outlive a query.
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?default_query_exec_mode=exec", c.User, port, c.Database)
}
