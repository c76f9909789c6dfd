package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The loop is tested in bubbles of testing/synctest, where time moves only when everything waits.
// The real database and mail server cannot live there: a memory and a postbox stand for them.

// errAway is what a database says that is away.
var errAway = errors.New("the database is away")

// faulty is a memory that can fail. A hook gets the number of the call, counted from 1.
type faulty struct {
	*memory
	beforePass   func(n int) error          // an error: nothing happened
	beforeSettle func(n int, b Batch) error // an error: nothing happened
	afterSettle  func(n int, b Batch) error // an error: it happened, and the answer was lost
	afterRenew   func(kept []ClaimID) []ClaimID

	settles, renewals atomic.Int64
	calls             sync.Mutex
	asked             []Pass
}

// passes returns what each pass asked for, so far.
func (f *faulty) passes() []Pass {
	f.calls.Lock()
	defer f.calls.Unlock()
	return slices.Clone(f.asked)
}

func (f *faulty) RunPass(ctx context.Context, p Pass) (PassResult, error) {
	f.calls.Lock()
	f.asked = append(f.asked, p)
	n := len(f.asked)
	f.calls.Unlock()
	if f.beforePass != nil {
		if err := f.beforePass(n); err != nil {
			return PassResult{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return PassResult{}, err
	}
	return f.memory.RunPass(ctx, p)
}

func (f *faulty) Settle(ctx context.Context, b Batch) ([]HandOffResult, error) {
	n := int(f.settles.Add(1))
	if f.beforeSettle != nil {
		if err := f.beforeSettle(n, b); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results, err := f.memory.Settle(ctx, b)
	if err == nil && f.afterSettle != nil {
		if err = f.afterSettle(n, b); err != nil {
			results = nil
		}
	}
	return results, err
}

func (f *faulty) Renew(ctx context.Context, claims []ClaimID, lease time.Duration) ([]ClaimID, error) {
	f.renewals.Add(1)
	kept, err := f.memory.Renew(ctx, claims, lease)
	if f.afterRenew != nil {
		kept = f.afterRenew(kept)
	}
	return kept, err
}

// postbox is a Mailer. It insists that a delivery has been handed off and is the only one of its
// claim.
type postbox struct {
	t          *testing.T
	store      *memory
	composing  func(Task) error
	delivering func(ctx context.Context, id string, notAfter time.Time) Outcome // nil: sent
	probing    func(n int) error

	mu       sync.Mutex
	started  []string // requests, in the order their deliveries began
	sent     map[string]int
	claims   map[ClaimID]bool
	busy     int
	mostBusy int
	probes   []time.Time
}

func (p *postbox) Compose(task Task) (Message, error) {
	if p.composing != nil {
		if err := p.composing(task); err != nil {
			return Message{}, err
		}
	}
	return Message{To: task.Request.RecipientEmail, MessageID: task.Request.ID}, nil
}

func (p *postbox) Deliver(ctx context.Context, m Message, notAfter time.Time) Outcome {
	p.store.mu.Lock()
	r := p.store.byClaim(m.ClaimID)
	if r == nil || r.State != StateSending && !notAfter.IsZero() {
		p.t.Errorf("a delivery for %s whose row is %+v", m.MessageID, r)
	}
	p.store.mu.Unlock()

	p.mu.Lock()
	if p.claims[m.ClaimID] {
		p.t.Errorf("a second delivery of one claim, for %s", m.MessageID)
	}
	p.claims[m.ClaimID] = true
	p.started = append(p.started, m.MessageID)
	p.busy++
	p.mostBusy = max(p.mostBusy, p.busy)
	p.mu.Unlock()

	outcome := Outcome{State: StateSent, SMTPCode: 250}
	if p.delivering != nil {
		outcome = p.delivering(ctx, m.MessageID, notAfter)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	if outcome.State == StateSent {
		p.sent[m.MessageID]++
	}
	return outcome
}

func (p *postbox) Probe(context.Context) error {
	p.mu.Lock()
	p.probes = append(p.probes, time.Now())
	n := len(p.probes)
	p.mu.Unlock()
	if p.probing != nil {
		return p.probing(n)
	}
	return nil
}

// probed returns when the relay was probed, so far.
func (p *postbox) probed() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.probes)
}

// order returns the requests whose deliveries began, so far.
func (p *postbox) order() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.started)
}

// logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// daemon is a scheduler at work over a memory and a postbox.
type daemon struct {
	*Scheduler
	t        *testing.T
	store    *faulty
	mail     *postbox
	logs     *logbook
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan struct{}
}

// newDaemon prepares a daemon; its clock is the bubble's. Over a store it takes that one.
func newDaemon(t *testing.T, change func(*Config)) *daemon {
	t.Helper()
	store := newMemory(t, time.Now, time.Now().Add(-365*day))
	return daemonOver(t, store, change)
}

func daemonOver(t *testing.T, store *memory, change func(*Config)) *daemon {
	t.Helper()
	d := &daemon{
		t: t, logs: &logbook{}, registry: prometheus.NewRegistry(), ended: make(chan struct{}),
		store: &faulty{memory: store},
		mail:  &postbox{t: t, store: store, sent: map[string]int{}, claims: map[ClaimID]bool{}},
	}
	cfg := Config{
		Store: d.store, Mailer: d.mail, Policy: newPolicy(t), Worker: "w", Every: 30 * time.Second,
		StallAfter: 2 * time.Minute, Batch: 100, Lease: 5 * time.Minute, Workers: 2,
		Registerer: d.registry, Logger: slog.New(slog.NewTextHandler(d.logs, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if d.Scheduler, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

// due adds requests r-1 … r-n, each with slot 3d due a minute ago.
func (d *daemon) due(n int) {
	for i := range n {
		id := requestID(i)
		d.store.edit(id, func(s *subject) {
			s.request = &Request{ID: id, Status: StatusPending, RecipientEmail: id + "@example.com"}
			s.link = &Link{CreatedAt: time.Now().Add(-3*day - time.Minute)}
		})
	}
}

// start runs the daemon and waits until there is nothing left to do for now.
func (d *daemon) start() {
	ctx, cancel := context.WithCancel(d.t.Context())
	d.cancel = cancel
	go func() {
		defer close(d.ended)
		if err := d.Run(ctx); err != nil {
			d.t.Errorf("run: %v", err)
		}
	}()
	synctest.Wait()
}

// sleep lets time pass.
func (d *daemon) sleep(span time.Duration) {
	time.Sleep(span)
	synctest.Wait()
}

// stop ends the daemon and checks what has to hold whatever happened.
func (d *daemon) stop() {
	d.t.Helper()
	d.cancel()
	<-d.ended
	if len(d.flights.until) != 0 {
		d.t.Errorf("%d claims were never let go", len(d.flights.until))
	}
	if d.logs.count("@") != 0 {
		d.t.Error("an address is in the log")
	}
	for id, n := range d.mail.sent {
		if n > 1 {
			d.t.Errorf("%d mails for %s", n, id)
		}
	}
}

// row is the newest reminder of a request.
func (d *daemon) row(id string) Reminder {
	d.t.Helper()
	rows := d.store.reminders(id)
	if len(rows) == 0 {
		d.t.Fatalf("%s has no reminder", id)
	}
	return rows[len(rows)-1]
}

// wantStates compares how many reminders are in each state.
func (d *daemon) wantStates(want map[State]int) {
	d.t.Helper()
	for _, state := range []State{StateClaimed, StateSending, StateSent, StateDeferred, StateFailed, StateUnknown, StateSkipped} {
		if got := d.store.memory.count(state); got != want[state] {
			d.t.Errorf("%d reminders are %s, want %d", got, state, want[state])
		}
	}
}

// requestID names request i of those that due adds, counted from 0.
func requestID(i int) string { return fmt.Sprintf("r-%d", i+1) }
