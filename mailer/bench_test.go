package mailer_test

import (
	"errors"
	"slices"
	"testing"

	gomail "github.com/wneessen/go-mail"

	"nudged/internal/smtptest"
)

func BenchmarkDeliver(b *testing.B) {
	plain := slices.DeleteFunc(smtptest.DefaultExtensions(), func(e string) bool { return e == "PIPELINING" })
	for _, way := range []struct {
		name       string
		extensions []string
	}{{"pipelined", nil}, {"plain", plain}} {
		b.Run(way.name, func(b *testing.B) {
			srv := smtptest.Start(b, smtptest.Config{Extensions: way.extensions, DiscardData: true})
			cfg := local(srv)
			cfg.MaxMessages = 1 << 30
			m := newMailer(b, cfg)
			msg, err := m.Compose(task())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if got := deliver(b, m, msg); got.State != sent {
					b.Fatal(got)
				}
			}
		})
	}
}

// BenchmarkGoMailSend is what BenchmarkDeliver is measured against: the library's own way, at its
// best, over one connection.
func BenchmarkGoMailSend(b *testing.B) {
	srv := smtptest.Start(b, smtptest.Config{DiscardData: true})
	client, err := gomail.NewClient(srv.Host(), gomail.WithPort(srv.Port()), gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithoutNoop())
	if err != nil {
		b.Fatal(err)
	}
	if err := client.DialWithContext(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	msg := gomail.NewMsg()
	if err := errors.Join(msg.From("reminders@example.com"), msg.To("ana@example.net")); err != nil {
		b.Fatal(err)
	}
	composed, err := newMailer(b, local(srv)).Compose(task())
	if err != nil {
		b.Fatal(err)
	}
	msg.SetBodyString(gomail.TypeTextPlain, string(composed.Data))
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Send(msg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	srv := smtptest.Start(b, smtptest.Config{})
	m := newMailer(b, local(srv))
	task := task()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Compose(task); err != nil {
			b.Fatal(err)
		}
	}
}
