package scheduler

import (
	"math/rand/v2"
	"time"
)

// Backoff is exponential with full jitter.
type Backoff struct {
	Initial time.Duration // the most to wait after the first attempt
	Max     time.Duration // the most to wait ever
}

// minWait keeps a jitter near zero from turning a refusal into a busy loop.
const minWait = time.Second

// Wait draws how long to wait after the given attempt, counted from 1: anything from a second
// (or Initial, where that is shorter) up to Initial doubled with each attempt and cut at Max.
func (b Backoff) Wait(attempt int, draw *rand.Rand) time.Duration {
	ceiling := b.Initial
	for range attempt - 1 {
		if ceiling >= b.Max {
			break
		}
		ceiling *= 2
	}
	ceiling = min(ceiling, b.Max)
	floor := min(minWait, ceiling)
	return floor + time.Duration(draw.Float64()*float64(ceiling-floor))
}
