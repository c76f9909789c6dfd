package mailer_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// TestOffers: parameters of MAIL are sent only where the message needs them and the relay offers
// them; what it cannot take is refused before anything is sent.
func TestOffers(t *testing.T) {
	eightBit := func(to string) scheduler.Message {
		msg := plainMessage(to)
		msg.Data = append(msg.Data, "caf\u00e9\r\n"...)
		return msg
	}
	utf8 := eightBit("j\u00f6rg@example.net")
	utf8.UTF8 = true
	rows := []struct {
		name   string
		offers []string
		msg    scheduler.Message
		params []string
		reason scheduler.Reason
	}{
		{"plain message, everything offered", nil, plainMessage("ana@example.net"), []string{"SIZE=53"}, ""},
		{"plain message, nothing offered", []string{}, plainMessage("ana@example.net"), []string{}, ""},
		{"SIZE without a limit", []string{"SIZE"}, plainMessage("ana@example.net"), []string{"SIZE=53"}, ""},
		{"SIZE 0", []string{"SIZE 0"}, plainMessage("ana@example.net"), []string{"SIZE=53"}, ""},
		{"SIZE just enough", []string{"SIZE 53"}, plainMessage("ana@example.net"), []string{"SIZE=53"}, ""},
		{"SIZE too small", []string{"SIZE 52"}, plainMessage("ana@example.net"), nil, scheduler.ReasonMessageRefused},
		{"8-bit offered", []string{"8BITMIME"}, eightBit("ana@example.net"), []string{"BODY=8BITMIME"}, ""},
		{"8-bit not offered", []string{}, eightBit("ana@example.net"), nil, scheduler.ReasonMessageRefused},
		{"SMTPUTF8 offered", []string{"8BITMIME", "SMTPUTF8"}, utf8, []string{"BODY=8BITMIME", "SMTPUTF8"}, ""},
		{"SMTPUTF8 not offered", []string{"8BITMIME"}, utf8, nil, scheduler.ReasonInvalidAddress},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			srv := smtptest.Start(t, smtptest.Config{Extensions: row.offers})
			m := newMailer(t, local(srv))
			got := deliver(t, m, row.msg)
			if row.reason != "" {
				expect(t, got, failed, row.reason, 0, "")
				if n := srv.Reached(smtptest.StageMAIL); n != 0 {
					t.Errorf("MAIL was sent")
				}
				if n := len(srv.Open()); n != 1 {
					t.Errorf("%d connections are open, want the one, which is as good as new", n)
				}
				return
			}
			expect(t, got, sent, "", 250, "")
			accepted := srv.Accepted()[0]
			if !slices.Equal(accepted.MailParams, row.params) {
				t.Errorf("MAIL had %q, want %q", accepted.MailParams, row.params)
			}
			if !slices.Equal(accepted.To, []string{row.msg.To}) {
				t.Errorf("RCPT was %q", accepted.To)
			}
		})
	}
}

// TestDSN: reports of failures are asked for where that is configured and the relay can do it.
func TestDSN(t *testing.T) {
	for _, offers := range [][]string{{"DSN"}, {"DSN", "PIPELINING", "SIZE"}, {"PIPELINING"}, {}} {
		for _, wanted := range []bool{true, false} {
			srv := smtptest.Start(t, smtptest.Config{Extensions: offers})
			cfg := local(srv)
			cfg.DSN, cfg.BounceAddress = wanted, "bounces@example.com"
			expect(t, deliver(t, newMailer(t, cfg), plainMessage("ana@example.net")), sent, "", 250, "")
			commands := srv.Commands(1)
			mail := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "MAIL FROM:<reminders@example.com>") })
			if mail < 0 {
				t.Fatalf("got %q", commands)
			}
			want := wanted && slices.Contains(offers, "DSN")
			if got := strings.HasSuffix(commands[mail], " RET=HDRS"); got != want {
				t.Errorf("%v, wanted %t: got %q", offers, wanted, commands[mail])
			}
			rcpt := "RCPT TO:<ana@example.net>"
			if want {
				rcpt += " NOTIFY=FAILURE"
			}
			if commands[mail+1] != rcpt {
				t.Errorf("%v, wanted %t: got %q, want %q", offers, wanted, commands[mail+1], rcpt)
			}
		}
	}
}

