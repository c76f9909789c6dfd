package mailer_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"nudged/internal/smtptest"
	"nudged/mailer"
)

// replies returns the counters that are not 0, as "phase code", and how many there are in all.
func replies(t *testing.T, registry *prometheus.Registry) (map[string]int, int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := make(map[string]int)
	for _, metric := range families[0].GetMetric() {
		if n := metric.GetCounter().GetValue(); n > 0 {
			counted[label(metric, "phase")+" "+label(metric, "code")] = int(n)
		}
	}
	return counted, len(families[0].GetMetric())
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// TestReplies: every answer is counted once by its phase; the labels are a closed set that is
// there from the start.
func TestReplies(t *testing.T) {
	registry := prometheus.NewRegistry()
	srv := smtptest.Start(t, smtptest.Config{StartTLS: true, Username: "u", Password: "p", Script: smtptest.First(
		smtptest.At(smtptest.StageConnect, smtptest.Answer("421 busy").ThenHangup()),
		smtptest.At(smtptest.StageAUTH, smtptest.Answer("535 no")),
		smtptest.At(smtptest.StageRCPT, smtptest.Answer("599 what")),
		smtptest.At(smtptest.StageDot, smtptest.Answer("451 later"), smtptest.Hangup()),
	)})
	cfg := local(srv)
	cfg.TLS, cfg.Username, cfg.Password, cfg.Registerer = mailer.TLSMandatory, "u", "p", registry
	m := newMailer(t, cfg)
	counted, before := replies(t, registry)
	if len(counted) != 0 {
		t.Errorf("counted %v before anything was said", counted)
	}
	for range 6 {
		deliver(t, m, plainMessage("ana@example.net"))
	}
	want := map[string]int{
		"connect 421": 1, "connect 220": 3, "ehlo 250": 3, "starttls 220": 3, "auth 535": 1, "auth 235": 2,
		"mail 250": 4, "rcpt other": 1, "rcpt 250": 3, "data 503": 1, "data 354": 3, "dot 451": 1, "dot none": 1, "dot 250": 1,
	}
	got, after := replies(t, registry)
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s: counted %d, want %d", key, got[key], want[key])
		}
	}
	if len(got) != len(want) || before != after {
		t.Errorf("counted %v over %d and then %d labels, want %v", got, before, after, want)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
