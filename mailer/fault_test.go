package mailer_test

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"

	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// fault is one row of the fault table: what the server does to the first message, what Deliver
// must say, and what was true.
type fault struct {
	name     string
	script   smtptest.Script
	big      bool // a body that does not fit into the buffers of the kernel
	short    func(*mailer.Config)
	state    scheduler.State
	reason   scheduler.Reason
	code     int
	words    string
	relay    bool // RelayFault
	suppress bool
	accepted int  // what the server committed to
	kept     bool // the connection carries the next message
}

const (
	sent     = scheduler.StateSent
	deferred = scheduler.StateDeferred
	failed   = scheduler.StateFailed
	unknown  = scheduler.StateUnknown
)

func faults() []fault {
	at, answer, raw := smtptest.At, smtptest.Answer, smtptest.Raw
	const (
		connect, ehlo = smtptest.StageConnect, smtptest.StageEHLO
		mail, rcpt    = smtptest.StageMAIL, smtptest.StageRCPT
		data, body    = smtptest.StageDATA, smtptest.StageBody
		dot           = smtptest.StageDot
	)
	hangup, reset, stall := smtptest.Hangup(), smtptest.Reset(), smtptest.Stall()
	return []fault{
		{name: "greeting 421", script: at(connect, answer("421 4.3.2 busy").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, words: "connection refused: 421 4.3.2 busy", relay: true},
		{name: "greeting 554", script: at(connect, answer("554 5.7.1 not you")), state: deferred, reason: scheduler.ReasonRelayRefused, code: 554, words: "connection refused: 554", relay: true},
		{name: "greeting never comes", short: shortDial, script: at(connect, stall), state: deferred, reason: scheduler.ReasonRelayRefused, words: "cannot connect: no answer within 300ms", relay: true},
		{name: "greeting is garbage", script: at(connect, raw("HTTP/1.1 400 Bad Request\r\n").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, words: "cannot connect", relay: true},
		{name: "greeting FIN", script: at(connect, hangup), state: deferred, reason: scheduler.ReasonRelayRefused, words: "cannot connect", relay: true},
		{name: "greeting RST", script: at(connect, reset), state: deferred, reason: scheduler.ReasonRelayRefused, words: "cannot connect", relay: true},
		{name: "EHLO hangs", short: shortDial, script: at(ehlo, stall), state: deferred, reason: scheduler.ReasonRelayRefused, words: "EHLO failed: no answer within 300ms", relay: true},
		{name: "EHLO 421", script: at(ehlo, answer("421 4.3.2 busy").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, words: "EHLO refused: 421", relay: true},
		{name: "EHLO and HELO 550", script: at(ehlo, answer("550 bad name"), answer("550 bad name")), state: deferred, reason: scheduler.ReasonRelayRefused, code: 550, words: "EHLO refused: 550", relay: true},
		{name: "EHLO RST", script: at(ehlo, reset), state: deferred, reason: scheduler.ReasonRelayRefused, words: "EHLO failed", relay: true},

		{name: "MAIL 451", script: at(mail, answer("451 4.3.0 later")), state: deferred, reason: scheduler.ReasonGreylisted, code: 451, words: "4.3.0 later", kept: true},
		{name: "MAIL 550", script: at(mail, answer("550 5.7.1 sender refused")), state: failed, reason: scheduler.ReasonMessageRefused, code: 550, words: "5.7.1 sender refused", kept: true},
		{name: "MAIL 550 with a recipient's code", script: at(mail, answer("550 5.1.1 who")), state: failed, reason: scheduler.ReasonMessageRefused, code: 550, kept: true},
		{name: "MAIL 530", script: at(mail, answer("530 5.7.0 log in first")), state: deferred, reason: scheduler.ReasonRelayRefused, code: 530, relay: true, kept: true},
		{name: "MAIL 421", script: at(mail, answer("421 4.3.2 going down").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, relay: true},
		{name: "MAIL 354", script: at(mail, answer("354 what")), state: deferred, reason: scheduler.ReasonConnectionLost, words: "unexpected answer to MAIL: 354 what"},
		{name: "MAIL hangs", short: shortCommand, script: at(mail, stall), state: deferred, reason: scheduler.ReasonConnectionLost, words: "no answer to MAIL within 300ms"},
		{name: "MAIL FIN", script: at(mail, hangup), state: deferred, reason: scheduler.ReasonConnectionLost, words: "MAIL"},
		{name: "MAIL RST", script: at(mail, reset), state: deferred, reason: scheduler.ReasonConnectionLost, words: "connection lost at MAIL"},
		{name: "MAIL garbage", script: at(mail, raw("hello\r\n")), state: deferred, reason: scheduler.ReasonConnectionLost, words: "unreadable answer to MAIL"},

		{name: "RCPT 450", script: at(rcpt, answer("450 4.7.1 greylisted")), state: deferred, reason: scheduler.ReasonGreylisted, code: 450, words: "4.7.1 greylisted", kept: true},
		{name: "RCPT 550 without a code", script: at(rcpt, answer("550 no such user")), state: failed, reason: scheduler.ReasonRecipientRefused, code: 550, kept: true},
		{name: "RCPT 550 5.7.1", script: at(rcpt, answer("550 5.7.1 relaying denied")), state: failed, reason: scheduler.ReasonRecipientRefused, code: 550, kept: true},
		{name: "RCPT 550 5.1.1", script: at(rcpt, answer("550 5.1.1 <ana@example.net> no such user")), state: failed, reason: scheduler.ReasonRecipientRefused, code: 550, words: "5.1.1 <address> no such user", suppress: true, kept: true},
		{name: "RCPT 550 multi-line 5.2.1", script: at(rcpt, answer("550-5.2.1 mailbox\n550 5.2.1 disabled")), state: failed, reason: scheduler.ReasonRecipientRefused, code: 550, words: "5.2.1 mailbox 5.2.1 disabled", suppress: true, kept: true},
		{name: "RCPT 421", script: at(rcpt, answer("421 4.7.0 too many").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, relay: true},
		{name: "RCPT hangs", short: shortCommand, script: at(rcpt, stall), state: deferred, reason: scheduler.ReasonConnectionLost, words: "no answer to RCPT within 300ms"},
		{name: "RCPT FIN", script: at(rcpt, hangup), state: deferred, reason: scheduler.ReasonConnectionLost, words: "RCPT"},
		{name: "RCPT RST", script: at(rcpt, reset), state: deferred, reason: scheduler.ReasonConnectionLost, words: "connection lost at RCPT"},
		{name: "RCPT 251", script: at(rcpt, answer("251 2.1.5 will forward")), state: sent, code: 250, accepted: 1, kept: true},
		{name: "RCPT 550, then FIN", script: at(rcpt, answer("550 5.1.1 no").ThenHangup()), state: failed, reason: scheduler.ReasonRecipientRefused, code: 550, suppress: true},
		{name: "RCPT 450, RSET 502", script: smtptest.First(at(rcpt, answer("450 later")), at(smtptest.StageRSET, answer("502 what"))), state: deferred, reason: scheduler.ReasonGreylisted, code: 450},

		{name: "DATA 451", script: at(data, answer("451 4.3.0 later")), state: deferred, reason: scheduler.ReasonGreylisted, code: 451, kept: true},
		{name: "DATA 554", script: at(data, answer("554 5.7.1 no")), state: failed, reason: scheduler.ReasonMessageRefused, code: 554, kept: true},
		{name: "DATA 421", script: at(data, answer("421 4.3.2 bye").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, relay: true},
		{name: "DATA 250", script: at(data, answer("250 ok")), state: deferred, reason: scheduler.ReasonConnectionLost, words: "unexpected answer to DATA: 250 ok"},
		{name: "DATA hangs", short: shortCommand, script: at(data, stall), state: deferred, reason: scheduler.ReasonConnectionLost, words: "no answer to DATA within 300ms"},
		{name: "DATA FIN", script: at(data, hangup), state: deferred, reason: scheduler.ReasonConnectionLost, words: "connection closed before the answer to DATA"},

		{name: "354, then RST, small body", script: at(body, reset), state: unknown, reason: scheduler.ReasonReplyLost, words: "final dot"},
		{name: "354, then FIN, small body", script: at(body, hangup), state: unknown, reason: scheduler.ReasonReplyLost, words: "final dot"},
		{name: "RST in a big body", big: true, script: at(body, reset), state: deferred, reason: scheduler.ReasonConnectionLost, words: "connection lost in the body"},
		{name: "552 and FIN in a big body", big: true, script: at(body, answer("552 too big").ThenHangup()), state: deferred, reason: scheduler.ReasonConnectionLost, words: "connection lost in the body"},

		{name: "dot RST, accepted", script: at(dot, reset.Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, words: "final dot", accepted: 1},
		{name: "dot FIN, accepted", script: at(dot, hangup.Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, words: "connection closed before the answer to the final dot", accepted: 1},
		{name: "dot FIN, not accepted", script: at(dot, hangup), state: unknown, reason: scheduler.ReasonReplyLost, words: "connection closed before the answer to the final dot"},
		{name: "dot 250 too late", short: shortReply, script: at(dot, stall.Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, words: "no answer to the final dot within 300ms", accepted: 1},
		{name: "dot 250 multi-line", script: at(dot, answer("250-2.0.0 ok\n250 2.0.0 queued as 7")), state: sent, code: 250, words: "2.0.0 ok 2.0.0 queued as 7", accepted: 1, kept: true},
		{name: "dot 250 multi-line, cut", script: at(dot, raw("250-2.0.0 ok\r\n").ThenHangup().Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, accepted: 1},
		{name: "dot 250 without CRLF, FIN", script: at(dot, raw("250 2.0.").ThenHangup().Accepting()), state: sent, code: 250, accepted: 1},
		{name: "dot 25, FIN", script: at(dot, raw("25").ThenHangup().Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, accepted: 1},
		{name: "dot bare 250", script: at(dot, raw("250\r\n").Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, words: "unreadable answer to the final dot", accepted: 1},
		{name: "dot empty line", script: at(dot, raw("\r\n").Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, accepted: 1},
		{name: "dot hello world", script: at(dot, raw("hello world\r\n").Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, accepted: 1},
		{name: "dot 5x0", script: at(dot, raw("5x0 foo\r\n")), state: unknown, reason: scheduler.ReasonReplyLost},
		{name: "dot abc-foo", short: shortReply, script: at(dot, raw("abc-foo\r\n").Accepting()), state: unknown, reason: scheduler.ReasonReplyLost, accepted: 1},
		{name: "dot 251", script: at(dot, answer("251 2.0.0 fine")), state: sent, code: 251, accepted: 1},
		{name: "dot 200", script: at(dot, answer("200 fine")), state: sent, code: 200, accepted: 1},
		{name: "dot 354", script: at(dot, answer("354 more")), state: unknown, reason: scheduler.ReasonReplyLost, words: "unexpected answer to the final dot: 354 more"},
		{name: "dot 650", script: at(dot, answer("650 what")), state: unknown, reason: scheduler.ReasonReplyLost},
		{name: "dot 451", script: at(dot, answer("451 4.3.0 later")), state: deferred, reason: scheduler.ReasonGreylisted, code: 451, kept: true},
		{name: "dot 452", script: at(dot, answer("452 4.2.2 full")), state: deferred, reason: scheduler.ReasonGreylisted, code: 452, kept: true},
		{name: "dot 550", script: at(dot, answer("550 5.7.1 spam")), state: failed, reason: scheduler.ReasonMessageRefused, code: 550, kept: true},
		{name: "dot 550 5.1.1", script: at(dot, answer("550 5.1.1 no such user")), state: failed, reason: scheduler.ReasonMessageRefused, code: 550, suppress: true, kept: true},
		{name: "dot 554 multi-line", script: at(dot, answer("554-5.7.1 spam\n554 5.7.1 really")), state: failed, reason: scheduler.ReasonMessageRefused, code: 554, words: "5.7.1 spam 5.7.1 really", kept: true},
		{name: "dot 421", script: at(dot, answer("421 4.3.2 bye").ThenHangup()), state: deferred, reason: scheduler.ReasonRelayRefused, code: 421, relay: true},
		{name: "dot 250, then FIN", script: at(dot, answer("250 2.0.0 ok").ThenHangup()), state: sent, code: 250, accepted: 1},
		{name: "dot 250, then RST", script: at(dot, answer("250 2.0.0 ok").ThenReset()), state: sent, code: 250, accepted: 1},
		{name: "dot 250, then 421", script: at(dot, raw("250 2.0.0 ok\r\n421 4.4.2 idle\r\n").ThenHangup().Accepting()), state: sent, code: 250, accepted: 1},
	}
}

// TestFaultTable: each row alone, with and without PIPELINING. Afterwards the mailer must work,
// over the same connection exactly where the row says so.
func TestFaultTable(t *testing.T) {
	plain := slices.DeleteFunc(smtptest.DefaultExtensions(), func(e string) bool { return e == "PIPELINING" })
	for way, extensions := range map[string][]string{"pipelined": nil, "plain": plain} {
		for _, f := range faults() {
			t.Run(way+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				srv := smtptest.Start(t, smtptest.Config{Script: f.script, Extensions: extensions})
				checkFault(t, srv, local(srv), f)
			})
		}
	}
}

// TestFaultTableUnderTLS: every row under STARTTLS and under implicit TLS.
func TestFaultTableUnderTLS(t *testing.T) {
	for _, mode := range []mailer.TLSMode{mailer.TLSMandatory, mailer.TLSImplicit} {
		for _, f := range faults() {
			t.Run(string(mode)+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				srv := smtptest.Start(t, smtptest.Config{
					Script: f.script, StartTLS: mode == mailer.TLSMandatory, ImplicitTLS: mode == mailer.TLSImplicit,
				})
				cfg := local(srv)
				cfg.TLS = mode
				checkFault(t, srv, cfg, f)
				for _, m := range srv.Accepted() {
					if !m.TLS {
						t.Error("a message was accepted in clear")
					}
				}
			})
		}
	}
}

func checkFault(t *testing.T, srv *smtptest.Server, cfg mailer.Config, f fault) {
	t.Helper()
	if f.short != nil {
		f.short(&cfg)
	}
	m := newMailer(t, cfg)
	msg := plainMessage("ana@example.net")
	if f.big {
		msg = bigMessage("ana@example.net")
	}
	got := deliver(t, m, msg)
	expect(t, got, f.state, f.reason, f.code, f.words)
	if got.RelayFault != f.relay || got.Suppress != f.suppress {
		t.Errorf("got %+v, want relay fault %t, suppress %t", got, f.relay, f.suppress)
	}
	if n := len(srv.Accepted()); n != f.accepted {
		t.Errorf("the server accepted %d messages, want %d", n, f.accepted)
	}
	before := srv.Connections()
	srv.SetScript(nil)
	expect(t, deliver(t, m, plainMessage("bo@example.net")), sent, "", 250, "")
	if kept := srv.Connections() == before; kept != f.kept {
		t.Errorf("the next message went over the same connection: %t, want %t", kept, f.kept)
	}
	if n := len(srv.Accepted()); n != f.accepted+1 {
		t.Errorf("after one more message the server has accepted %d, want %d", n, f.accepted+1)
	}
}

func TestDialFaults(t *testing.T) {
	untrusted := func(cfg *mailer.Config) { cfg.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12} }
	secret := func(cfg *mailer.Config) { cfg.Username, cfg.Password = "nudged", "wrong" }
	mode := func(mode mailer.TLSMode) func(*mailer.Config) {
		return func(cfg *mailer.Config) { cfg.TLS = mode }
	}
	rows := []struct {
		name   string
		server smtptest.Config
		client []func(*mailer.Config)
		code   int
		words  string
	}{
		{"STARTTLS not offered", smtptest.Config{}, []func(*mailer.Config){mode(mailer.TLSMandatory)}, 0, "STARTTLS failed: the relay does not offer it"},
		{"STARTTLS 454", smtptest.Config{StartTLS: true, Script: smtptest.Always(smtptest.StageSTARTTLS, smtptest.Answer("454 4.7.0 no"))}, []func(*mailer.Config){mode(mailer.TLSMandatory)}, 454, "STARTTLS refused: 454 4.7.0 no"},
		{"opportunistic STARTTLS 454", smtptest.Config{StartTLS: true, Script: smtptest.Always(smtptest.StageSTARTTLS, smtptest.Answer("454 4.7.0 no"))}, []func(*mailer.Config){mode(mailer.TLSOpportunistic)}, 454, "STARTTLS refused: 454 4.7.0 no"},
		{"STARTTLS hangs", smtptest.Config{StartTLS: true, Script: smtptest.Always(smtptest.StageSTARTTLS, smtptest.Stall())}, []func(*mailer.Config){mode(mailer.TLSMandatory)}, 0, "STARTTLS failed: no answer within 300ms"},
		{"STARTTLS, then silence", smtptest.Config{StartTLS: true, Script: smtptest.Always(smtptest.StageSTARTTLS, smtptest.Answer("220 go").ThenStall())}, []func(*mailer.Config){mode(mailer.TLSMandatory)}, 0, "STARTTLS failed: no answer within 300ms"},
		{"STARTTLS, untrusted certificate", smtptest.Config{StartTLS: true}, []func(*mailer.Config){mode(mailer.TLSMandatory), untrusted}, 0, "STARTTLS failed: tls: failed to verify certificate"},
		{"implicit TLS, untrusted certificate", smtptest.Config{ImplicitTLS: true}, []func(*mailer.Config){mode(mailer.TLSImplicit), untrusted}, 0, "cannot connect: TLS: tls: failed to verify certificate"},
		{"implicit TLS to a server in clear", smtptest.Config{}, []func(*mailer.Config){mode(mailer.TLSImplicit)}, 0, "cannot connect: TLS: "},
		{"AUTH 535", smtptest.Config{Username: "nudged", Password: "right"}, []func(*mailer.Config){secret}, 535, "authentication refused: 535 5.7.8 bad username or password"},
		{"AUTH 535 after LOGIN", smtptest.Config{Username: "nudged", Password: "right", Auth: []string{"LOGIN"}}, []func(*mailer.Config){secret}, 535, "authentication refused: 535 5.7.8 bad username or password"},
		{"AUTH 454", smtptest.Config{Username: "nudged", Script: smtptest.Always(smtptest.StageAUTH, smtptest.Answer("454 4.7.0 later"))}, []func(*mailer.Config){secret}, 454, "authentication refused: 454 4.7.0 later"},
		{"AUTH hangs", smtptest.Config{Username: "nudged", Script: smtptest.Always(smtptest.StageAUTH, smtptest.Stall())}, []func(*mailer.Config){secret}, 0, "authentication failed: no answer within 300ms"},
		{"AUTH 535 and FIN", smtptest.Config{Username: "nudged", Script: smtptest.Always(smtptest.StageAUTH, smtptest.Answer("535 5.7.8 no").ThenHangup())}, []func(*mailer.Config){secret}, 535, "authentication refused: 535 5.7.8 no"},
		{"AUTH not offered", smtptest.Config{}, []func(*mailer.Config){secret}, 0, "authentication failed: the relay offers neither PLAIN nor LOGIN"},
		{"AUTH with unknown mechanisms only", smtptest.Config{Username: "nudged", Auth: []string{"GSSAPI"}}, []func(*mailer.Config){secret}, 0, `authentication failed: the relay offers neither PLAIN nor LOGIN but "GSSAPI"`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			srv := smtptest.Start(t, row.server)
			cfg := local(srv)
			if strings.HasSuffix(row.words, "within 300ms") {
				shortDial(&cfg)
			}
			for _, change := range row.client {
				change(&cfg)
			}
			m := newMailer(t, cfg)
			got := deliver(t, m, plainMessage("ana@example.net"))
			expect(t, got, deferred, scheduler.ReasonRelayRefused, row.code, row.words)
			if !got.RelayFault {
				t.Error("this is the relay's fault")
			}
			if err := m.Probe(t.Context()); err == nil || err.Error() != got.SMTPReply {
				t.Errorf("probe says %v, want the same", err)
			}
			if err := srv.WaitOpen(waiting(t), 0); err != nil {
				t.Error(err)
			}
			if n := srv.Reached(smtptest.StageMAIL); n != 0 {
				t.Errorf("%d MAIL commands came", n)
			}
		})
	}
}

func TestConnectRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	m := newMailer(t, mailer.Config{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: mailer.TLSNone, From: example(),
	})
	got := deliver(t, m, plainMessage("ana@example.net"))
	expect(t, got, deferred, scheduler.ReasonRelayRefused, 0, "cannot connect: dial tcp 127.0.0.1:")
	if !got.RelayFault {
		t.Error("this is the relay's fault")
	}
}
