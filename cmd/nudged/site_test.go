package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/internal/pgtest"
	"nudged/internal/smtptest"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nudged-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "nudged")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	os.Setenv("NUDGED_TEST_BINARY", binary)
	return pgtest.Main(m)
}

// site is a database, a mail server and a configuration for real nudged processes.
type site struct {
	t      *testing.T
	dir    string
	config string
	url    string
	db     *pgxpool.Pool
	smtp   *smtptest.Server
	rate   float64 // smtp.rate; 0: no limit
	binary string  // which nudged the next process is
	zones  string  // $ZONEINFO of the next process; empty: the zone data of the host
}

func newSite(t *testing.T, smtp smtptest.Config) *site {
	t.Helper()
	s := &site{
		t: t, dir: t.TempDir(), url: pgtest.New(t), smtp: smtptest.Start(t, smtp), binary: os.Getenv("NUDGED_TEST_BINARY"),
	}
	pool, err := pgxpool.New(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.db = pool
	t.Cleanup(pool.Close)
	s.configure("")
	return s
}

// configure writes the configuration file: quick polls, short leases, and what the test adds.
func (s *site) configure(more string) {
	s.t.Helper()
	s.config = filepath.Join(s.dir, "nudged.yml")
	text := fmt.Sprintf(`environment: test
poll: {every: 200ms, lease: 2s}
smtp: {host: 127.0.0.1, port: %d, tls: none, connections: 4, rate: %g, dial_timeout: 2s, command_timeout: 5s, reply_timeout: 5s}
mail: {from: "Example <reminders@example.com>"}
limits: {retry_backoff: {initial: 1s, max: 2s}}
%s`, s.smtp.Port(), s.rate, more)
	s.writeConfig(text)
}

func (s *site) writeConfig(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) readConfig() string {
	s.t.Helper()
	text, err := os.ReadFile(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// due inserts n pending requests r-1 … r-n whose slot 3d fell due a minute ago.
func (s *site) due(n int) {
	s.t.Helper()
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title, sender_name)
	        SELECT 'r-' || i, 'a', 'pending', 'r' || i || '@example.net', 'Tax return', 'Ann Accountant' FROM generate_series(1, $1::int) i`, n)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at)
	        SELECT 'r-' || i, 'https://example.com/u/' || i, now() - interval '3 days 1 minute' FROM generate_series(1, $1::int) i`, n)
}

// rows returns how many reminders there are in each "state/reason".
func (s *site) rows() map[string]int {
	s.t.Helper()
	rows, err := s.db.Query(context.Background(), `SELECT state || '/' || coalesce(reason, ''), count(*) FROM nudged.reminders GROUP BY 1`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var key string
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			s.t.Fatal(err)
		}
		counts[key] = n
	}
	return counts
}

// waitRows waits until there are so many reminders of one "state/reason".
func (s *site) waitRows(key string, want int) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%d reminders %s", want, key), func() bool { return s.rows()[key] == want })
}

// wait polls a condition that no signal tells about.
func (s *site) wait(what string, condition func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("gave up waiting for %s; the ledger has %v", what, s.rows())
		}
	}
}

// acceptedOnce checks against the server's own record that no message was accepted twice and
// returns how many were.
func (s *site) acceptedOnce() int {
	s.t.Helper()
	seen := map[string]int{}
	for _, m := range s.smtp.Accepted() {
		seen[m.MessageID()]++
	}
	for id, n := range seen {
		if n > 1 {
			s.t.Errorf("the server accepted %s %d times", id, n)
		}
	}
	return len(seen)
}

// command runs a subcommand to its end and returns what it printed and its exit status.
func (s *site) command(args ...string) (stdout, stderr string, status int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = s.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), 0
}

func (s *site) env() []string {
	return append(os.Environ(), "NUDGED_DATABASE_URL="+s.url, "NUDGED_CONFIG_FILE="+s.config, "ZONEINFO="+s.zones)
}

// process is one running daemon.
type process struct {
	s    *site
	cmd  *exec.Cmd
	log  *lockedBuffer
	web  string
	done chan struct{} // closed when it has ended
}

// start runs a daemon on a free port.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	p := &process{s: s, log: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(s.binary, append([]string{"run", "--web.listen-address=127.0.0.1:0"}, args...)...)
	p.cmd.Env = s.env()
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			s.t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	return p
}

// ready waits until /-/ready answers 200.
func (p *process) ready() *process {
	p.s.t.Helper()
	p.s.wait("readiness", func() bool {
		select {
		case <-p.done:
			p.s.t.Fatalf("the daemon ended: %s", p.log)
		default:
		}
		status, _ := p.get("/-/ready")
		return status == http.StatusOK
	})
	return p
}

// get asks the web port; status 0 means that it does not answer.
func (p *process) get(path string) (int, string) {
	if p.web == "" {
		_, after, found := strings.Cut(p.log.String(), "address=127.0.0.1:")
		if !found {
			return 0, ""
		}
		port, _, _ := strings.Cut(after, " ")
		p.web = "http://127.0.0.1:" + strings.TrimSpace(strings.SplitN(port, "\n", 2)[0])
	}
	client := http.Client{Timeout: patience}
	response, err := client.Get(p.web + path)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop sends SIGTERM and waits for the end.
func (p *process) stop() {
	p.s.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.s.t.Fatalf("the daemon does not stop: %s", p.log)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.s.t.Errorf("the daemon ended with status %d: %s", code, p.log)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
