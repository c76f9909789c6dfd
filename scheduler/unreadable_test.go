package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// tryingTwice is a store whose every pass begins again after all its plans were asked for, takes three requests then,
// and cannot read one.
type tryingTwice struct{ *memory }

func (s tryingTwice) RunPass(ctx context.Context, p Pass) (PassResult, error) {
	s.mu.Lock()
	for id := range s.subjects {
		p.Plan(s.input(id))
	}
	s.mu.Unlock()
	p.Fresh, p.Due = min(p.Fresh, 3), min(p.Due, 3)
	result, err := s.memory.RunPass(ctx, p)
	result.Partial = result.Fresh+result.Due > 0
	result.Unreadable = []Unreadable{{RequestID: "r-99", Err: errors.New("no day")}}
	return result, err
}

// TestPassThatBeginsAgain: plans of the first try take nobody's room, and what cannot be read is told.
func TestPassThatBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) {
			c.Batch, c.Workers, c.Every = 7, 1, 24*time.Hour
			c.Store = tryingTwice{c.Store.(*faulty).memory}
		})
		d.due(7)
		begun := time.Now()
		d.start()
		defer d.stop()
		d.wantStates(map[State]int{StateSent: 7})
		if !time.Now().Equal(begun) {
			t.Errorf("it took %s", time.Since(begun))
		}
		for i := range 7 {
			if wake := d.store.look(requestID(i)).wake; !wake.After(begun) {
				t.Errorf("%s was put off", requestID(i))
			}
		}
		if d.logs.count(`request_id=r-99 err="no day"`) == 0 {
			t.Error("the log does not name the request that cannot be read")
		}
	})
}

// TestPartialPassGoesOnAtOnce: what it did not take does not wait for the tick.
func TestPartialPassGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, func(c *Config) {
			c.Every = 24 * time.Hour
			c.Store = tryingTwice{c.Store.(*faulty).memory}
		})
		d.due(20)
		for i := range 20 {
			d.store.edit(requestID(i), func(s *subject) { s.link.CreatedAt = time.Now() })
		}
		d.start()
		defer d.stop()
		for i := range 20 {
			if d.store.look(requestID(i)).fresh {
				t.Errorf("%s is not planned", requestID(i))
			}
		}
	})
}
