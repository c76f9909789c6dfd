package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// statusLine says in plain words what the metrics say: the last pass, the backlog, what this process
// works on, and what is wrong.
func statusLine(metrics prometheus.Gatherer, inFlight int, healthy func() error) string {
	values := gauges(metrics)
	last := time.Unix(int64(values["nudged_last_pass_success_timestamp_seconds"]), 0).UTC()
	line := fmt.Sprintf("last pass %s; slots due: %.0f; in flight here: %d; unknown outcomes: %.0f",
		last.Format("2006-01-02 15:04:05 MST"), values["nudged_slots_due"], inFlight, values["nudged_unknown_outcomes"])
	if values["nudged_relay_up"] == 0 {
		line += "; sending waits for the relay"
	}
	if values["nudged_config_last_reload_successful"] == 0 {
		line += "; the last reload was refused"
	}
	if err := healthy(); err != nil {
		line += "; stalled: " + err.Error()
	}
	return line
}

// gauges reads the gauges that have no labels.
func gauges(metrics prometheus.Gatherer) map[string]float64 {
	values := map[string]float64{}
	families, _ := metrics.Gather() // what cannot be read is left out
	for _, family := range families {
		if m := family.GetMetric(); len(m) == 1 && m[0].GetGauge() != nil && len(m[0].GetLabel()) == 0 {
			values[family.GetName()] = m[0].GetGauge().GetValue()
		}
	}
	return values
}
