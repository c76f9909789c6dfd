//go:build chaos

package chaos

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// step is one thing that is done to a replica, the database or the mail server.
type step struct {
	after time.Duration // since the step before ended
	do    string
	lasts time.Duration
}

// choice is a thing that may be drawn.
type choice struct {
	do          string
	weight      int
	least, most time.Duration // how long it lasts
}

// newDraw returns the source of chance of one part of the run: the same for equal seeds and parts.
func newDraw(seed uint64, part string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(part))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// drawTrack draws steps for as long as the storm takes, gap apart on average.
func drawTrack(draw *rand.Rand, total, gap time.Duration, choices []choice) []step {
	var steps []step
	for at := time.Duration(0); ; {
		c := pick(draw, choices)
		s := step{
			after: between(draw, gap/2, gap*3/2),
			do:    c.do,
			lasts: between(draw, c.least, c.most),
		}
		if at += s.after + s.lasts; at > total {
			return steps
		}
		steps = append(steps, s)
	}
}

func pick(draw *rand.Rand, choices []choice) choice {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := draw.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c
		}
	}
	panic("unreachable: the weights add up")
}

func between(draw *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(draw.Int64N(int64(most-least)))
}

// play does the steps one after the other until ctx ends. A step that has begun is let finish.
func play(ctx context.Context, steps []step, do func(context.Context, step) error) error {
	for _, s := range steps {
		if !pause(ctx, s.after) {
			return nil
		}
		if err := do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for d and reports whether ctx lasted that long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
