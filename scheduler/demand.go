package scheduler

import (
	"sync"
	"time"
)

// demand decides how many reminders to claim ahead of the hand-off. A claim that waits costs
// nothing but its lease, so the limit doubles while the queue nearly runs dry between passes and
// halves when tasks wait long.
type demand struct {
	mu       sync.Mutex
	limit    int
	min, max int
	queued   int           // claimed and not yet handed off
	asked    int           // what the last pass could claim
	patience time.Duration // a longer wait in the queue means that the limit is too high
	room     chan struct{} // told when half of a full queue has drained
	full     bool          // the last pass could have claimed more
}

func newDemand(low, high int, patience time.Duration) *demand {
	high = max(low, high)
	return &demand{limit: low, min: low, max: high, patience: patience, room: make(chan struct{}, 1)}
}

// free is how many more may be claimed now.
func (d *demand) free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = max(0, d.limit-d.queued)
	return d.asked
}

// claimed notes what a pass brought and whether there was more to have.
func (d *demand) claimed(n int, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if full && n == d.asked && d.queued <= d.limit/4 {
		d.limit = min(2*d.limit, d.max)
	}
	d.queued += n
	d.full = full
	d.tell()
}

// left notes that a task left the queue after waiting for so long.
func (d *demand) left(waited time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued--
	if waited > d.patience {
		d.limit = max(d.limit/2, d.min)
	}
	d.tell()
}

func (d *demand) tell() {
	if d.full && d.queued <= d.limit/2 {
		d.full = false
		select {
		case d.room <- struct{}{}:
		default:
		}
	}
}
