package mailer_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"nudged/internal/smtptest"
	"nudged/scheduler"
)

// TestReplacedOnce: the replacement is not replaced again, and a connection of our own is never.
func TestReplacedOnce(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	srv.SetScript(smtptest.Always(smtptest.StageMAIL, smtptest.Answer("421 4.3.2 no").ThenHangup()))
	expect(t, deliver(t, m, plainMessage("ana@example.net")), deferred, scheduler.ReasonRelayRefused, 421, "4.3.2 no")
	expect(t, deliver(t, m, plainMessage("ana@example.net")), deferred, scheduler.ReasonRelayRefused, 421, "4.3.2 no")
	if n := srv.Connections(); n != 3 {
		t.Errorf("%d connections, want 3: the first, its replacement, and one for the last delivery", n)
	}
}

// TestAnswerWithoutEnd: what a relay says is not kept without bound, and what it may have accepted
// is unknown.
func TestAnswerWithoutEnd(t *testing.T) {
	flood := smtptest.Answer("250 " + strings.Repeat("x", 4<<20))
	for stage, want := range map[smtptest.Stage]scheduler.Outcome{
		smtptest.StageMAIL: {State: deferred, Reason: scheduler.ReasonConnectionLost},
		smtptest.StageDot:  {State: unknown, Reason: scheduler.ReasonReplyLost},
	} {
		srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(stage, flood)})
		m := newMailer(t, local(srv))
		expect(t, deliver(t, m, plainMessage("ana@example.net")), want.State, want.Reason, 0, "does not end")
		expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	}
}

// TestStaleOnlyBeforeMAIL: once MAIL was answered a lost connection is not replaced.
func TestStaleOnlyBeforeMAIL(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	srv.SetScript(smtptest.At(smtptest.StageRCPT, smtptest.Reset()))
	got := deliver(t, m, plainMessage("ana@example.net"))
	if got.State != deferred || srv.Connections() > 2 {
		t.Errorf("got %+v over %d connections", got, srv.Connections())
	}
	if n := len(srv.Accepted()); n != 1 {
		t.Errorf("%d messages accepted, want the first", n)
	}
}

// endsAt returns a context that ends when the server has reached the stage.
func endsAt(t *testing.T, srv *smtptest.Server, stage smtptest.Stage) context.Context {
	ctx, cancel := context.WithCancel(waiting(t))
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		defer cancel()
		if err := srv.WaitReached(ctx, stage, 1); err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// TestContextEndsInBody: the dot is never sent, though the body has begun.
func TestContextEndsInBody(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.Always(smtptest.StageBody, smtptest.Stall())})
	m := newMailer(t, local(srv))
	got := m.Deliver(endsAt(t, srv, smtptest.StageBody), bigMessage("ana@example.net"), soon())
	expect(t, got, deferred, scheduler.ReasonShutdown, 0, "stopped before the final dot")
	srv.CloseConnections()
	if n := len(srv.Accepted()); n != 0 {
		t.Errorf("%d messages accepted", n)
	}
}

// TestContextEndsAfterDot: the answer is waited for all the same.
func TestContextEndsAfterDot(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.OnDot(func(smtptest.Message) smtptest.Action {
		cancel()
		close(release)
		return smtptest.Answer("250 2.0.0 ok").Until(release).After(50 * time.Millisecond)
	})})
	m := newMailer(t, local(srv))
	expect(t, m.Deliver(ctx, plainMessage("ana@example.net"), soon()), sent, "", 250, "2.0.0 ok")
}

// TestContextEndedBefore: nothing is sent, over a new connection or an old one.
func TestContextEndedBefore(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, m.Deliver(ended, plainMessage("ana@example.net"), soon()), deferred, scheduler.ReasonShutdown, 0, "")
	if err := m.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, m.Deliver(ended, plainMessage("ana@example.net"), soon()), deferred, scheduler.ReasonShutdown, 0, "")
	if n := len(srv.Bodies()); n != 0 {
		t.Errorf("%d bodies were sent", n)
	}
}

