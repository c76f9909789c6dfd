package main_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

func TestMetricsPassPromtool(t *testing.T) {
	binary, err := exec.LookPath("promtool")
	if err != nil {
		needsPackage(t, "promtool")
	}
	s := newSite(t, smtptest.Config{})
	s.due(3)
	p := s.start().ready()
	s.waitRows("sent/", 3)
	_, text := p.get("/metrics")
	cmd := exec.Command(binary, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Every metric that dashboards rely on is there, each label value from the start.
func TestMetricsAreThereFromTheStart(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	_, text := s.start().ready().get("/metrics")
	for _, want := range []string{
		`nudged_build_info{`,
		`nudged_passes_total{result="error"} 0`, `nudged_passes_total{result="ok"} `,
		`nudged_pass_duration_seconds_count `, `nudged_last_pass_success_timestamp_seconds `,
		`nudged_claims_total{result="won"} 0`, `nudged_claims_total{result="lost"} 0`,
		`nudged_send_attempts_total 0`,
		`nudged_sends_total{outcome="sent"} 0`, `nudged_sends_total{outcome="deferred"} 0`,
		`nudged_sends_total{outcome="failed"} 0`, `nudged_sends_total{outcome="unknown"} 0`,
		`nudged_slots_skipped_total{reason="superseded"} 0`, `nudged_slots_skipped_total{reason="paused"} 0`,
		`nudged_send_duration_seconds_count 0`, `nudged_send_lateness_seconds_count 0`,
		`nudged_smtp_replies_total{`, `nudged_relay_up `,
		`nudged_requests_open{status="pending"} 0`, `nudged_requests_open{status="pending_resubmission"} 0`,
		`nudged_slots_due 0`, `nudged_oldest_due_slot_timestamp_seconds 0`, `nudged_unknown_outcomes 0`,
		`nudged_clock_skew_seconds `, `nudged_config_last_reload_successful 1`,
		`nudged_config_last_reload_success_timestamp_seconds `, `nudged_db_pool_connections `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
