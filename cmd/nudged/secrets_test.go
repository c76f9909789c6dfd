package main_test

import (
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A service that is down has taken its credentials along. Commands that speak to no mail server work
// all the same, with the URL of the database given by hand; those that do say what is missing.
func TestCommandsWhereTheSecretsAreNot(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	p := s.start().ready()
	s.waitRows("sent/", 1)
	p.stop()
	config := strings.Replace(s.readConfig(), "tls: none", "tls: mandatory, username: nudged, password_file: /run/credentials/none/smtp-password", 1)
	s.writeConfig(config + "database: {url_file: /run/credentials/none/database-url}\n")
	for _, command := range []string{
		"unknown", "explain r-1", "plan r-1", "migrate --status", "pause r-1 --why x", "resume r-1", "suppress a@example.net --why x",
		"plan --diff " + s.config, "plan --cadence default --anchor 2026-03-02T15:04:05Z",
	} {
		if out, stderr, status := s.command(strings.Fields(command)...); status != 0 {
			t.Errorf("%s: status %d: %s%s", command, status, out, stderr)
		}
	}
	for _, command := range []string{"check-config", "run", "send-test a@example.net", "render r-1"} {
		s.refuse(2, "smtp.password_file: file cannot be read", strings.Fields(command)...)
	}
}
