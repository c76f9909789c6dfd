package main_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"nudged/internal/smtptest"
)

// manager plays the service manager: it keeps every datagram that is sent to NOTIFY_SOCKET.
type manager struct {
	s   *site
	mu  sync.Mutex
	got []string
}

// listen starts a manager that daemons of this test report to; the watchdog is given in
// microseconds, as systemd does, 0 for none.
func (s *site) listen(socket string, watchdog int) *manager {
	s.t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	m := &manager{s: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for datagram := make([]byte, 4096); ; {
			n, err := conn.Read(datagram)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.got = append(m.got, string(datagram[:n]))
			m.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		conn.Close()
		<-done
	})
	s.t.Setenv("NOTIFY_SOCKET", socket)
	if watchdog > 0 {
		s.t.Setenv("WATCHDOG_USEC", strconv.Itoa(watchdog))
	}
	return m
}

// datagrams returns what has come, in order.
func (m *manager) datagrams() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// count returns how many datagrams hold an assignment.
func (m *manager) count(assignment string) int {
	n := 0
	for _, datagram := range m.datagrams() {
		if slices.Contains(strings.Split(datagram, "\n"), assignment) {
			n++
		}
	}
	return n
}

// wait waits until there are so many datagrams with an assignment.
func (m *manager) wait(assignment string, n int) {
	m.s.t.Helper()
	m.s.wait(assignment, func() bool { return m.count(assignment) >= n })
}

// status returns the last status told.
func (m *manager) status() string {
	last := ""
	for _, datagram := range m.datagrams() {
		for line := range strings.SplitSeq(datagram, "\n") {
			if text, ok := strings.CutPrefix(line, "STATUS="); ok {
				last = text
			}
		}
	}
	return last
}

// holdUpPasses keeps every pass from ending until release.
func (s *site) holdUpPasses() (release func()) {
	s.t.Helper()
	tx, err := s.db.Begin(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), `LOCK TABLE nudged.schedules IN ACCESS EXCLUSIVE MODE`); err != nil {
		s.t.Fatal(err)
	}
	var once sync.Once
	release = func() { once.Do(func() { _ = tx.Rollback(context.Background()) }) }
	s.t.Cleanup(release)
	return release
}

func TestManagerHearsReadyAfterTheFirstPass(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	m := s.listen(filepath.Join(s.dir, "notify"), 100_000)
	release := s.holdUpPasses()
	p := s.start()
	m.wait("WATCHDOG=1", 10) // half a second of the loop, in which no pass ends
	if n := m.count("READY=1"); n != 0 {
		t.Errorf("READY=1 before the first pass is over: %q", m.datagrams())
	}
	if got := m.status(); got != "starting: not started" && got != "starting: the first pass is not over" {
		t.Errorf("the status is %q", got)
	}
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	s.wait("the reload", func() bool { return strings.Contains(p.log.String(), "the configuration is reloaded") })
	release()
	m.wait("READY=1", 1)
	if n := m.count("RELOADING=1"); n != 0 {
		t.Errorf("a reload before the first pass is told: %q", m.datagrams())
	}
	if got := m.status(); !strings.HasPrefix(got, "last pass 20") || !strings.Contains(got, " UTC; slots due: 0; in flight here: 0; unknown outcomes: 0") {
		t.Errorf("the status is %q", got)
	}
	p.stop()
	m.wait("STOPPING=1", 1)
}

