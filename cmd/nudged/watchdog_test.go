package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdogIsPingedWhilePassesAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalled atomic.Bool
		var heard atomic.Int64
		n := &notifier{
			notifierConfig: notifierConfig{
				Ready: func() error { return nil },
				Healthy: func() error {
					if stalled.Load() {
						return errors.New("no pass has ended well for 5m0s")
					}
					return nil
				},
				Status:   func() string { return "well" },
				InFlight: func() int { return 0 },
				Logger:   slog.New(slog.DiscardHandler),
			},
			send: func(state string) error {
				if state == "WATCHDOG=1" {
					heard.Add(1)
				}
				return nil
			},
			watchdog: time.Minute,
		}
		pings := func() int64 {
			synctest.Wait()
			return heard.Swap(0)
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go n.run(ctx, over)

		time.Sleep(time.Hour + time.Second)
		if got := pings(); got != 120 {
			t.Errorf("%d pings in an hour of passes, want one each half minute", got)
		}
		stalled.Store(true)
		time.Sleep(time.Hour)
		if got := pings(); got != 0 {
			t.Errorf("%d pings while no pass ends", got)
		}
		stalled.Store(false)
		time.Sleep(time.Hour)
		if got := pings(); got != 120 {
			t.Errorf("%d pings when passes end again, want 120", got)
		}
		stalled.Store(true) // as it is while a long conversation holds up the stop
		stop()
		time.Sleep(time.Hour)
		if got := pings(); got != 120 {
			t.Errorf("%d pings while it stops, want 120", got)
		}
		close(over)
	})
}

// The status is told when it changes, with what is wrong, and again where it could not be told.
func TestStatusIsToldWhenItChanges(t *testing.T) {
	var ready, unheard error
	line, inFlight := "well", 3
	var told []string
	n := &notifier{
		notifierConfig: notifierConfig{
			Ready:    func() error { return ready },
			Status:   func() string { return line },
			InFlight: func() int { return inFlight },
			Logger:   slog.New(slog.DiscardHandler),
		},
		send: func(state string) error {
			told = append(told, state)
			return unheard
		},
	}
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
	}
	ready = errors.New("the first pass is not over")
	n.refresh()
	n.refresh()
	expect("STATUS=starting: the first pass is not over")
	ready = nil
	n.ready()
	n.refresh()
	expect("READY=1\nSTATUS=well")
	line = "two slots are due"
	unheard = errors.New("connection refused")
	n.refresh()
	unheard = nil
	n.refresh()
	n.refresh()
	expect("STATUS=two slots are due", "STATUS=two slots are due")
	ready = errors.New("the last pass failed")
	n.refresh()
	expect("STATUS=two slots are due; not ready: the last pass failed")
	ready = errors.New("stopping")
	n.stopping()
	n.refresh()
	inFlight = 0
	n.refresh()
	const stopping = "STATUS=stopping: what was handed off ends and is recorded; in flight here: "
	expect("STOPPING=1\n"+stopping+"3", stopping+"0")
}

func TestNobodyToTellIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	n := &notifier{
		notifierConfig: notifierConfig{
			Ready:  func() error { return errors.New("not started") },
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		},
		send: func(string) error { return errors.New("connection refused") },
	}
	for range 3 {
		n.refresh()
	}
	if got := strings.Count(log.String(), "connection refused"); got != 1 {
		t.Errorf("logged %d times: %s", got, log.String())
	}
}
