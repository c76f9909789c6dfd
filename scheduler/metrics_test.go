package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetricsFromTheStart: every name and label value is there at 0 before anything happened.
func TestMetricsFromTheStart(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := newMetrics(reg); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"nudged_claims_total{lost}", "nudged_claims_total{won}", "nudged_clock_skew_seconds",
		"nudged_last_pass_success_timestamp_seconds", "nudged_pass_duration_seconds",
		"nudged_passes_total{error}", "nudged_passes_total{ok}", "nudged_relay_up", "nudged_send_attempts_total",
		"nudged_send_duration_seconds", "nudged_send_lateness_seconds",
		"nudged_sends_total{deferred}", "nudged_sends_total{failed}", "nudged_sends_total{sent}", "nudged_sends_total{unknown}",
	}
	for _, reason := range SkipReasons() {
		want = append(want, fmt.Sprintf("nudged_slots_skipped_total{%s}", reason))
	}
	slices.Sort(want)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += "{" + label.GetValue() + "}"
			}
			got = append(got, name)
			if m.GetCounter().GetValue() != 0 || m.GetGauge().GetValue() != 0 || m.GetHistogram().GetSampleCount() != 0 {
				t.Errorf("%s does not stand at 0", name)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, error %v", problems, err)
	}
}

func TestMetricsRegisteredTwice(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := newMetrics(reg); err != nil {
		t.Fatal(err)
	}
	if _, err := newMetrics(reg); err == nil {
		t.Error("no error the second time")
	}
}

// TestReasonsAreOneList: no reason stands for two states, and each has words for people.
func TestReasonsAreOneList(t *testing.T) {
	seen := map[Reason]bool{}
	for _, reason := range slices.Concat(SkipReasons(), FailReasons(), DeferReasons(), UnknownReasons()) {
		if seen[reason] {
			t.Errorf("%s is there twice", reason)
		}
		seen[reason] = true
		if words := reason.Words(); words == string(reason) || strings.HasSuffix(words, ".") {
			t.Errorf("%s in words: %q", reason, words)
		}
	}
}
