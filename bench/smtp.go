package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"nudged/cadence"
	"nudged/mailer"
	"nudged/scheduler"
)

func newMailer(port int, templates fs.FS) (*mailer.Mailer, error) {
	return mailer.New(mailer.Config{
		Host: "127.0.0.1", Port: port, TLS: mailer.TLSNone, MaxMessages: 1 << 30, MaxAge: time.Hour,
		From: mail.Address{Name: "Example", Address: "reminders@example.com"}, MessageIDDomain: "example.com",
		Templates: templates,
	})
}

func task(i int) scheduler.Task {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	documents := make([]scheduler.Document, 3)
	for p := range documents {
		documents[p] = scheduler.Document{Title: fmt.Sprintf("Document %d", p+1), Required: true, State: scheduler.DocumentMissing}
	}
	return scheduler.Task{
		Request: scheduler.Request{
			ID: fmt.Sprintf("r-%d", i), RecipientEmail: fmt.Sprintf("r%d@example.net", i), RecipientName: "Client",
			Title: "Tax return", SenderName: "Ann Accountant", Status: scheduler.StatusPending,
		},
		Link:      scheduler.Link{URL: "https://upload.example.com/r/1", CreatedAt: now.AddDate(0, 0, -3)},
		Documents: documents, Slot: cadence.Slot{Name: "3d", Due: now}, Attempt: 1, Number: 1, Zone: time.UTC, ClaimedAt: now,
	}
}

// spread runs n pieces of work on a number of goroutines and returns how many a second that was.
func perSecond(n, goroutines int, work func(i int) error) (float64, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	begun := time.Now()
	for g := range goroutines {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || errs[g] != nil {
					return
				}
				errs[g] = work(i)
			}
		})
	}
	group.Wait()
	return float64(n) / time.Since(begun).Seconds(), errors.Join(errs...)
}

// leg composes and delivers n messages over so many connections, with no ledger; nil: the built-in
// templates.
func leg(ctx context.Context, port, n, connections int, templates fs.FS) (float64, error) {
	m, err := newMailer(port, templates)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return perSecond(n, connections, func(i int) error {
		message, err := m.Compose(task(i))
		if err != nil {
			return err
		}
		return accepted(m.Deliver(ctx, message, time.Now().Add(time.Hour)))
	})
}

// conversations delivers one composed message n times.
func conversations(ctx context.Context, port, n, connections int, templates fs.FS) (float64, error) {
	m, err := newMailer(port, templates)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	message, err := m.Compose(task(0))
	if err != nil {
		return 0, err
	}
	return perSecond(n, connections, func(int) error {
		return accepted(m.Deliver(ctx, message, time.Now().Add(time.Hour)))
	})
}

func accepted(outcome scheduler.Outcome) error {
	if outcome.State != scheduler.StateSent {
		return fmt.Errorf("delivery ended as %s: %s", outcome.State, outcome.SMTPReply)
	}
	return nil
}

// small are templates of a mail of about 2 kB, for both sides of the comparison with go-mail.
//
//go:embed templates
var small embed.FS

func smallTemplates() (fs.FS, error) { return fs.Sub(small, "templates") }

// compareSMTP measures the pipelined conversation against go-mail's Send: with the work of composing
// and without it, near and far.
func compareSMTP(ctx context.Context, l *lab) ([]result, error) {
	const connections = 8
	files, err := smallTemplates()
	if err != nil {
		return nil, err
	}
	far, err := startProxy(l.sink.port, 5*time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer far.listener.Close()
	peer, err := newGoMail(files)
	if err != nil {
		return nil, err
	}
	var results []result
	for _, c := range []struct {
		name, target string
		port, n      int
		base         func(goMailConn, int) error
		ours         func(context.Context, int, int, int, fs.FS) (float64, error)
	}{
		{"SMTP leg, 2 kB from templates: pipelined / go-mail Send", "≥ 1.7", l.sink.port, l.size.Messages, peer.composeAndSend, leg},
		{"the same, composed beforehand", "", l.sink.port, l.size.Messages, peer.send, conversations},
		{"the same, 5 ms round trip", "≥ 1.7", far.port(), l.size.Messages / 2, peer.composeAndSend, leg},
	} {
		r := result{Name: c.name, Unit: "1/s", Target: c.target, Note: "8 connections, without NOOP"}
		for range l.size.Rounds {
			base, err := peer.run(ctx, c.port, c.n, connections, c.base)
			if err != nil {
				return nil, err
			}
			ours, err := c.ours(ctx, c.port, c.n, connections, files)
			if err != nil {
				return nil, err
			}
			r.Ours, r.Base = append(r.Ours, ours), append(r.Base, base)
		}
		results = append(results, r)
	}
	return results, nil
}
