package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

func TestRowsInMailsOut(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	s.exec(`INSERT INTO nudged.documents (request_id, position, title, state, rejection_reason)
	        VALUES ('r-1', 1, 'Passport', 'missing', NULL), ('r-1', 2, 'Payslip', 'rejected', 'too blurred'), ('r-1', 3, 'Lease', 'approved', NULL)`)
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('done', 'a', 'completed', 'd@example.net', 'T')`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('done', 'https://example.com/d', now() - interval '3 days 1 minute')`)
	p := s.start().ready()
	s.waitRows("sent/", 1)

	if n := s.acceptedOnce(); n != 1 {
		t.Fatalf("the server accepted %d messages, want 1", n)
	}
	mail := string(s.smtp.Accepted()[0].Data)
	for _, want := range []string{"Passport", "Payslip", "too blurred", "https://example.com/u/1", "Auto-Submitted: auto-generated", "Ann Accountant"} {
		if !strings.Contains(mail, want) {
			t.Errorf("the mail lacks %q:\n%s", want, mail)
		}
	}
	if strings.Contains(mail, "Lease") {
		t.Error("the mail asks for an approved document")
	}
	_, metrics := p.get("/metrics")
	for _, want := range []string{`nudged_sends_total{outcome="sent"} 1`, `nudged_claims_total{result="won"} 1`, `nudged_relay_up 1`, `nudged_send_attempts_total 1`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	out, _, status := s.command("explain", "r-1")
	if status != 0 || !strings.HasPrefix(out, "Slot 3d went out on time, ") || !strings.Contains(out, "accepted; the server said: 250 ") {
		t.Errorf("explain (status %d): %s", status, out)
	}
	p.stop()
	for _, secret := range []string{"r1@example.net", "example.com/u/1", "Tax return"} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}

// S08: completed by SQL while its reminder waits in the queue: no mail, and explain says why.
func TestCompletedWhileQueued(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.rate = 0.5 // the second reminder waits two seconds behind the first
	s.configure("")
	s.due(2)
	s.start().ready()
	s.waitRows("sent/", 1)
	s.exec(`UPDATE nudged.requests SET status = 'completed'`)
	s.waitRows("skipped/request_closed", 1)
	if n := len(s.smtp.Accepted()); n != 1 {
		t.Errorf("the server accepted %d messages, want 1", n)
	}
	var skipped string
	if err := s.db.QueryRow(t.Context(), `SELECT request_id FROM nudged.reminders WHERE state = 'skipped'`).Scan(&skipped); err != nil {
		t.Fatal(err)
	}
	out, _, status := s.command("explain", skipped)
	if status != 0 || !strings.Contains(out, "the request was no longer open") {
		t.Errorf("explain (status %d): %s", status, out)
	}
}

func TestStopGivesBackWhatIsNotHandedOff(t *testing.T) {
	release := make(chan struct{})
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Action{}.Until(release))})
	s.due(40)
	p := s.start().ready()
	s.wait("four deliveries at the dot", func() bool { return s.smtp.Reached(smtptest.StageDot) == 4 })
	done := make(chan struct{})
	go func() { defer close(done); p.stop() }()
	s.wait("the signal", func() bool { return strings.Contains(p.log.String(), "nudged is stopping") })
	s.wait("the queue to be given back", func() bool { return s.rows()["claimed/"] == 0 })
	close(release)
	<-done
	// The signal may come before everything was claimed.
	rows := s.rows()
	if rows["sent/"] != 4 || rows["deferred/shutdown"] == 0 || len(rows) != 2 {
		t.Errorf("got %v, want 4 sent and the others given back", rows)
	}
	var burnt int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.reminders WHERE state = 'deferred' AND attempt <> 0`).Scan(&burnt); err != nil || burnt != 0 {
		t.Errorf("%d given back reminders lost an attempt (%v)", burnt, err)
	}
	s.start().ready()
	s.waitRows("sent/", 40)
	if n := s.acceptedOnce(); n != 40 {
		t.Errorf("the server accepted %d messages, want 40", n)
	}
}

func TestPlanNeedsNoDatabase(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.url = ""
	out, stderr, status := s.command("plan", "--cadence", "default", "--anchor", "2026-03-02T15:04:05Z", "--count", "2", "--output", "json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var got []struct{ Slot, Due, Local string }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Slot != "3d" || got[0].Due != "2026-03-05T15:04:05Z" {
		t.Errorf("got %+v", got)
	}
}

// D13: three replicas started in the same second share 500 due slots.
func TestThreeReplicas(t *testing.T) {
	s := newSite(t, smtptest.Config{DiscardData: false})
	s.due(500)
	for range 3 {
		s.start()
	}
	s.waitRows("sent/", 500)
	if n := s.acceptedOnce(); n != 500 || len(s.smtp.Accepted()) != 500 {
		t.Errorf("the server accepted %d messages, want 500", n)
	}
}

// D05: the mail server is away when three replicas find 200 due slots, and comes back. Each goes once,
// and nobody's attempt was burnt on a server that was not there.
func TestReplicasWaitForTheRelay(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.smtp.StopListening()
	s.due(200)
	replicas := []*process{s.start(), s.start(), s.start()}
	for _, p := range replicas {
		s.wait("the gate to shut", func() bool {
			_, metrics := p.get("/metrics")
			return strings.Contains(metrics, "nudged_relay_up 0")
		})
	}
	if err := s.smtp.Listen(); err != nil {
		t.Fatal(err)
	}
	s.waitRows("sent/", 200)
	if n := s.acceptedOnce(); n != 200 || len(s.smtp.Accepted()) != 200 {
		t.Errorf("the server accepted %d messages, %d different ones; want 200", len(s.smtp.Accepted()), n)
	}
	var burnt int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.reminders WHERE attempt <> 1`).Scan(&burnt); err != nil || burnt != 0 {
		t.Errorf("%d attempts were burnt (%v)", burnt, err)
	}
}