// TestUnsafeEnvelope: no address can carry a second command.
func TestUnsafeEnvelope(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	for _, to := range []string{"", "@", "ana", "ana@example.net\r\nRCPT TO:<evil@example.net>", "ana\r\n@example.net", "ana\x00@example.net"} {
		expect(t, deliver(t, m, plainMessage(to)), failed, scheduler.ReasonInvalidAddress, 0, "no usable address")
	}
	if n := srv.Connections(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

// TestQuotedLocalPart: what needs quoting is quoted, and arrives as one recipient.
func TestQuotedLocalPart(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	expect(t, deliver(t, m, plainMessage(`a> b"c@example.net`)), sent, "", 250, "")
	if to := srv.Accepted()[0].To; !slices.Equal(to, []string{`"a> b\"c"@example.net`}) {
		t.Errorf("RCPT was %q", to)
	}
}

// TestWays: every way to the relay, with and without authentication.
func TestWays(t *testing.T) {
	rows := []struct {
		name   string
		mode   mailer.TLSMode
		server smtptest.Config
		tls    bool
	}{
		{"none", mailer.TLSNone, smtptest.Config{}, false},
		{"none, though STARTTLS is offered", mailer.TLSNone, smtptest.Config{StartTLS: true}, false},
		{"none, PLAIN to this machine", mailer.TLSNone, smtptest.Config{Username: "u", Password: "p"}, false},
		{"opportunistic, not offered", mailer.TLSOpportunistic, smtptest.Config{}, false},
		{"opportunistic, offered", mailer.TLSOpportunistic, smtptest.Config{StartTLS: true}, true},
		{"mandatory", mailer.TLSMandatory, smtptest.Config{StartTLS: true}, true},
		{"mandatory, PLAIN", mailer.TLSMandatory, smtptest.Config{StartTLS: true, Username: "u", Password: "p"}, true},
		{"mandatory, LOGIN", mailer.TLSMandatory, smtptest.Config{StartTLS: true, Username: "u", Password: "p", Auth: []string{"LOGIN"}}, true},
		{"implicit", mailer.TLSImplicit, smtptest.Config{ImplicitTLS: true}, true},
		{"implicit, PLAIN", mailer.TLSImplicit, smtptest.Config{ImplicitTLS: true, Username: "u", Password: "p"}, true},
		{"implicit, LOGIN", mailer.TLSImplicit, smtptest.Config{ImplicitTLS: true, Username: "u", Password: "p", Auth: []string{"XOAUTH2", "LOGIN"}}, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			srv := smtptest.Start(t, row.server)
			cfg := local(srv)
			cfg.TLS, cfg.Username, cfg.Password = row.mode, row.server.Username, row.server.Password
			m := newMailer(t, cfg)
			relay, err := m.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if relay.Address != srv.Addr() || strings.HasPrefix(relay.TLS, "TLS 1.") != row.tls || relay.Authenticated != (row.server.Username != "") {
				t.Errorf("got %+v", relay)
			}
			expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
			got := srv.Accepted()[0]
			if got.TLS != row.tls || got.User != row.server.Username {
				t.Errorf("TLS %t as user %q, want TLS %t as %q", got.TLS, got.User, row.tls, row.server.Username)
			}
			if n := srv.Connections(); n != 1 {
				t.Errorf("%d connections, want the one that was probed", n)
			}
		})
	}
}

func TestIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 on this machine")
	} else {
		l.Close()
	}
	for _, host := range []string{"::1", "[::1]"} {
		srv := smtptest.Start(t, smtptest.Config{Addr: "[::1]:0", StartTLS: true, Username: "u", Password: "p"})
		cfg := local(srv)
		cfg.Host, cfg.TLS, cfg.Username, cfg.Password = host, mailer.TLSMandatory, "u", "p"
		expect(t, deliver(t, newMailer(t, cfg), plainMessage("ana@example.net")), sent, "", 250, "")
	}
}
