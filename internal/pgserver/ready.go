package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxPort  = 65535
	pollTime = 10 * time.Millisecond
)

// postmaster is what a running server writes to its postmaster.pid.
type postmaster struct {
	pid   int
	port  int
	ready bool
}

// readPostmaster reads the file as pg_ctl does: line 1 is the process, 4 the port, 8 the status.
// The server writes it in steps, so lines may be missing.
func readPostmaster(dir string) (postmaster, error) {
	b, err := os.ReadFile(filepath.Join(dataDir(dir), "postmaster.pid"))
	if err != nil {
		return postmaster{}, err
	}
	var (
		m     postmaster
		lines = strings.Split(string(b), "\n")
	)
	if len(lines) > 0 {
		m.pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	}
	if len(lines) > 3 {
		m.port, _ = strconv.Atoi(strings.TrimSpace(lines[3]))
	}
	if len(lines) > 7 {
		m.ready = strings.TrimSpace(lines[7]) == "ready"
	}
	return m, nil
}

// awaitReady waits until the server says in its file that it accepts connections.
func awaitReady(ctx context.Context, p *process, dir string) error {
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	for {
		select {
		case <-p.exited:
			return p.failure("start the PostgreSQL server")
		case <-ctx.Done():
			return fmt.Errorf("start the PostgreSQL server: %w", context.Cause(ctx))
		case <-tick.C:
			if m, err := readPostmaster(dir); err == nil && m.ready && m.pid == p.os.Pid {
				return nil
			}
		}
	}
}

// stopLeftover stops a server that outlived its owner. The caller holds the folder's lock, so
// whatever answers on the socket in this private folder has no owner. Where nothing answers, the
// number in the file may be another program's by now: then nothing is stopped, and a server that
// is about to be gone gets a moment for it.
func stopLeftover(ctx context.Context, dir string) error {
	const moment = 500 * time.Millisecond
	m, err := readPostmaster(dir)
	if err != nil || m.pid <= 1 {
		return nil
	}
	conn, err := net.Dial("unix", socketPath(dir, m.port)) //nolint:noctx // a unix socket answers at once
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, moment)
		defer cancel()
		_ = awaitGone(ctx, dir, m.pid) // PostgreSQL itself judges what is still there
		return nil
	}
	conn.Close()
	err = syscall.Kill(m.pid, syscall.SIGINT)
	if err == nil {
		err = awaitGone(ctx, dir, m.pid)
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the PostgreSQL server that was left running: %w", err)
	}
	return nil
}

// awaitGone waits until the server has removed its file or is no longer there to do so.
func awaitGone(ctx context.Context, dir string, pid int) error {
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	for {
		_, err := readPostmaster(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// freePort picks below the range that systems hand out for outgoing connections, so that nothing
// takes the port while the server restarts.
func freePort() (int, error) {
	const (
		lowest, highest = 15000, 30000
		attempts        = 100
	)
	for range attempts {
		if port := lowest + rand.IntN(highest-lowest); portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1: %d of them were taken", attempts)
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
