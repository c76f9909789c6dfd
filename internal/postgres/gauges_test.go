package postgres_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"nudged/internal/postgres"
	"nudged/scheduler"
)

// gathered returns the gauges that are read from the database, by name and label value.
func gathered(t testing.TB, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "nudged_db_pool_") {
			continue
		}
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = m.GetGauge().GetValue()
		}
	}
	return values
}

// zeros are the gauges before anything is read, and of an empty database.
func zeros() map[string]float64 {
	return map[string]float64{
		"nudged_requests_open pending": 0, "nudged_requests_open pending_resubmission": 0,
		"nudged_slots_due": 0, "nudged_oldest_due_slot_timestamp_seconds": 0, "nudged_unknown_outcomes": 0,
		"nudged_requests_misconfigured unknown_cadence": 0, "nudged_requests_misconfigured unknown_zone": 0,
		"nudged_requests_misconfigured anchor_out_of_range": 0, "nudged_requests_misconfigured unknown_locale": 0,
		"nudged_requests_misconfigured invalid_reply_to": 0, "nudged_requests_misconfigured unreadable_row": 0,
		"nudged_requests_misconfigured purged_link": 0,
	}
}

// gauges are the gauges of a fixture, over all that happens to it.
type gauges struct {
	t   testing.TB
	reg *prometheus.Registry
	*postgres.Gauges
}

func (f *fixture) gauges() *gauges {
	f.t.Helper()
	reg := prometheus.NewRegistry()
	g, err := postgres.NewGauges(f.store, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		f.t.Fatal(err)
	}
	return &gauges{f.t, reg, g}
}

// want runs the gauges, which read at once, until they say what is wanted of those named and 0 of
// the others.
func (g *gauges) want(named map[string]float64) {
	g.t.Helper()
	want := zeros()
	maps.Copy(want, named)
	ctx, cancel := context.WithTimeout(context.Background(), atOnce)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	diff := cmp.Diff(want, gathered(g.t, g.reg))
	for diff != "" && ctx.Err() == nil {
		<-tick.C
		diff = cmp.Diff(want, gathered(g.t, g.reg))
	}
	cancel()
	running.Wait()
	if diff != "" {
		g.t.Errorf("gauges (-want +got):\n%s", diff)
	}
}