// TestNotAfter: no content leaves after that instant, whether it has passed before the delivery
// or while the server thought about DATA.
func TestNotAfter(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDATA, smtptest.Answer("354 go").After(60*time.Millisecond))})
	m := newMailer(t, local(srv))
	expect(t, m.Deliver(t.Context(), plainMessage("ana@example.net"), time.Now().Add(-time.Second)), deferred, scheduler.ReasonLeaseLost, 0, "lease")
	expect(t, m.Deliver(t.Context(), plainMessage("ana@example.net"), time.Time{}), deferred, scheduler.ReasonLeaseLost, 0, "lease")
	if n := srv.Connections(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
	if err := m.Probe(t.Context()); err != nil { // so that dialling takes no part in the race below
		t.Fatal(err)
	}
	expect(t, m.Deliver(t.Context(), plainMessage("ana@example.net"), time.Now().Add(40*time.Millisecond)), deferred, scheduler.ReasonLeaseLost, 0, "lease")
	if err := srv.WaitOpen(waiting(t), 0); err != nil {
		t.Error(err)
	}
	if n := len(srv.Bodies()); n != 0 {
		t.Errorf("%d bodies, want none", n)
	}
}

// TestBodyForNobody: a server that refuses the recipient and wants the body all the same gets
// neither the body nor a dot, whichever command was refused.
func TestBodyForNobody(t *testing.T) {
	for _, stage := range []smtptest.Stage{smtptest.StageMAIL, smtptest.StageRCPT} {
		srv := smtptest.Start(t, smtptest.Config{Script: smtptest.First(
			smtptest.At(stage, smtptest.Answer("550 no")), smtptest.At(smtptest.StageDATA, smtptest.Answer("354 go")))})
		m := newMailer(t, local(srv))
		got := deliver(t, m, plainMessage("ana@example.net"))
		if got.State != failed || got.SMTPCode != 550 {
			t.Errorf("got %+v", got)
		}
		if err := srv.WaitOpen(waiting(t), 0); err != nil {
			t.Error(err)
		}
		if verbs := srv.Verbs(1); verbs[len(verbs)-1] != "DATA" || len(srv.Bodies()) > 0 {
			t.Errorf("after DATA came %v", verbs)
		}
	}
}

// TestOwnDeadlines: each stage has its deadline; a server that is slow at every one is not late.
func TestOwnDeadlines(t *testing.T) {
	slow := func(smtptest.Event) smtptest.Action { return smtptest.Action{}.After(110 * time.Millisecond) }
	srv := smtptest.Start(t, smtptest.Config{Script: slow})
	cfg := local(srv)
	shortCommand(&cfg)
	shortReply(&cfg)
	m := newMailer(t, cfg)
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
}

// TestReplyTimeout: the final dot has a timeout of its own, longer than that of a command.
func TestReplyTimeout(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Answer("250 2.0.0 ok").After(2*short))})
	cfg := local(srv)
	shortCommand(&cfg)
	expect(t, deliver(t, newMailer(t, cfg), plainMessage("ana@example.net")), sent, "", 250, "")
}

// TestIdleLongerThanTimeouts: deadlines of the last command do not haunt the next message.
func TestIdleLongerThanTimeouts(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	silent := smtptest.Start(t, smtptest.Config{Script: smtptest.Always(smtptest.StageConnect, smtptest.Stall())})
	cfg := local(srv)
	shortCommand(&cfg)
	shortReply(&cfg)
	m := newMailer(t, cfg)
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	other := local(silent)
	other.DialTimeout = 2 * short
	if err := newMailer(t, other).Probe(t.Context()); err == nil { // takes longer than the deadlines
		t.Fatal("a silent server was probed")
	}
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	if n := srv.Connections(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

func TestBigBodyAndDots(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	big := bigMessage("ana@example.net")
	dots := plainMessage("ana@example.net")
	dots.Data = append(dots.Data, ".\r\n..\r\n.a\r\n\r\n.\r\nend without a line break"...)
	for _, msg := range []scheduler.Message{big, dots} {
		expect(t, deliver(t, m, msg), sent, "", 250, "")
	}
	accepted := srv.Accepted()
	if string(accepted[0].Data) != string(big.Data) {
		t.Error("the big body was changed on its way")
	}
	if string(accepted[1].Data) != string(dots.Data)+"\r\n" {
		t.Errorf("got %q", accepted[1].Data)
	}
}
