package scheduler

import (
	"testing"
	"time"
)

func (d *demand) told() bool {
	select {
	case <-d.room:
		return true
	default:
		return false
	}
}

// TestDemandDoubles while each pass finds the queue dry and fills it.
func TestDemandDoubles(t *testing.T) {
	d := newDemand(4, 30, time.Minute)
	for _, want := range []int{4, 8, 16, 30, 30} {
		free := d.free()
		if free != want {
			t.Fatalf("room for %d, want %d", free, want)
		}
		d.claimed(free, true)
		if d.free() > want*2-free {
			t.Fatalf("room for %d while %d wait", d.free(), free)
		}
		for range free {
			d.left(0)
		}
	}
}

func TestDemandStaysWhere(t *testing.T) {
	t.Run("there is no more to claim", func(t *testing.T) {
		d := newDemand(4, 30, time.Minute)
		d.claimed(4, false)
		for range 4 {
			d.left(0)
		}
		if d.free() != 4 || d.told() {
			t.Errorf("room for %d", d.free())
		}
	})
	t.Run("the queue was not dry", func(t *testing.T) {
		d := newDemand(4, 30, time.Minute)
		d.claimed(2, true)
		d.claimed(2, true)
		if d.free() != 0 {
			t.Errorf("room for %d", d.free())
		}
	})
	t.Run("the pass won less than it could", func(t *testing.T) {
		d := newDemand(4, 30, time.Minute)
		d.claimed(3, true)
		if d.free() != 1 {
			t.Errorf("room for %d", d.free())
		}
	})
}

// TestDemandHalves when a task waited longer than the patience allows.
func TestDemandHalves(t *testing.T) {
	d := newDemand(4, 64, time.Minute)
	for range 4 {
		n := d.free()
		d.claimed(n, true)
		for range n {
			d.left(time.Minute) // as long as allowed
		}
	}
	if d.free() != 64 {
		t.Fatalf("room for %d", d.free())
	}
	d.claimed(10, false)
	for i, limit := range []int{32, 16, 8, 4, 4, 4} {
		d.left(time.Minute + 1)
		if waiting := 9 - i; d.free() != max(0, limit-waiting) {
			t.Errorf("room for %d at a limit of %d with %d waiting", d.free(), limit, waiting)
		}
	}
}

// TestDemandTellsOfRoom once, when half of a full queue has drained.
func TestDemandTellsOfRoom(t *testing.T) {
	d := newDemand(8, 8, time.Minute)
	d.claimed(8, true)
	for waiting := 7; waiting > 4; waiting-- {
		if d.left(0); d.told() {
			t.Errorf("told while %d wait", waiting)
		}
	}
	if d.left(0); !d.told() {
		t.Error("not told when half of the queue had drained")
	}
	if d.left(0); d.told() {
		t.Error("told twice")
	}
	d.claimed(0, true) // nothing was won, and there is more: go on at once
	if !d.told() {
		t.Error("not told of a queue that is empty enough already")
	}
}

func TestDemandBounds(t *testing.T) {
	if d := newDemand(8, 3, time.Minute); d.free() != 8 {
		t.Errorf("room for %d; a batch smaller than the window does not count", d.free())
	}
}
