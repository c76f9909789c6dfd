package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of this process. Every label value stands at 0 from the start.
type metrics struct {
	passes       *prometheus.CounterVec
	passDuration prometheus.Histogram
	lastSuccess  prometheus.Gauge
	claims       *prometheus.CounterVec
	attempts     prometheus.Counter
	sends        *prometheus.CounterVec
	skipped      *prometheus.CounterVec
	sendDuration prometheus.Histogram
	lateness     prometheus.Histogram
	relayUp      prometheus.Gauge
	skew         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nudged_passes_total", Help: "Passes over the schedules, by result.",
		}, []string{"result"}),
		passDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nudged_pass_duration_seconds", Help: "How long one pass took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}),
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_last_pass_success_timestamp_seconds", Help: "When the last pass ended well, in seconds since the epoch; 0 before the first.",
		}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nudged_claims_total", Help: "Claims of slots, by whether this process won them.",
		}, []string{"result"}),
		attempts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nudged_send_attempts_total", Help: "Deliveries begun.",
		}),
		sends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nudged_sends_total", Help: "Claims that ended, by what became of the reminder; one whose lease ran out is deferred or unknown.",
		}, []string{"outcome"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nudged_slots_skipped_total", Help: "Slots that were not attempted, by reason.",
		}, []string{"reason"}),
		sendDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nudged_send_duration_seconds", Help: "How long one delivery took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nudged_send_lateness_seconds", Help: "How long after its due a reminder was accepted.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600, 48 * 3600},
		}),
		relayUp: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_relay_up", Help: "1 while the mail server accepts mail, 0 while sending is stopped because it does not.",
		}),
		skew: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nudged_clock_skew_seconds", Help: "Clock of this process minus clock of the database at the last pass.",
		}),
	}
	for _, c := range []prometheus.Collector{
		m.passes, m.passDuration, m.lastSuccess, m.claims, m.attempts, m.sends, m.skipped,
		m.sendDuration, m.lateness, m.relayUp, m.skew,
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	for _, v := range []string{"ok", "error"} {
		m.passes.WithLabelValues(v)
	}
	for _, v := range []string{"won", "lost"} {
		m.claims.WithLabelValues(v)
	}
	for _, v := range Outcomes() {
		m.sends.WithLabelValues(string(v))
	}
	for _, v := range SkipReasons() {
		m.skipped.WithLabelValues(string(v))
	}
	return m, nil
}

// passed notes a pass that ended well at the given instant of this process's clock.
func (m *metrics) passed(result PassResult, at time.Time, took time.Duration) {
	m.passes.WithLabelValues("ok").Inc()
	m.passDuration.Observe(took.Seconds())
	m.lastSuccess.Set(float64(at.UnixMilli()) / 1000)
	m.skew.Set(at.Sub(result.Now).Seconds())
	m.claims.WithLabelValues("won").Add(float64(len(result.Tasks)))
	m.claims.WithLabelValues("lost").Add(float64(result.Lost))
	for reason, n := range result.Skipped {
		m.skipped.WithLabelValues(string(reason)).Add(float64(n))
	}
	m.sends.WithLabelValues(string(StateFailed)).Add(float64(result.Failed))
	m.sends.WithLabelValues(string(StateDeferred)).Add(float64(result.LeaseLost))
	m.sends.WithLabelValues(string(StateUnknown)).Add(float64(len(result.Unknown)))
}
