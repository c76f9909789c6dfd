package deploytest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
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

// site is a database, a mail server and a configuration for real nudged processes.
type site struct {
	t      *testing.T
	config string
	url    string
	db     *pgxpool.Pool
	smtp   *smtptest.Server
}

func newSite(t *testing.T, more string) *site {
	t.Helper()
	s := &site{t: t, config: filepath.Join(t.TempDir(), "nudged.yml"), url: pgtest.New(t), smtp: smtptest.Start(t, smtptest.Config{})}
	var err error
	if s.db, err = pgxpool.New(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.db.Close)
	s.configure(more)
	return s
}

// configure writes the configuration file: quick polls, short waits, and what the test adds.
func (s *site) configure(more string) {
	s.t.Helper()
	text := fmt.Sprintf(`environment: production
poll: {every: 200ms}
smtp: {host: 127.0.0.1, port: %d, tls: none, connections: 4, rate: 0, dial_timeout: 2s, command_timeout: 5s, reply_timeout: 5s}
mail: {from: "Example <reminders@example.com>"}
limits: {retry_backoff: {initial: 1s, max: 2s}}
%s`, s.smtp.Port(), more)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// due inserts n requests NAME-1 … NAME-n whose slot 3d fell due so long ago.
func (s *site) due(name string, n int, late time.Duration) {
	s.t.Helper()
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title, sender_name)
	        SELECT $1::text || '-' || i, 'a', 'pending', $1 || i || '@example.net', 'Tax return', 'Ann Accountant'
	        FROM generate_series(1, $2::int) i`, name, n)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at)
	        SELECT $1::text || '-' || i, 'https://example.com/u/' || i, now() - interval '3 days' - $3::interval
	        FROM generate_series(1, $2::int) i`, name, n, late)
}

// reminders counts the rows of the ledger in a state.
func (s *site) reminders(state string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(context.Background(), `SELECT count(*) FROM nudged.reminders WHERE state = $1`, state).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *site) waitReminders(state string, want int) {
	s.t.Helper()
	wait(s.t, fmt.Sprintf("%d reminders %s", want, state), func() bool { return s.reminders(state) == want })
}

func (s *site) environment() []string {
	return []string{"NUDGED_CONFIG_FILE=" + s.config, "NUDGED_DATABASE_URL=" + s.url}
}

// nudged runs a subcommand to its end.
func (s *site) nudged(arguments ...string) finished {
	s.t.Helper()
	return execute(s.t, "", s.environment(), program, arguments...)
}

// daemon is one running replica.
type daemon struct {
	*process
	address string // host:port of the web
}

// start runs a replica and waits until it serves the web.
func (s *site) start() *daemon {
	s.t.Helper()
	d := &daemon{address: freeAddress(s.t)}
	d.process = spawn(s.t, s.environment(), program, "run", "--web.listen-address="+d.address)
	d.wait("the web port", func() bool { status, _ := d.get("/-/healthy"); return status != 0 })
	return d
}

// ready waits until the replica is.
func (d *daemon) ready() *daemon {
	d.t.Helper()
	d.wait("readiness", func() bool { status, _ := d.get("/-/ready"); return status == http.StatusOK })
	return d
}

// get asks the web port; status 0 means that it does not answer.
func (d *daemon) get(path string) (int, string) { return ask(http.MethodGet, "http://"+d.address+path) }

// ask speaks HTTP and leaves no connection behind; status 0 means no answer.
func ask(method, url string) (int, string) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// process is a program that runs until the test ends.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{} // closed when it has ended
}

func spawn(t *testing.T, env []string, name string, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, arguments...), log: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd.Env = append(foreign(os.Environ()), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("log of %s:\n%s", filepath.Base(name), p.log.tail())
		}
	})
	return p
}

// wait polls a condition for as long as the process runs.
func (p *process) wait(what string, condition func() bool) {
	p.t.Helper()
	wait(p.t, what, func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%s has ended", p.cmd.Path)
		default:
		}
		return condition()
	})
}

// end sends a signal that ends the process, and waits for that.
func (p *process) end(signal os.Signal) {
	p.t.Helper()
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%s does not end", p.cmd.Path)
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

// tail is the end of the log, as much as helps.
func (b *lockedBuffer) tail() string {
	text := b.String()
	if most := 8 << 10; len(text) > most {
		_, text, _ = strings.Cut(text[len(text)-most:], "\n")
	}
	return text
}
