package main_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/mail"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// bench is a configuration for a relay, without a database.
func bench(t *testing.T, relay smtptest.Config, keys string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), binary: os.Getenv("NUDGED_TEST_BINARY"), smtp: smtptest.Start(t, relay)}
	s.config = filepath.Join(s.dir, "nudged.yml")
	s.writeConfig(fmt.Sprintf("smtp: {host: 127.0.0.1, port: %d, dial_timeout: 5s, reply_timeout: 500ms, %s}\nmail: {from: \"Example <reminders@example.com>\"}\n",
		s.smtp.Port(), keys))
	return s
}

func TestSendTest(t *testing.T) {
	s := bench(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Answer("250 2.0.0 Ok: queued as 4F2A"))}, "tls: none")
	out, stderr, status := s.command("send-test", "ann@example.net")
	if status != 0 || !strings.Contains(out, "in the clear") || !strings.Contains(out, fmt.Sprintf("accepted by 127.0.0.1:%d, which said: 250 2.0.0 Ok: queued as 4F2A\n", s.smtp.Port())) {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	s.want(`"smtp_reply": "2.0.0 Ok: queued as 4F2A"`, "send-test", "ann@example.net", "--output", "json")
	accepted := s.smtp.Accepted()
	if len(accepted) != 2 || accepted[0].To[0] != "ann@example.net" || accepted[0].MessageID() == accepted[1].MessageID() {
		t.Fatalf("the relay accepted %d: %v", len(accepted), accepted)
	}
	if m, err := mail.ReadMessage(strings.NewReader(string(accepted[0].Data))); err != nil || m.Header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestSendTestOverTLS tells the version, and trusts nobody unknown.
func TestSendTestOverTLS(t *testing.T) {
	s := bench(t, smtptest.Config{StartTLS: true}, "tls: mandatory")
	out, stderr, status := s.command("send-test", "ann@example.net")
	if status != 1 || !strings.Contains(out, "no conversation with 127.0.0.1:") || !strings.Contains(out, "certificate") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "ca.pem"), certificate(t, s.smtp), 0o600); err != nil {
		t.Fatal(err)
	}
	s.writeConfig(strings.Replace(s.readConfig(), "tls: mandatory", "tls: mandatory, ca_file: ca.pem", 1))
	s.want("protected by TLS 1.3, without a login\n", "send-test", "ann@example.net")
}

// certificate asks a relay for its certificate, which is of its own making.
func certificate(t *testing.T, relay *smtptest.Server) []byte {
	t.Helper()
	client, err := smtp.Dial(relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	trust := relay.ClientTLS()
	trust.ServerName = relay.Host()
	if err := client.StartTLS(trust); err != nil {
		t.Fatal(err)
	}
	state, _ := client.TLSConnectionState()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: state.PeerCertificates[0].Raw})
}

// TestSendTestIsNotAccepted: whatever goes wrong, the status is 1 and the words say what it was.
func TestSendTestIsNotAccepted(t *testing.T) {
	for name, row := range map[string]struct {
		script smtptest.Script
		want   string
		state  string
	}{
		"recipient":  {smtptest.Always(smtptest.StageRCPT, smtptest.Answer("550 5.1.1 no such user")), "not accepted: the server refused the recipient; what happened: 550 5.1.1 no such user", "failed"},
		"content":    {smtptest.Always(smtptest.StageDot, smtptest.Answer("554 5.7.1 spam")), "not accepted: the server refused the message; what happened: 554 5.7.1 spam", "failed"},
		"later":      {smtptest.Always(smtptest.StageMAIL, smtptest.Answer("451 4.3.0 busy")), "not accepted: the server asked to try again later; what happened: 451 4.3.0 busy", "deferred"},
		"greeting":   {smtptest.Always(smtptest.StageConnect, smtptest.Answer("554 5.7.1 go away")), "what happened: connection refused: 554 5.7.1 go away", "deferred"},
		"silence":    {smtptest.Always(smtptest.StageDot, smtptest.Stall()), "unknown: the mail left and the server's answer never came: it may have been accepted; what happened: no answer to the final dot within 500ms", "unknown"},
		"connection": {smtptest.Always(smtptest.StageDATA, smtptest.Hangup()), "not accepted: the connection broke before the mail was complete", "deferred"},
	} {
		t.Run(name, func(t *testing.T) {
			s := bench(t, smtptest.Config{Script: row.script}, "tls: none")
			out, stderr, status := s.command("send-test", "ann@example.net")
			complaint := "nudged: the sample was not accepted\n"
			if row.state == "unknown" {
				complaint = "nudged: whether the sample was accepted is not known\n"
			}
			if status != 1 || !strings.Contains(out, row.want) || stderr != complaint {
				t.Errorf("status %d: %s%s; want %q", status, out, stderr, row.want)
			}
			out, _, status = s.command("send-test", "ann@example.net", "--output", "json")
			var report struct {
				State    string
				Accepted bool
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil || status != 1 || report.State != row.state || report.Accepted {
				t.Errorf("status %d, %v: %s; want state %s", status, err, out, row.state)
			}
		})
	}
	s := bench(t, smtptest.Config{}, "tls: none")
	s.smtp.StopListening()
	if out, _, status := s.command("send-test", "ann@example.net"); status != 1 || !strings.Contains(out, "cannot connect") {
		t.Errorf("status %d: %s", status, out)
	}
	s.refuse(2, "want a bare address", "send-test", "Ann <ann@example.net>")
	s.writeConfig(strings.Replace(s.readConfig(), "example.com>\"}", "example.com>\", allow_recipients: [\"@example.org\"]}", 1))
	s.refuse(1, "mail.allow_recipients does not allow this address", "send-test", "ann@example.net")
}
