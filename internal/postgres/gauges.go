package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/prometheus/client_golang/prometheus"

	"nudged/scheduler"
)

// Gauges are the metrics that are read from the database: every replica says the same.
type Gauges struct {
	store    *Store
	log      *slog.Logger
	open     *prometheus.GaugeVec
	due      prometheus.Gauge
	oldest   prometheus.Gauge
	unknown  prometheus.Gauge
	problems *prometheus.GaugeVec
}

// NewGauges registers the gauges and those of the connection pool.
func NewGauges(store *Store, reg prometheus.Registerer, log *slog.Logger) (*Gauges, error) {
	g := &Gauges{
		store: store,
		log:   log,
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "nudged_requests_open", Help: "Requests that may be reminded, by status.",
		}, []string{"status"}),
		due: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_slots_due", Help: "Slots that are due and not yet sent.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_oldest_due_slot_timestamp_seconds", Help: "Since when the oldest due slot waits, in seconds since the epoch; 0 where none is due.",
		}),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_unknown_outcomes", Help: "Reminders whose fate is unknown and waits for a person.",
		}),
		problems: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "nudged_requests_misconfigured", Help: "Requests whose row has a mistake, such as a cadence that does not exist, by reason.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{g.open, g.due, g.oldest, g.unknown, g.problems, poolCollector(store)} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register gauges: %w", err)
		}
	}
	g.setOpen(nil)
	for _, p := range scheduler.Problems() {
		g.problems.WithLabelValues(string(p))
	}
	return g, nil
}

// How often the gauges are read, and the share of time that reading them may take: counting open
// requests costs more the more there are.
const (
	gaugeEvery   = 10 * time.Second
	gaugeTimeout = 30 * time.Second
	gaugeShare   = 100
)

// Run keeps the gauges fresh until ctx ends.
func (g *Gauges) Run(ctx context.Context) {
	openAt := time.Now()
	for {
		g.refresh(ctx, g.readBacklog)
		if begun := time.Now(); !begun.Before(openAt) {
			g.refresh(ctx, g.readOpen)
			openAt = time.Now().Add(gaugeShare * time.Since(begun))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gaugeEvery):
		}
	}
}

// refresh leaves the old values in place when the database is away: the passes tell about that.
func (g *Gauges) refresh(ctx context.Context, read func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
	defer cancel()
	if err := read(ctx); err != nil {
		g.log.Debug("gauges are not refreshed", "err", ofAView(err))
	}
}

func (g *Gauges) readBacklog(ctx context.Context) error {
	var due, unknown int64
	var oldest pgtype.Timestamptz
	var problems map[scheduler.Problem]int64
	err := g.store.pool.QueryRow(ctx, backlogSQL).Scan(&due, &oldest, &unknown, &problems)
	if err != nil {
		return fmt.Errorf("read the backlog: %w", err)
	}
	g.due.Set(float64(due))
	g.unknown.Set(float64(unknown))
	for _, p := range scheduler.Problems() {
		g.problems.WithLabelValues(string(p)).Set(float64(problems[p]))
	}
	g.oldest.Set(0)
	if oldest.Valid {
		g.oldest.Set(float64(oldest.Time.UnixMilli()) / 1000)
	}
	return nil
}

func (g *Gauges) readOpen(ctx context.Context) error {
	rows, err := g.store.pool.Query(ctx, openRequestsSQL)
	if err != nil {
		return fmt.Errorf("count open requests: %w", err)
	}
	counts := map[scheduler.Status]int64{}
	var status scheduler.Status
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		counts[status] = n
		return nil
	}); err != nil {
		return fmt.Errorf("count open requests: %w", err)
	}
	g.setOpen(counts)
	return nil
}

func (g *Gauges) setOpen(counts map[scheduler.Status]int64) {
	for _, s := range []scheduler.Status{scheduler.StatusPending, scheduler.StatusPendingResubmission} {
		g.open.WithLabelValues(string(s)).Set(float64(counts[s]))
	}
}
