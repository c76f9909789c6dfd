package scheduler

import (
	"sync"
	"time"
)

// flights knows the claims that this process works on and until when each is surely its own, by
// the process's monotonic clock.
type flights struct {
	mu    sync.Mutex
	until map[ClaimID]time.Time
	lost  int // outcomes of deliveries that could not be recorded
}

func (f *flights) add(id ClaimID, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until[id] = until
}

func (f *flights) remove(id ClaimID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.until, id)
}

func (f *flights) lose(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += n
}

func (f *flights) losses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.until)
}

// heldUntil returns the zero time for a claim that is no longer ours.
func (f *flights) heldUntil(id ClaimID) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until[id]
}

// endingBefore lists the claims whose hold ends before t.
func (f *flights) endingBefore(t time.Time) []ClaimID {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []ClaimID
	for id, until := range f.until {
		if until.Before(t) {
			ids = append(ids, id)
		}
	}
	return ids
}

// renewed moves the hold of the kept claims to until and forgets the others of asked.
func (f *flights) renewed(asked, kept []ClaimID, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := make(map[ClaimID]bool, len(kept))
	for _, id := range kept {
		mine[id] = true
	}
	for _, id := range asked {
		if _, working := f.until[id]; !working {
			continue
		}
		if mine[id] {
			f.until[id] = until
		} else {
			f.until[id] = time.Time{}
		}
	}
}
