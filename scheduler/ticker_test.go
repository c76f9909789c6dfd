package scheduler

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTickerSurvivesAPanic: the next tick comes all the same.
func TestTickerSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		ticker, err := startTicker(Config{Every: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}, func() {
			if runs.Add(1) == 1 {
				panic("once")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(35 * time.Second)
		synctest.Wait()
		ticker.stop()
		if runs.Load() != 3 {
			t.Errorf("%d ticks in 35 s, want 3", runs.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs.Load() != 3 {
			t.Error("a tick after the stop")
		}
	})
}

// stalled is what the runner is left with when the clock steps back behind its back: a sleep that
// was computed by the old clock.
type stalled struct{ asked atomic.Int64 }

func (s *stalled) Next(t time.Time) time.Time {
	if s.asked.Add(1) == 1 {
		return t.Add(24 * time.Hour)
	}
	return t.Add(10 * time.Second)
}

// TestTickerAddedAnew: a new entry takes the place of one that would sleep for a day, and ticks
// alone. A bubble has one clock, so the step itself cannot be made here.
func TestTickerAddedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		ticker, err := startTicker(Config{Cron: "0 0 1 1 *", Logger: slog.New(slog.DiscardHandler)}, func() { runs.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		ticker.schedule = new(stalled)
		ticker.add()
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs.Load() != 0 {
			t.Fatalf("%d ticks of a runner that sleeps for a day", runs.Load())
		}
		for range 3 {
			ticker.add()
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		ticker.stop()
		if runs.Load() != 6 {
			t.Errorf("%d ticks in a minute, want one each 10 s", runs.Load())
		}
	})
}
