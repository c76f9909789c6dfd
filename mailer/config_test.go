package mailer_test

import (
	"net/mail"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nudged/mailer"
)

// TestNewRefuses: each mistake is named with its value.
func TestNewRefuses(t *testing.T) {
	rows := []struct {
		change func(*mailer.Config)
		want   string
	}{
		{func(c *mailer.Config) { c.Host = "" }, "host is empty"},
		{func(c *mailer.Config) { c.Port = 70000 }, "port 70000 is not"},
		{func(c *mailer.Config) { c.Port = -1 }, "port -1 is not"},
		{func(c *mailer.Config) { c.TLS = "maybe" }, `tls "maybe" is not`},
		{func(c *mailer.Config) { c.TLS, c.Username = mailer.TLSNone, "u" }, "in clear"},
		{func(c *mailer.Config) { c.DialTimeout = -time.Second }, "dial timeout -1s is negative"},
		{func(c *mailer.Config) { c.ReplyTimeout = -time.Second }, "reply timeout -1s is negative"},
		{func(c *mailer.Config) { c.MaxMessages = -1 }, "max messages -1 is negative"},
		{func(c *mailer.Config) { c.From = mail.Address{} }, "from: not one e-mail address"},
		{func(c *mailer.Config) { c.From = mail.Address{Address: "j\u00f6rg@example.com"} }, "local part in ASCII"},
		{func(c *mailer.Config) { c.BounceAddress = "bounces" }, "bounce address: not one e-mail address"},
		{func(c *mailer.Config) { c.MessageIDDomain = "a b" }, "message id domain"},
		{func(c *mailer.Config) { c.MessageIDDomain = "a.example>\r\nBcc: x" }, "message id domain"},
		{func(c *mailer.Config) { c.IdempotencyHeader = "X: Y" }, `idempotency header "X: Y"`},
		{func(c *mailer.Config) { c.Unsubscribe = "https://example.com/a b" }, "unsubscribe"},
		{func(c *mailer.Config) { c.Templates = os.DirFS("no-such-folder") }, "read templates"},
		{func(c *mailer.Config) { c.Locale = "sv" }, `no templates for the default locale "sv", want one of de, en, es, fr, it, nl, pt`},
		{func(c *mailer.Config) { c.Locale = "-" }, `no templates for the default locale "-"`},
	}
	for _, row := range rows {
		cfg := mailer.Config{Host: "relay.example.com", From: example()}
		row.change(&cfg)
		if _, err := mailer.New(cfg); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

// TestEnvelopeSender: the bounce address is in the envelope only.
func TestEnvelopeSender(t *testing.T) {
	m := composer(t, func(c *mailer.Config) { c.BounceAddress = "bounces@b\u00fccher.example" })
	msg, got := compose(t, m, task())
	if msg.From != "bounces@xn--bcher-kva.example" || got.Get("From") != `"Example" <reminders@example.com>` {
		t.Errorf("got envelope sender %q, From %q", msg.From, got.Get("From"))
	}
}

// TestRegisterTwice: two mailers cannot share a registry, and the second says so.
func TestRegisterTwice(t *testing.T) {
	cfg := mailer.Config{Host: "relay.example.com", From: example(), Registerer: prometheus.NewRegistry()}
	newMailer(t, cfg)
	if _, err := mailer.New(cfg); err == nil || !strings.Contains(err.Error(), "register metrics of the mailer") {
		t.Errorf("got %v", err)
	}
}