func TestGauges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gauges()
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES
		('p-1', 'a', 'pending', 'x@example.com', 'T'), ('p-2', 'a', 'pending_resubmission', 'x@example.com', 'T'),
		('p-3', 'a', 'completed', 'x@example.com', 'T'), ('p-4', 'a', 'archived', 'x@example.com', 'T')`)
	g.want(map[string]float64{"nudged_requests_open pending": 1, "nudged_requests_open pending_resubmission": 1})

	// Five slots fell due at the same instant: one waits for a pass, one is claimed, one is being sent,
	// one is deferred, one unknown.
	due := time.Now().Add(-time.Hour).Truncate(time.Second)
	f.exec(`DELETE FROM nudged.requests`)
	f.due(5)
	f.exec(`UPDATE nudged.links SET created_at = $1::timestamptz - interval '3 days'`, due)
	f.exec(`UPDATE nudged.schedules SET wake_at = $1 WHERE request_id = 'r-1'`, due)
	with := func(due, oldest, unknown float64) map[string]float64 {
		return map[string]float64{
			"nudged_requests_open pending": 5, "nudged_slots_due": due,
			"nudged_oldest_due_slot_timestamp_seconds": oldest, "nudged_unknown_outcomes": unknown,
		}
	}
	oldest := float64(due.Unix())
	g.want(with(1, oldest, 0))

	f.exec(`UPDATE nudged.schedules SET wake_at = '-infinity'`)
	tasks := f.pass("a").Tasks
	if len(tasks) != 5 {
		t.Fatalf("got %d tasks, want 5", len(tasks))
	}
	g.want(with(5, oldest, 0))

	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0]), handOff(tasks[1]), handOff(tasks[2]), handOff(tasks[3])}})
	g.want(with(5, oldest, 0))

	later := settlement(tasks[2], scheduler.Outcome{State: scheduler.StateDeferred, Reason: scheduler.ReasonGreylisted, SMTPCode: 451})
	later.RetryIn = time.Hour
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{
		settlement(tasks[0], sent), later,
		settlement(tasks[1], scheduler.Outcome{State: scheduler.StateUnknown, Reason: scheduler.ReasonReplyLost}),
	}})
	f.exec(`UPDATE nudged.schedules SET wake_at = now() + interval '1 hour' WHERE wake_at <= now()`)
	g.want(with(3, oldest, 1))

	// All is over: nothing is due any more.
	f.exec(`UPDATE nudged.reminders SET state = 'sent', reason = NULL, retry_at = NULL, lease_until = NULL, handed_off_at = now(), finished_at = now()`)
	g.want(with(0, 0, 0))

	f.exec(`UPDATE nudged.requests SET cadence = 'hourly' WHERE id IN ('r-1', 'r-2')`)
	f.exec(`UPDATE nudged.requests SET time_zone = 'Europe/Atlantis' WHERE id = 'r-3'`)
	f.exec(`UPDATE nudged.links SET created_at = 'infinity' WHERE request_id = 'r-4'`)
	f.exec(`UPDATE nudged.requests SET reply_to = 'nobody' WHERE id = 'r-5'`)
	f.policy.Usable = func(r scheduler.Request) []scheduler.Problem {
		if r.ReplyTo == "nobody" {
			return []scheduler.Problem{scheduler.ProblemBadReplyTo}
		}
		return nil
	}
	f.pass("a")
	g.want(map[string]float64{
		"nudged_requests_open pending":                  5,
		"nudged_requests_misconfigured unknown_cadence": 2, "nudged_requests_misconfigured unknown_zone": 1,
		"nudged_requests_misconfigured anchor_out_of_range": 1, "nudged_requests_misconfigured invalid_reply_to": 1,
	})
	f.exec(`UPDATE nudged.requests SET reply_to = 'marta@example.com' WHERE id = 'r-5'`)
	f.exec(`UPDATE nudged.links SET created_at = now() WHERE request_id = 'r-4'`)
	f.pass("a")
	g.want(map[string]float64{
		"nudged_requests_open pending":                  5,
		"nudged_requests_misconfigured unknown_cadence": 2, "nudged_requests_misconfigured unknown_zone": 1,
	})
}

// Every series is there at 0 from the start, without a database.
func TestGaugesBeforeTheFirstReading(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://nobody@127.0.0.1:1/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	reg := prometheus.NewRegistry()
	g, err := postgres.NewGauges(store, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(zeros(), gathered(t, reg)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
	if n, err := testutil.GatherAndCount(reg, "nudged_db_pool_connections", "nudged_db_pool_connections_in_use", "nudged_db_pool_connections_max",
		"nudged_db_pool_acquires_total", "nudged_db_pool_acquire_wait_seconds_total", "nudged_db_pool_empty_acquires_total",
		"nudged_db_pool_new_connections_total"); n != 7 || err != nil {
		t.Errorf("%d figures of the pool, %v", n, err)
	}
	if _, err := postgres.NewGauges(store, reg, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("the gauges can be registered twice")
	}
	// A database that is away is no reason to stop or to forget.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Run(ctx)
	if diff := cmp.Diff(zeros(), gathered(t, reg)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}

func TestGaugesFollowTheConventions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reg := prometheus.NewRegistry()
	if _, err := postgres.NewGauges(f.store, reg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	const most = `
		# HELP nudged_db_pool_connections_max Connections the pool may have.
		# TYPE nudged_db_pool_connections_max gauge
		nudged_db_pool_connections_max 6
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(most), "nudged_db_pool_connections_max"); err != nil {
		t.Error(err)
	}
}
