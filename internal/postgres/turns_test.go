package postgres_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nudged/scheduler"
)

// backlog inserts n requests of an account, planned long ago and overdue for so many minutes.
func (f *fixture) backlog(account string, n, minutes int) {
	f.t.Helper()
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT $1 || '-' || i, $1, 'pending', 'r' || i || '@example.com', 'Papers' FROM generate_series(1, $2::int) i`, account, n)
	f.exec(`INSERT INTO nudged.links (request_id, url, created_at)
		SELECT $1 || '-' || i, 'https://example.com/u/' || i, now() - interval '3 days' - $3::int * interval '1 minute'
		FROM generate_series(1, $2::int) i`, account, n, minutes)
	f.exec(`UPDATE nudged.schedules SET wake_at = now() - $2::int * interval '1 minute', account_id = $1
		WHERE request_id LIKE $1 || '-%'`, account, minutes)
}

// taker is a mailer to which everything is accepted; it notes how many before it was given the mail
// that it waits for.
type taker struct {
	mu     sync.Mutex
	wanted string
	before int
	done   chan struct{}
}

func (m *taker) Compose(task scheduler.Task) (scheduler.Message, error) {
	return scheduler.Message{To: task.Request.RecipientEmail, MessageID: task.Request.ID + "@example.com"}, nil
}

func (m *taker) Deliver(_ context.Context, message scheduler.Message, _ time.Time) scheduler.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.wanted == "":
	case message.MessageID == m.wanted:
		m.wanted = ""
		close(m.done)
	default:
		m.before++
	}
	return sent
}

func (m *taker) Probe(context.Context) error { return nil }

// One account with 50,000 reminders due does not keep another one's single reminder waiting for more
// than a few batches, although all of them have been due for longer.
func TestAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]struct{ batch, workers int }{"wide": {500, 8}, "one connection, a queue of four": {4, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takeTurns(t, size.batch, size.workers)
		})
	}
}

func takeTurns(t *testing.T, batch, workers int) {
	const fewBatches = 8
	f := newFixture(t)
	f.backlog("big", 50_000, 60)
	f.backlog("small", 1, 1)
	f.exec(`ANALYZE`)
	m := &taker{wanted: "small-1@example.com", done: make(chan struct{})}
	s, err := scheduler.New(scheduler.Config{
		Store: f.store, Mailer: m, Policy: f.policy, Worker: "a", Every: time.Second, StallAfter: time.Minute,
		Batch: batch, Lease: time.Minute, Workers: workers,
		Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-m.done:
	case <-ctx.Done():
		t.Error("the single reminder did not go out within a minute")
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d reminders of the large account went before the one of the small account", m.before)
	if m.before > fewBatches*batch {
		t.Errorf("%d reminders went before it, want at most %d batches of %d", m.before, fewBatches, batch)
	}
}

// Two replicas work off one backlog together: each reminder is claimed once, no claim is lost, and
// both have their share.
func TestReplicasShareABacklog(t *testing.T) {
	t.Parallel()
	const n, each = 6000, 100
	f := newFixture(t)
	f.backlog("a", n/2, 30)
	f.backlog("b", n/2, 20)
	var mu sync.Mutex
	owners, lost := map[string]int{}, 0
	shares := make([]int, 2)
	var replicas sync.WaitGroup
	for i := range shares {
		store := openStore(t, f.url)
		replicas.Go(func() {
			for more := true; more; {
				result, err := store.RunPass(context.Background(), scheduler.Pass{
					Worker: "replica", Lease: time.Minute, Fresh: 500, Due: each, Plan: f.policy.Plan,
				})
				if err != nil {
					t.Error(err)
					return
				}
				more = result.More
				mu.Lock()
				for _, task := range result.Tasks {
					owners[task.Request.ID]++
				}
				shares[i] += len(result.Tasks)
				lost += result.Lost
				mu.Unlock()
			}
		})
	}
	replicas.Wait()
	for id, times := range owners {
		if times != 1 {
			t.Errorf("%s was claimed %d times", id, times)
		}
	}
	t.Logf("shares %v, %d claims lost", shares, lost)
	if len(owners) != n || lost != 0 || min(shares[0], shares[1]) < n/10 {
		t.Errorf("%d of %d claimed, %d lost, shares %v", len(owners), n, lost, shares)
	}
}
