package deploytest

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// Two replicas and one that has been pointed at a database of another environment, watched by a
// real Prometheus with the real rules: whatever goes wrong, the right alert fires, and no other.
func TestAlertsFireThroughPrometheus(t *testing.T) {
	s := newSite(t, "")
	a, b := s.start().ready(), s.start().ready()
	p := observe(t, map[string][]*daemon{"nudged": {a, b}, "stranger": {s.startStranger()}})
	wait(t, "the first samples of both", func() bool { return len(p.query(`nudged_sends_total{job="nudged",outcome="sent"}`)) == 2 })
	seen := map[string]bool{}
	expect := func(job string, names ...string) {
		t.Helper()
		slices.Sort(names)
		var got []string
		defer func() {
			if t.Failed() {
				t.Logf("the alerts of %s are %v, want %v", job, got, names)
			}
		}()
		wait(t, job+": "+strings.Join(names, " "), func() bool {
			got = slices.Sorted(maps.Keys(p.firing(job)))
			return slices.Equal(got, names)
		})
		for _, name := range names {
			seen[name] = true
		}
	}

	s.due("well", 20, time.Minute)
	s.waitReminders("sent", 20)
	expect("stranger", "NudgedPassStalled")
	expect("nudged")
	everyQueryReturnsData(t, p)

	s.smtp.SetScript(smtptest.At(smtptest.StageDot, smtptest.Hangup().Accepting()))
	s.due("lost", 1, time.Minute)
	s.waitReminders("unknown", 1)
	expect("nudged", "NudgedUnknownOutcomes")
	if got := s.nudged("resolve", "lost-1", "3d", "--sent", "--why", "the mail log has its Message-ID"); got.status != 0 {
		t.Fatal(got.stderr)
	}
	expect("nudged")

	good, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.configure("cadences: {default: {after: [3 days]}}")
	if status, body := ask("POST", "http://"+a.address+"/-/reload"); status != 500 {
		t.Fatalf("a mistake is reloaded: %d %s", status, body)
	}
	expect("nudged", "NudgedConfigReloadFailed")
	if err := os.WriteFile(s.config, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body := ask("POST", "http://"+a.address+"/-/reload"); status != 200 {
		t.Fatalf("the mended file is not reloaded: %d %s", status, body)
	}
	expect("nudged")

	s.exec(`UPDATE nudged.requests SET cadence = 'no-such' WHERE id = 'well-1'`)
	s.smtp.SetScript(smtptest.Always(smtptest.StageRCPT, smtptest.Answer("550 5.7.1 you are not welcome")))
	s.due("refused", 10, time.Minute)
	s.waitReminders("failed", 10)
	expect("nudged", "NudgedRequestsMisconfigured", "NudgedSendsFailing")
	s.exec(`UPDATE nudged.requests SET cadence = NULL WHERE id = 'well-1'`)

	s.smtp.SetScript(nil)
	s.smtp.StopListening()
	s.smtp.CloseConnections()
	s.due("waiting", 30, 2*time.Hour)
	expect("nudged", "NudgedBehindSchedule", "NudgedRelayDown")
	if err := s.smtp.Listen(); err != nil {
		t.Fatal(err)
	}
	s.waitReminders("sent", 20+1+30)
	expect("nudged")

	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
	expect("nudged", "NudgedDown")

	// No process here has another clock than the database: that one is left to promtool.
	_, alerts := rules(t)
	for _, alert := range alerts {
		if !seen[alert.Alert] && alert.Alert != "NudgedClockSkew" {
			t.Errorf("%s never fired", alert.Alert)
		}
	}
}

// startStranger starts a replica whose configuration names another environment.
func (s *site) startStranger() *daemon {
	s.t.Helper()
	other := *s
	other.config = strings.TrimSuffix(s.config, ".yml") + "-other.yml"
	text, err := os.ReadFile(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	staging := strings.Replace(string(text), "environment: production", "environment: staging", 1)
	if err := os.WriteFile(other.config, []byte(staging), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return other.start()
}
