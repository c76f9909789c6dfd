package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestServerKeepsItsDataAndLeavesNoProcess(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	config := Config{Dir: folder(t), Durable: true, Log: &log, Settings: map[string]string{"max_connections": "33"}}
	first := start(t, config)
	keep(t, first)
	if got := query[string](t, first, "SHOW max_connections"); got != "33" {
		t.Errorf("max_connections = %s, want the setting 33", got)
	}
	if got := query[string](t, first, "SHOW fsync"); got != "on" {
		t.Errorf("fsync of a durable server = %s", got)
	}
	overSocket(t, first)

	pid := first.process.os.Pid
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the server still runs after Stop")
	}
	if !portFree(first.Port()) {
		t.Error("the port is still taken after Stop")
	}
	if entries, _ := os.ReadDir(config.Dir); len(entries) != 1 {
		t.Errorf("after Stop the folder holds %v, want data only", entries)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if !bytes.Contains(log.Bytes(), []byte("ready to accept connections")) {
		t.Error("the log did not arrive")
	}

	second := start(t, config)
	if got := kept(t, second); got != "kept" {
		t.Errorf("the second start finds %q", got)
	}
}

func keep(t *testing.T, server *Server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'kept' AS note"); err != nil {
		t.Fatal(err)
	}
}

func kept(t *testing.T, server *Server) string {
	t.Helper()
	return query[string](t, server, "SELECT note FROM kept")
}

func overSocket(t *testing.T, server *Server) {
	t.Helper()
	dsn := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", server.SocketDir(), server.Port())
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(t.Context())
}

func TestKillAndRestartRecoverOnTheSamePort(t *testing.T) {
	t.Parallel()
	server := start(t, Config{Dir: folder(t), Durable: true})
	port := server.Port()
	keep(t, server)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if !portFree(port) {
		t.Fatal("the server still listens after Kill")
	}
	for range 2 { // once from killed, once from running
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if server.Port() != port {
			t.Errorf("port = %d after the restart, want %d", server.Port(), port)
		}
		if got := kept(t, server); got != "kept" {
			t.Errorf("the restarted server finds %q", got)
		}
	}
}

func TestStopEndsSessions(t *testing.T) {
	t.Parallel()
	server := start(t, Config{Dir: folder(t)})
	if got := query[string](t, server, "SHOW fsync"); got != "off" {
		t.Errorf("fsync of a server that is not durable = %s", got)
	}
	conn, err := pgx.Connect(t.Context(), server.ConnString("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestStopWithoutPatienceKills(t *testing.T) {
	t.Parallel()
	server := start(t, Config{Dir: folder(t)})
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	pid := server.process.os.Pid
	// Which of two closed channels a select takes is a coin; that the process is gone is not.
	if err := server.Stop(impatient); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want the context's end", err)
	}
	if alive(pid) {
		t.Error("the server still runs")
	}
}

func TestServerRunsApartAndUnprivileged(t *testing.T) {
	t.Parallel()
	server := start(t, Config{Dir: folder(t)})
	pid := server.process.os.Pid
	group, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if group != pid {
		t.Errorf("process group = %d, want its own, %d: a Ctrl-C here would stop it", group, pid)
	}
	info, err := os.Stat(filepath.Join(server.SocketDir(), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("the server runs as root")
	}
	info, err = os.Stat(server.SocketDir())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the folder = %v, want it private", info.Mode().Perm())
	}
}

func TestFolderHasOneOwner(t *testing.T) {
	t.Parallel()
	server := start(t, Config{Dir: folder(t)})
	_, err := Start(t.Context(), Config{Dir: server.SocketDir()})
	if _, ok := errors.AsType[*InUseError](err); !ok {
		t.Fatalf("second Start = %v, want an InUseError", err)
	}
	wantOneLine(t, err, server.SocketDir())
	query[int](t, server, "SELECT 1") // and the first was left alone
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), Config{Dir: folder(t), Port: port})
	wantOneLine(t, err, "port "+strconv.Itoa(port))
}

func TestRefusedSettingIsOneLine(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Dir: folder(t), Settings: map[string]string{"max_connections": "none"}})
	wantOneLine(t, err, "max_connections")
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Start = %v, want the deadline", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unfinished data folder is taken for data: %v", err)
	}
	server := start(t, Config{Dir: dir}) // the lock is free and the remains do not hinder
	query[int](t, server, "SELECT 1")
}

// lockedBuffer is read while the server may still write to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}
