package postgres

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolMetric is one figure of the connection pool.
type poolMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pgxpool.Stat) float64
}

// poolMetrics reads the statistics of the pool at each scrape; no connection is used for it.
type poolMetrics struct {
	pool    *pgxpool.Pool
	metrics []poolMetric
}

func poolCollector(store *Store) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("nudged_db_pool_"+name, help, nil, nil)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return &poolMetrics{pool: store.pool, metrics: []poolMetric{
		{desc("connections", "Connections of the pool."), gauge,
			func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }},
		{desc("connections_in_use", "Connections in use."), gauge,
			func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }},
		{desc("connections_max", "Connections the pool may have."), gauge,
			func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }},
		{desc("acquires_total", "Connections taken from the pool."), counter,
			func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }},
		{desc("acquire_wait_seconds_total", "Time spent waiting for a connection."), counter,
			func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }},
		{desc("empty_acquires_total", "Takes that found no idle connection."), counter,
			func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }},
		{desc("new_connections_total", "Connections opened."), counter,
			func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) }},
	}}
}

// Describe implements prometheus.Collector.
func (p *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	stat := p.pool.Stat()
	for _, m := range p.metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stat))
	}
}
