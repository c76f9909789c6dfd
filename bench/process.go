package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measureProcess runs the real daemon: idle, and over a large number of reminders due at once.
func measureProcess(ctx context.Context, l *lab) ([]result, error) {
	idle, err := l.process(ctx, 0)
	if err != nil {
		return nil, err
	}
	busy, err := l.process(ctx, l.size.Whole)
	if err != nil {
		return nil, err
	}
	n := float64(l.size.Whole)
	return []result{
		{Name: "daemon idle, resident memory", Unit: "MB", Ours: []float64{idle.peakMB}, Target: "≤ 32"},
		{Name: fmt.Sprintf("daemon, %d due at once, peak memory", l.size.Whole), Unit: "MB", Ours: []float64{busy.peakMB}, Target: "≤ 48"},
		{Name: "the same, wall clock", Unit: "s", Ours: []float64{busy.wall}, Note: fmt.Sprintf("%.0f/s", n/busy.wall)},
		{Name: "the same, CPU of the daemon", Unit: "s", Ours: []float64{busy.cpu}, Note: fmt.Sprintf("%.0f µs a mail", busy.cpu/n*1e6)},
		{Name: "the same, commits a mail", Unit: "", Ours: []float64{busy.commits / n}},
	}, nil
}

type figures struct {
	peakMB, wall, cpu, commits float64
}

// process runs a daemon until n due reminders are sent, or for a few seconds where n is 0.
func (l *lab) process(ctx context.Context, n int) (figures, error) {
	var f figures
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
	before, err := d.committed(ctx)
	if err != nil {
		return f, err
	}
	cmd := exec.CommandContext(ctx, binary, "run", "--config.file="+config, "--database.url="+d.url,
		"--web.listen-address=127.0.0.1:0", "--log.level=error")
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return f, err
	}
	if n == 0 {
		time.Sleep(5 * time.Second) // it idles
	} else if err := d.waitSent(ctx, n); err != nil {
		_ = cmd.Process.Kill()
		return f, err
	}
	f.wall = time.Since(begun).Seconds()
	f.peakMB = peakMemory(cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return f, err
	}
	if err := cmd.Wait(); err != nil {
		return f, err
	}
	f.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	after, err := d.committed(ctx)
	f.commits = after - before
	return f, err
}

func (d *database) committed(ctx context.Context) (float64, error) {
	var n float64
	err := d.pool.QueryRow(ctx, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
	return n, err
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
