package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBackoffBounds: between a second and the ceiling, which doubles and is cut, whatever the draw.
func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Initial: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "initial")),
			Max:     time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "max")),
		}
		attempt := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 1<<40)).Draw(t, "attempt")
		ceiling := b.Max
		if exact := float64(b.Initial) * float64(uint64(1)<<min(attempt-1, 60)); exact < float64(b.Max) {
			ceiling = time.Duration(exact)
		}
		wait := b.Wait(attempt, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if wait < min(time.Second, ceiling) || wait > ceiling {
			t.Fatalf("%s after attempt %d, want 1 s to %s", wait, attempt, ceiling)
		}
	})
}

// TestBackoffJitter is full: draws cover the whole span evenly.
func TestBackoffJitter(t *testing.T) {
	b := Backoff{Initial: time.Minute, Max: time.Hour}
	draw := rand.New(rand.NewPCG(1, 2))
	for attempt, ceiling := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 7: time.Hour, 50: time.Hour} {
		const draws = 10_000
		var quarters [4]int
		for range draws {
			share := float64(b.Wait(attempt, draw)-time.Second) / float64(ceiling-time.Second)
			quarters[min(int(share*4), 3)]++
		}
		for i, n := range quarters {
			if n < draws*22/100 || n > draws*28/100 {
				t.Errorf("attempt %d: %d of %d draws in quarter %d", attempt, n, draws, i+1)
			}
		}
	}
}
