package scheduler

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// ticker is the tick of the loop: a robfig/cron schedule, never a client's cadence.
//
// The runner computes its sleeps from the wall clock, so a clock that steps back would stall it
// by the size of the step: a watchdog on the monotonic clock adds the entry anew.
type ticker struct {
	cron     *cron.Cron
	schedule cron.Schedule
	job      func()

	entry cron.EntryID // owned by startTicker, then by watch

	done chan struct{}
	wg   sync.WaitGroup
}

const (
	watchEvery = 10 * time.Second
	stepBack   = time.Second
)

func startTicker(cfg Config, job func()) (*ticker, error) {
	var schedule cron.Schedule = every(cfg.Every)
	if cfg.Cron != "" {
		var err error
		if schedule, err = cron.ParseStandard(cfg.Cron); err != nil {
			return nil, fmt.Errorf("read the schedule %q: %w", cfg.Cron, err)
		}
	} else if cfg.Every <= 0 {
		return nil, fmt.Errorf("read the schedule: the interval %s is not positive", cfg.Every)
	}
	logger := cronLogger{cfg.Logger}
	t := &ticker{
		// Skip outside Recover: the other order disables a job for ever after its first panic.
		cron: cron.New(cron.WithLocation(time.UTC), cron.WithLogger(logger),
			cron.WithChain(cron.SkipIfStillRunning(logger), cron.Recover(logger))),
		schedule: schedule,
		job:      job,
		done:     make(chan struct{}),
	}
	t.add()
	t.cron.Start()
	t.wg.Go(t.watch)
	return t, nil
}

// every is a schedule of equal steps. cron's own knows whole seconds only.
type every time.Duration

// Next implements cron.Schedule.
func (e every) Next(t time.Time) time.Time { return t.Add(time.Duration(e)) }

// add replaces the entry by a new one, which sleeps by the clock as it is now.
func (t *ticker) add() {
	old := t.entry
	t.entry = t.cron.Schedule(t.schedule, cron.FuncJob(t.job))
	if old != 0 {
		t.cron.Remove(old)
	}
}

// watch adds the entry anew whenever the wall clock fell behind the monotonic one.
func (t *ticker) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-t.done:
			return
		case <-tick.C:
		}
		now := time.Now()
		wall := now.Round(0).Sub(last.Round(0)) // Round strips the monotonic reading
		if wall < now.Sub(last)-stepBack {
			t.add()
			t.job()
		}
		last = now
	}
}

// stop ends the ticks and waits for the one that runs.
func (t *ticker) stop() {
	close(t.done)
	t.wg.Wait()
	<-t.cron.Stop().Done()
}

// cronLogger lets robfig/cron speak through slog. Its notices are of no use to an operator.
type cronLogger struct{ log *slog.Logger }

func (l cronLogger) Info(msg string, keysAndValues ...any) {
	l.log.Debug("tick: "+msg, keysAndValues...)
}

func (l cronLogger) Error(err error, msg string, keysAndValues ...any) {
	l.log.Error("tick: "+msg, append(keysAndValues, "err", err)...)
}
