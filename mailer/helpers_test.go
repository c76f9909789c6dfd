package mailer_test

import (
	"bytes"
	"context"
	"net/mail"
	"strings"
	"testing"
	"time"

	"nudged/cadence"
	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// patience bounds what a test waits for; nothing here needs a tenth of it.
const patience = 20 * time.Second

// local is the configuration of a mailer for this server.
func local(srv *smtptest.Server) mailer.Config {
	return mailer.Config{
		Host: srv.Host(), Port: srv.Port(), TLS: mailer.TLSNone, TLSConfig: srv.ClientTLS(), From: example(),
		DialTimeout: patience, CommandTimeout: patience, ReplyTimeout: patience, IdleTimeout: patience,
	}
}

func example() mail.Address { return mail.Address{Name: "Example", Address: "reminders@example.com"} }

// short is the timeout of tests in which something never comes.
const short = 300 * time.Millisecond

func shortDial(cfg *mailer.Config)    { cfg.DialTimeout = short }
func shortCommand(cfg *mailer.Config) { cfg.CommandTimeout = short }
func shortReply(cfg *mailer.Config)   { cfg.ReplyTimeout = short }

func newMailer(t testing.TB, cfg mailer.Config) *mailer.Mailer {
	t.Helper()
	m, err := mailer.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func waiting(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func soon() time.Time { return time.Now().Add(time.Hour) }

// plainMessage is a message made by hand, for tests that do not look at composing.
func plainMessage(to string) scheduler.Message {
	return scheduler.Message{
		From: "reminders@example.com", To: to, MessageID: "1@example.com",
		Data: []byte("Message-ID: <1@example.com>\r\nSubject: hello\r\n\r\nbody\r\n"),
	}
}

// bigMessage does not fit into the buffers of the kernel.
func bigMessage(to string) scheduler.Message {
	msg := plainMessage(to)
	msg.Data = append(msg.Data, bytes.Repeat([]byte("0123456789012345678901234567890123456789\r\n"), 200_000)...)
	return msg
}

func task() scheduler.Task {
	return scheduler.Task{
		Request: scheduler.Request{
			ID: "req-1", RecipientEmail: "ana@example.net", RecipientName: "Ana", Title: "Tax return 2025",
			SenderName: "Marta Ruiz", ReplyTo: "marta@example.org", Deadline: cadence.Date{Year: 2026, Month: time.May, Day: 20},
		},
		Link: scheduler.Link{
			URL:       "https://example.com/u/secret?a=1&b=2",
			CreatedAt: time.Date(2026, 5, 1, 10, 0, 0, 123456000, time.UTC),
			ExpiresAt: time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC),
		},
		Slot:   cadence.Slot{Name: "3d", Due: time.Date(2026, 5, 4, 7, 0, 0, 0, time.UTC)},
		Number: 1, Attempt: 1, Zone: time.UTC,
	}
}

func deliver(t testing.TB, m *mailer.Mailer, msg scheduler.Message) scheduler.Outcome {
	t.Helper()
	return m.Deliver(t.Context(), msg, soon())
}

// expect compares state and reason, and a part of the reply.
func expect(t testing.TB, got scheduler.Outcome, state scheduler.State, reason scheduler.Reason, code int, words string) {
	t.Helper()
	if got.State != state || got.Reason != reason || got.SMTPCode != code || !strings.Contains(got.SMTPReply, words) {
		t.Errorf("got %+v, want %s %s %d with %q", got, state, reason, code, words)
	}
}
