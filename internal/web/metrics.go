package web

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says which program this is.
type Build struct {
	Version  string // for example 1.4.0
	Revision string // commit
}

// RegisterBuild registers nudged_build_info and the metrics of the Go runtime and of the process.
func RegisterBuild(reg prometheus.Registerer, b Build) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "nudged_build_info",
		Help:        "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	return register(reg, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// ReloadMetrics tell how the last loading of the configuration went.
type ReloadMetrics struct {
	successful prometheus.Gauge
	at         prometheus.Gauge
}

// NewReloadMetrics registers the metrics of configuration loading. Until Success is called they
// say that nothing was loaded.
func NewReloadMetrics(reg prometheus.Registerer) (*ReloadMetrics, error) {
	m := &ReloadMetrics{
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_config_last_reload_successful",
			Help: "1 where the last attempt to load the configuration succeeded, 0 where it failed.",
		}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_config_last_reload_success_timestamp_seconds",
			Help: "Unix time at which the configuration in force was loaded.",
		}),
	}
	return m, register(reg, m.successful, m.at)
}

// Success notes that the configuration was loaded just now.
func (m *ReloadMetrics) Success() {
	m.successful.Set(1)
	m.at.SetToCurrentTime()
}

// Failure notes that a configuration was refused and the one before stays in force.
func (m *ReloadMetrics) Failure() { m.successful.Set(0) }

func register(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}