func TestManagerHearsStopping(t *testing.T) {
	release := make(chan struct{})
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Action{}.Until(release))})
	m := s.listen(filepath.Join(s.dir, "notify"), 100_000)
	s.due(1)
	p := s.start()
	m.wait("READY=1", 1)
	s.wait("the dot", func() bool { return s.smtp.Reached(smtptest.StageDot) == 1 })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	m.wait("STOPPING=1", 1)
	if got, want := m.status(), "stopping: what was handed off ends and is recorded; in flight here: 1"; got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
	before := m.count("WATCHDOG=1")
	m.wait("WATCHDOG=1", before+3) // the open conversation is waited for
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	s.wait("the reload", func() bool { return strings.Contains(p.log.String(), "the configuration is reloaded") })
	close(release)
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 || s.rows()["sent/"] != 1 {
		t.Errorf("status %d, the ledger has %v", code, s.rows())
	}
	datagrams := m.datagrams()
	stop := slices.IndexFunc(datagrams, func(d string) bool { return strings.HasPrefix(d, "STOPPING=1") })
	for _, datagram := range datagrams[stop+1:] {
		if datagram != "WATCHDOG=1" && !strings.HasPrefix(datagram, "STATUS=stopping: ") {
			t.Errorf("%q behind STOPPING=1", datagram)
		}
	}
}

func TestManagerHearsReloads(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	m := s.listen("@"+filepath.Join(s.dir, "notify"), 0) // in the abstract namespace
	p := s.start().ready()
	m.wait("READY=1", 1)

	before := monotonic(t)
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	m.wait("READY=1", 2)
	after := monotonic(t)
	begin, end := reloadOf(t, m.datagrams())
	if begin < before || begin > after {
		t.Errorf("MONOTONIC_USEC=%d, want %d to %d", begin, before, after)
	}
	if strings.Contains(end, "refused") {
		t.Errorf("the good reload ends with %q", end)
	}

	told := len(m.datagrams())
	s.writeConfig("nonsense: 1\n")
	response, err := http.Post(p.web+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("a bad reload answers %d", response.StatusCode)
	}
	m.wait("READY=1", 3)
	if _, end := reloadOf(t, m.datagrams()[told:]); !strings.Contains(end, "; the last reload was refused") {
		t.Errorf("the refused reload ends with %q", end)
	}
	if n := m.count("WATCHDOG=1"); n != 0 {
		t.Errorf("%d pings without WATCHDOG_USEC", n)
	}
	p.stop()
	m.wait("STOPPING=1", 1)
}

// reloadOf returns the time that RELOADING=1 carries, in microseconds, and the datagram that ends
// the reload.
func reloadOf(t *testing.T, datagrams []string) (begin int64, end string) {
	t.Helper()
	i := slices.IndexFunc(datagrams, func(d string) bool { return strings.HasPrefix(d, "RELOADING=1\nMONOTONIC_USEC=") })
	if i < 0 {
		t.Fatalf("no RELOADING=1 with its time in %q", datagrams)
	}
	begin, err := strconv.ParseInt(strings.TrimPrefix(datagrams[i], "RELOADING=1\nMONOTONIC_USEC="), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, datagram := range datagrams[i+1:] {
		if strings.HasPrefix(datagram, "READY=1\n") {
			return begin, datagram
		}
	}
	t.Fatalf("no READY=1 behind RELOADING=1 in %q", datagrams)
	return 0, ""
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano() / 1000
}

func TestWatchdogThatMakesNoSense(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	t.Setenv("WATCHDOG_USEC", "soon")
	s.start().ready().stop() // nobody asked to be told
	s.listen(filepath.Join(s.dir, "notify"), 0)
	out, stderr, status := s.command("run", "--web.listen-address=127.0.0.1:0")
	if status != 1 || !strings.Contains(stderr, "WATCHDOG_USEC") {
		t.Errorf("status %d, %q %q", status, out, stderr)
	}
}

// SIGHUP means reload at any time: it does not end a daemon that still waits for its database.
func TestHangupBeforeTheDatabase(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.url = "postgres://nobody@127.0.0.1:1/none"
	m := s.listen(filepath.Join(s.dir, "notify"), 0)
	p := s.start()
	s.wait("the database to be missed", func() bool { return strings.Contains(p.log.String(), "nothing is sent yet") })
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	s.wait("the reload", func() bool { return strings.Contains(p.log.String(), "the configuration is reloaded") })
	p.stop()
	m.wait("STOPPING=1", 1)
	if m.count("READY=1")+m.count("RELOADING=1") != 0 {
		t.Errorf("got %q", m.datagrams())
	}
}
