package mailer_test

import (
	"slices"
	"testing"

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
