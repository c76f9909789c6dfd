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
	cron *cron.Cron
	spec string
	job  func()

	mu    sync.Mutex
	entry cron.EntryID

	done chan struct{}
	wg   sync.WaitGroup
}

const (
	watchEvery = 10 * time.Second
	stepBack   = time.Second
)

func startTicker(spec string, job func(), log *slog.Logger) (*ticker, error) {
	logger := cronLogger{log}
	t := &ticker{
		// Skip outside Recover: the other order disables a job for ever after its first panic.
		cron: cron.New(cron.WithLocation(time.UTC), cron.WithLogger(logger),
			cron.WithChain(cron.SkipIfStillRunning(logger), cron.Recover(logger))),
		spec: spec,
		job:  job,
		done: make(chan struct{}),
	}
	if err := t.add(); err != nil {
		return nil, err
	}
	t.cron.Start()
	t.wg.Go(t.watch)
	return t, nil
}

func (t *ticker) add() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, err := t.cron.AddFunc(t.spec, t.job)
	if err != nil {
		return fmt.Errorf("read the schedule %q: %w", t.spec, err)
	}
	if t.entry != 0 {
		t.cron.Remove(t.entry)
	}
	t.entry = id
	return nil
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
			// The spec was accepted once, so it is accepted again.
			if t.add() == nil {
				t.job()
			}
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
