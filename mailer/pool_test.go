package mailer_test

import (
	"slices"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// TestIdleRetired: an idle connection says goodbye by itself, without the next delivery.
func TestIdleRetired(t *testing.T) {
	for _, script := range []smtptest.Script{nil, smtptest.Always(smtptest.StageQUIT, smtptest.Hangup()), smtptest.Always(smtptest.StageQUIT, smtptest.Answer("421 no"))} {
		srv := smtptest.Start(t, smtptest.Config{Script: script})
		cfg := local(srv)
		cfg.IdleTimeout = 20 * time.Millisecond
		m := newMailer(t, cfg)
		expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
		if err := srv.WaitOpen(waiting(t), 0); err != nil {
			t.Fatal(err)
		}
		if verbs := srv.Verbs(1); verbs[len(verbs)-1] != "QUIT" {
			t.Errorf("got %v, want a QUIT at the end", verbs)
		}
		expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	}
}

// TestWorn: a connection carries so many messages, or grows so old, and no more.
func TestWorn(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		srv := smtptest.Start(t, smtptest.Config{})
		cfg := local(srv)
		cfg.MaxMessages = 2
		m := newMailer(t, cfg)
		for range 5 {
			expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
		}
		if n := srv.Connections(); n != 3 {
			t.Errorf("%d connections, want 3", n)
		}
	})
	t.Run("age", func(t *testing.T) {
		srv := smtptest.Start(t, smtptest.Config{})
		cfg := local(srv)
		cfg.MaxAge = 20 * time.Millisecond
		m := newMailer(t, cfg)
		expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
		if err := srv.WaitOpen(waiting(t), 0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClose: every idle connection gets a QUIT; one that comes back later is closed at once.
func TestClose(t *testing.T) {
	release := make(chan struct{})
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.OnConn(2, smtptest.Always(smtptest.StageDot, smtptest.Answer("250 2.0.0 ok").Until(release)))})
	m := newMailer(t, local(srv))
	if err := m.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		// The first connection is in the pool: keep it busy, so that the second one is dialled.
		if err := m.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	}()
	if err := srv.WaitReached(waiting(t), smtptest.StageDot, 1); err != nil {
		t.Fatal(err)
	}
	m.Close()
	// Only the busy one stays; the server notices the end of the other a moment later.
	if err := srv.WaitOpen(waiting(t), 1); err != nil {
		t.Error(err)
	}
	if open := srv.Open(); slices.Contains(open, 1) {
		t.Errorf("connections %v are open after Close, want only the busy one", open)
	}
	close(release)
	<-slow
	if err := srv.WaitOpen(waiting(t), 0); err != nil {
		t.Error(err)
	}
	for conn := range srv.Connections() {
		if verbs := srv.Verbs(conn + 1); verbs[len(verbs)-1] != "QUIT" {
			t.Errorf("connection %d ended with %v, want QUIT", conn+1, verbs)
		}
	}
	m.Close()
}

// TestQuitHangs: goodbye is bounded.
func TestQuitHangs(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.Always(smtptest.StageQUIT, smtptest.Stall())})
	cfg := local(srv)
	shortCommand(&cfg)
	m := newMailer(t, cfg)
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	m.Close()
	if err := srv.WaitOpen(waiting(t), 0); err != nil {
		t.Error(err)
	}
}
