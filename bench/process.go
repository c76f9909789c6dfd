package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measureProcess runs the real daemon: idle, over a large number of reminders due at once, and two
// of them over the same number.
func measureProcess(ctx context.Context, l *lab) ([]result, error) {
	idle, err := l.process(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	n := float64(l.size.Whole)
	pair := result{
		Name: "two daemons / one, due reminders", Unit: "1/s", Target: "≥ 1.0",
	}
	var busy figures
	lost := 0.0
	for range min(3, l.size.Rounds) {
		if busy, err = l.process(ctx, l.size.Whole, 1); err != nil {
			return nil, err
		}
		two, err := l.process(ctx, l.size.Whole, 2)
		if err != nil {
			return nil, err
		}
		pair.Ours, pair.Base = append(pair.Ours, n/two.wall), append(pair.Base, n/busy.wall)
		lost = max(lost, two.lost/n)
	}
	pair.Note = fmt.Sprintf("at most %.2f %% of claims lost", 100*lost)
	return []result{
		{Name: "daemon idle, resident memory", Unit: "MB", Ours: []float64{idle.peakMB}, Target: "≤ 32"},
		{Name: fmt.Sprintf("daemon, %d due at once, peak memory", l.size.Whole), Unit: "MB", Ours: []float64{busy.peakMB}, Target: "≤ 48"},
		{Name: "the same, wall clock", Unit: "s", Ours: []float64{busy.wall}, Note: fmt.Sprintf("%.0f/s", n/busy.wall)},
		{Name: "the same, CPU of the daemon", Unit: "s", Ours: []float64{busy.cpu}, Note: fmt.Sprintf("%.0f µs a mail", busy.cpu/n*1e6)},
		{Name: "the same, commits a mail", Unit: "", Ours: []float64{busy.commits / n}},
		{Name: "the same, write-ahead log a mail", Unit: "bytes", Ours: []float64{busy.wal / n}},
		{Name: "the same, ledger with its indexes a mail", Unit: "bytes", Ours: []float64{busy.ledger / n}},
		pair,
	}, nil
}

type figures struct {
	peakMB, wall, cpu float64
	commits, wal      float64 // wal: bytes
	ledger            float64 // bytes
	lost              float64 // claims that another daemon had
}

// process runs so many daemons until n due reminders are sent, or for a few seconds where n is 0.
func (l *lab) process(ctx context.Context, n, daemons int) (f figures, err error) {
	binary, err := l.binary()
	if err != nil {
		return f, err
	}
	d, err := l.database(ctx)
	if err != nil {
		return f, err
	}
	defer d.drop()
	if n > 0 {
		if err := errors.Join(d.insert(ctx, n, "3 days"), d.documents(ctx, n), d.planned(ctx)); err != nil {
			return f, err
		}
	}
	if err := d.analyze(ctx); err != nil {
		return f, err
	}
	config := filepath.Join(l.dir, "nudged.yml")
	text := fmt.Sprintf(`environment: bench
smtp: {host: 127.0.0.1, port: %d, tls: none, rate: 0}
mail: {from: reminders@example.com}
poll: {every: 1s}
`, l.sink.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return f, err
	}
	commits, wal, _, err := d.written(ctx)
	if err != nil {
		return f, err
	}
	begun := time.Now()
	running := make([]*daemon, daemons)
	for i := range running {
		if running[i], err = startDaemon(ctx, binary, config, d.url); err != nil {
			return f, err
		}
		defer running[i].kill()
	}
	if n == 0 {
		time.Sleep(5 * time.Second) // it idles
	} else if err := d.waitSent(ctx, n); err != nil {
		return f, err
	}
	f.wall = time.Since(begun).Seconds()
	for _, p := range running {
		if err := p.end(&f); err != nil {
			return f, err
		}
	}
	commitsAfter, walAfter, ledger, err := d.written(ctx)
	f.commits, f.wal, f.ledger = commitsAfter-commits, walAfter-wal, ledger
	return f, err
}

// daemon is one process of nudged.
type daemon struct {
	cmd     *exec.Cmd
	address string // of its metrics
}

func startDaemon(ctx context.Context, binary, config, url string) (*daemon, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &daemon{address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, binary, "run", "--config.file="+config, "--database.url="+url,
		"--web.listen-address="+p.address, "--log.level=error")
	p.cmd.Stderr = os.Stderr
	return p, p.cmd.Start()
}

func (p *daemon) kill() { _ = p.cmd.Process.Kill() }

// end stops the daemon and adds what it took.
func (p *daemon) end(f *figures) error {
	lost, err := p.claimsLost()
	if err != nil {
		return err
	}
	f.lost += lost
	f.peakMB = max(f.peakMB, peakMemory(p.cmd.Process.Pid))
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return err
	}
	f.cpu += (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
	return nil
}

func (p *daemon) claimsLost() (float64, error) {
	answer, err := http.Get("http://" + p.address + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), `nudged_claims_total{result="lost"} `)
	if !found {
		return 0, errors.New("the daemon does not tell how many claims it lost")
	}
	value, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(value, 64)
}

// written is what the server wrote so far: commits, and bytes of the write-ahead log; and what the
// ledger takes, in bytes.
func (d *database) written(ctx context.Context) (commits, wal, ledger float64, err error) {
	err = d.pool.QueryRow(ctx, `SELECT xact_commit, (pg_current_wal_lsn() - '0/0')::float8, pg_total_relation_size('nudged.reminders')
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&commits, &wal, &ledger)
	return commits, wal, ledger, err
}

func (d *database) waitSent(ctx context.Context, n int) error {
	for {
		var left bool
		// The last ones tell: whoever is due and not sent is in one of these small indexes.
		err := d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM nudged.schedules WHERE wake_at <= now())
			OR EXISTS (SELECT 1 FROM nudged.reminders WHERE lease_until IS NOT NULL)
			OR NOT EXISTS (SELECT 1 FROM nudged.reminders)`).Scan(&left)
		if err != nil {
			return err
		}
		if !left {
			var sent int
			err := d.pool.QueryRow(ctx, `SELECT count(*) FROM nudged.reminders WHERE state = 'sent'`).Scan(&sent)
			if err != nil || sent == n {
				return err
			}
			return fmt.Errorf("%d of %d reminders are sent", sent, n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// peakMemory reads the high-water mark of resident memory in MB; 0 where the system does not tell.
func peakMemory(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kb, _ := strconv.ParseFloat(strings.Fields(after)[0], 64)
	return kb / 1024
}
