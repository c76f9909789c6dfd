package scheduler

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"
)

// memory is a Store for tests where the real one cannot be: it plays the ledger with maps, under
// a clock that the test owns. It follows the statements of package postgres and is stricter in one
// thing: a plan that asks for a slot which has a row is an error here, where a primary key would
// let it pass.
type memory struct {
	t         reporter
	now       func() time.Time
	adoptedAt time.Time
	notBefore time.Time

	mu          sync.Mutex
	subjects    map[string]*subject // by request id
	claims      uint64              // drawn so far
	mostSending int                 // handed off and not yet recorded, at any one time
}

// subject is all that concerns one request.
type subject struct {
	request    *Request
	link       *Link
	suppressed bool
	rows       []*Reminder
	fresh      bool      // waits to be planned
	wake       time.Time // zero: never
	problem    Problem
}

func newMemory(t reporter, now func() time.Time, adoptedAt time.Time) *memory {
	return &memory{t: t, now: now, adoptedAt: adoptedAt, subjects: map[string]*subject{}}
}

// edit changes a request as the application would, and makes the next pass look at it.
func (m *memory) edit(id string, change func(*subject)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.subjects[id]
	if s == nil {
		s = &subject{}
		m.subjects[id] = s
	}
	change(s)
	s.fresh = true
}

func (m *memory) input(id string) Input {
	s := m.subjects[id]
	in := Input{Now: m.now(), AdoptedAt: m.adoptedAt, NotBefore: m.notBefore, RequestID: id, Suppressed: s.suppressed}
	if s.request != nil {
		in.Request = new(*s.request)
	}
	if s.link != nil {
		in.Link = new(*s.link)
	}
	for _, r := range s.rows {
		in.Reminders = append(in.Reminders, *r)
	}
	return in
}

// look returns what there is about a request, but for its rows.
func (m *memory) look(id string) subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := *m.subjects[id]
	s.rows = nil
	return s
}

// reminders returns the rows of one request in the order they were written.
func (m *memory) reminders(id string) []Reminder {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.input(id).Reminders
}

// count returns how many rows are in a state.
func (m *memory) count(state State) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for r := range m.all() {
		if r.State == state {
			n++
		}
	}
	return n
}

func (m *memory) all() func(yield func(*Reminder) bool) {
	return func(yield func(*Reminder) bool) {
		for _, id := range slices.Sorted(maps.Keys(m.subjects)) {
			for _, r := range m.subjects[id].rows {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (m *memory) byClaim(id ClaimID) *Reminder {
	for r := range m.all() {
		if r.ClaimID == id {
			return r
		}
	}
	return nil
}

func (s *subject) row(link time.Time, slot string) *Reminder {
	for _, r := range s.rows {
		if r.LinkCreatedAt.Equal(link) && r.Slot == slot {
			return r
		}
	}
	return nil
}

// RunPass implements Store.
func (m *memory) RunPass(_ context.Context, p Pass) (PassResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	result := PassResult{Now: m.now(), Skipped: map[Reason]int{}}
	m.recover(&result)
	for _, id := range m.take(p, &result) {
		in := m.input(id)
		m.apply(in, p, p.Plan(in), &result)
	}
	return result, nil
}

// recover settles the claims whose lease ran out.
func (m *memory) recover(result *PassResult) {
	now := m.now()
	for r := range m.all() {
		if !r.State.InFlight() || r.LeaseUntil.After(now) {
			continue
		}
		if r.State == StateClaimed {
			r.State, r.Reason, r.RetryAt, r.RetrySince = StateDeferred, ReasonLeaseLost, now, now
			r.Attempt--
			result.LeaseLost++
		} else {
			r.State, r.Reason, r.FinishedAt, r.UnknownSince = StateUnknown, ReasonWorkerLost, now, firstOf(r.UnknownSince, r.HandedOffAt)
			result.Unknown = append(result.Unknown, *r)
		}
		r.LeaseUntil = time.Time{}
		m.subjects[r.RequestID].fresh = true
	}
}

func (m *memory) take(p Pass, result *PassResult) []string {
	var fresh, due []string
	for _, id := range slices.Sorted(maps.Keys(m.subjects)) {
		switch s := m.subjects[id]; {
		case s.fresh:
			fresh = append(fresh, id)
		case !s.wake.IsZero() && !s.wake.After(m.now()):
			due = append(due, id)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return m.subjects[a].wake.Compare(m.subjects[b].wake) })
	fresh, due = fresh[:min(len(fresh), p.Fresh)], due[:min(len(due), p.Due)]
	result.Fresh, result.Due = len(fresh), len(due)
	return append(fresh, due...)
}

func (m *memory) apply(in Input, p Pass, d Decision, result *PassResult) {
	s := m.subjects[in.RequestID]
	for _, v := range d.Verdicts {
		m.verdict(in.RequestID, v)
		switch v.State {
		case StateFailed:
			result.Failed++
		case StateSkipped:
			result.Skipped[v.Reason]++
		}
	}
	if d.Claim != nil {
		if task, ok := m.claim(in, p, d.Claim); ok {
			result.Tasks = append(result.Tasks, task)
		} else {
			result.Lost++
		}
	}
	s.fresh, s.wake, s.problem = false, d.Wake, d.Problem
}

func (m *memory) verdict(id string, v Verdict) {
	s, now := m.subjects[id], m.now()
	r := s.row(v.LinkCreatedAt, v.Slot.Name)
	switch {
	case v.Existing && (r == nil || r.State != StateDeferred):
		m.t.Errorf("the plan ends slot %s, which is not deferred", v.Slot.Name)
		return
	case !v.Existing && r != nil:
		m.t.Errorf("the plan skips slot %s, which has a row", v.Slot.Name)
		return
	case r == nil:
		r = &Reminder{
			RequestID: id, LinkCreatedAt: v.LinkCreatedAt, Slot: v.Slot.Name, DueAt: v.Slot.Due,
			CreatedAt: now, RetrySince: now,
		}
		s.rows = append(s.rows, r)
	}
	r.State, r.Reason, r.RetryAt, r.FinishedAt = v.State, v.Reason, time.Time{}, now
	r.HandedOffAt = firstOf(r.HandedOffAt, r.UnknownSince)
}

func (m *memory) claim(in Input, p Pass, c *Claim) (Task, bool) {
	s, now := m.subjects[in.RequestID], m.now()
	r := s.row(s.link.CreatedAt, c.Slot.Name)
	if c.Retry {
		if r == nil || r.State != StateDeferred && r.State != StateUnknown || r.ClaimID != c.Previous {
			return Task{}, false
		}
	} else {
		if r != nil {
			m.t.Errorf("the plan claims slot %s, which has a row", c.Slot.Name)
			return Task{}, false
		}
		r = &Reminder{
			RequestID: in.RequestID, LinkCreatedAt: s.link.CreatedAt, Slot: c.Slot.Name, DueAt: c.Slot.Due,
			CreatedAt: now, RetrySince: now,
		}
		s.rows = append(s.rows, r)
	}
	m.claims++
	r.ClaimID = ClaimID{}
	binary.BigEndian.PutUint64(r.ClaimID[:], m.claims)
	r.State, r.Reason, r.Attempt, r.ClaimedBy = StateClaimed, "", c.Attempt, p.Worker
	r.LeaseUntil, r.RetryAt, r.HandedOffAt, r.FinishedAt = now.Add(p.Lease), time.Time{}, time.Time{}, time.Time{}
	task := c.Task(in)
	task.ClaimID = r.ClaimID
	return task, true
}
