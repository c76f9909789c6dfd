//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"time"
)

// pace is how long a client waits between two actions, on average.
const pace = 150 * time.Millisecond

// act lets the client work until ctx ends. A change that has begun is brought to its end.
func (c *client) act(ctx context.Context) error {
	steady := context.WithoutCancel(ctx)
	for pause(ctx, between(c.draw, 0, 2*pace)) {
		if err := c.step(steady); err != nil {
			return err
		}
	}
	return nil
}

// choices are the client's actions. The weights keep most requests open for a while.
func (c *client) choices() []choice {
	return []choice{
		{do: "create", weight: 40},
		{do: "complete", weight: 8},
		{do: "reopen", weight: 5},
		{do: "pause", weight: 7},
		{do: "resume", weight: 6},
		{do: "opt out", weight: 4},
		{do: "refresh", weight: 8},
		{do: "revoke", weight: 4},
		{do: "expire", weight: 5},
		{do: "extend", weight: 3},
		{do: "readdress", weight: 8},
		{do: "suppress", weight: 2},
	}
}

func (c *client) step(ctx context.Context) error {
	do := pick(c.draw, c.choices()).do
	if do == "create" || len(c.subjects) == 0 {
		return c.create(ctx)
	}
	s := c.choose(ctx)
	to := s.now()
	now := time.Now()
	switch do {
	case "suppress":
		return c.suppress(ctx, to.address)
	case "complete":
		to.status = "completed"
	case "reopen":
		s = c.closed()
		to = s.now()
		to.status = "pending_resubmission"
	case "pause":
		to.pausedUntil = farAway()
		if c.draw.IntN(2) == 0 {
			to.pausedUntil = now.Add(between(c.draw, time.Second, 6*time.Second)).Truncate(time.Microsecond)
		}
	case "resume":
		s = c.paused()
		to = s.now()
		to.pausedUntil = time.Time{}
	case "opt out":
		to.optedOut = true
	case "refresh":
		s.newLink(&to, c.anchor(now))
	case "revoke":
		to.revoked = true
	case "expire":
		to.expires = now.Add(between(c.draw, -time.Second/2, 3*time.Second)).Truncate(time.Microsecond)
	case "extend":
		to.expires = time.Time{}
	case "readdress":
		s.newAddress(&to)
	}
	if to == s.now() {
		return nil
	}
	return c.change(ctx, s, do, to)
}

// anchor draws when a link was created: now, or so long ago that slots are due at once.
func (c *client) anchor(now time.Time) time.Time {
	if c.draw.IntN(3) > 0 {
		return now
	}
	return now.Add(-between(c.draw, 0, 20*time.Second))
}

func (c *client) create(ctx context.Context) error {
	s := &subject{
		id: fmt.Sprintf("%s-%d", c.name, len(c.subjects)), cadence: "default",
		urls: map[string]time.Time{},
	}
	if c.draw.IntN(2) == 0 {
		s.cadence = "once" // behind its last slot no other one wakes it
	}
	to := state{status: "pending"}
	s.newAddress(&to)
	s.newLink(&to, c.anchor(time.Now()))
	if err := c.change(ctx, s, "create", to); err != nil {
		return err
	}
	c.subjects = append(c.subjects, s)
	c.byID[s.id] = s
	return nil
}

// choose takes, twice in three times, a request of which a slot is on its way at this moment: that
// is when a change matters most.
func (c *client) choose(ctx context.Context) *subject {
	if c.draw.IntN(3) == 0 {
		return c.recent()
	}
	var id string
	err := c.app.pool.QueryRow(ctx, `SELECT request_id FROM nudged.reminders
		WHERE lease_until IS NOT NULL AND request_id LIKE $1
		ORDER BY state, random() LIMIT 1`, c.name+"-%").Scan(&id)
	if s, mine := c.byID[id]; err == nil && mine {
		return s
	}
	return c.recent()
}

// recent draws one of the latest requests.
func (c *client) recent() *subject {
	const latest = 40
	return c.subjects[max(0, len(c.subjects)-1-c.draw.IntN(latest))]
}

func (c *client) closed() *subject {
	return c.find(func(s state) bool { return !s.open() })
}

func (c *client) paused() *subject {
	return c.find(func(s state) bool { return !s.pausedUntil.IsZero() })
}

// find draws requests until one is as wanted, or else returns the last one drawn.
func (c *client) find(wanted func(state) bool) *subject {
	const tries = 20
	var s *subject
	for range tries {
		if s = c.recent(); wanted(s.now()) {
			break
		}
	}
	return s
}
