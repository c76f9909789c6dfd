package mailer_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// TestM01 is the row M01: whatever follows the 250, the mail is sent, and no RSET is tried.
func TestM01(t *testing.T) {
	for name, script := range map[string]smtptest.Script{
		"close after 250":         smtptest.At(smtptest.StageDot, smtptest.Answer("250 2.0.0 ok").ThenHangup()),
		"RSET is not implemented": smtptest.Always(smtptest.StageRSET, smtptest.Answer("502 5.5.1 what")),
	} {
		t.Run(name, func(t *testing.T) {
			srv := smtptest.Start(t, smtptest.Config{Script: script})
			m := newMailer(t, local(srv))
			expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "2.0.0 ok")
			if n := len(srv.Bodies()); n != 1 {
				t.Errorf("%d bodies, want one", n)
			}
			if n := srv.Reached(smtptest.StageRSET); n != 0 {
				t.Errorf("%d RSET, want none", n)
			}
		})
	}
}

// TestM02 is the row M02: the answer to the dot is read, and decides.
func TestM02(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot,
		smtptest.Answer("554 5.7.1 spam"), smtptest.Answer("451 4.3.0 later"))})
	m := newMailer(t, local(srv))
	expect(t, deliver(t, m, plainMessage("ana@example.net")), failed, scheduler.ReasonMessageRefused, 554, "5.7.1 spam")
	expect(t, deliver(t, m, plainMessage("ana@example.net")), deferred, scheduler.ReasonGreylisted, 451, "4.3.0 later")
}

// TestM04 is the row M04: a connection that the server gave up while it was idle is replaced at
// once, in whatever way it was given up.
func TestM04(t *testing.T) {
	ways := map[string]func(*smtptest.Server){
		"421 and FIN":       func(s *smtptest.Server) { s.CloseIdle("421 4.4.2 timeout") },
		"451 4.4.2 and FIN": func(s *smtptest.Server) { s.CloseIdle("451 4.4.2 timeout waiting for data") },
		"FIN":               func(s *smtptest.Server) { s.CloseIdle("") },
		"RST":               func(s *smtptest.Server) { s.CloseConnections() },
		"a firewall forgot it": func(s *smtptest.Server) {
			s.SetScript(smtptest.OnConn(1, smtptest.Always(smtptest.StageMAIL, smtptest.Stall())))
		},
		"421 as the answer to MAIL": func(s *smtptest.Server) {
			s.SetScript(smtptest.At(smtptest.StageMAIL, smtptest.Answer("421 4.7.0 too long")))
		},
		"nonsense as answer to MAIL": func(s *smtptest.Server) { s.SetScript(smtptest.At(smtptest.StageMAIL, smtptest.Raw("what\r\n"))) },
	}
	for name, giveUp := range ways {
		for _, mode := range []mailer.TLSMode{mailer.TLSNone, mailer.TLSMandatory} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				srv := smtptest.Start(t, smtptest.Config{StartTLS: true})
				cfg := local(srv)
				cfg.TLS = mode
				shortCommand(&cfg)
				m := newMailer(t, cfg)
				expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
				giveUp(srv)
				expect(t, deliver(t, m, plainMessage("bo@example.net")), sent, "", 250, "")
				if n := srv.Connections(); n != 2 {
					t.Errorf("%d connections, want 2", n)
				}
				if n := len(srv.Bodies()); n != 2 {
					t.Errorf("%d bodies, want 2", n)
				}
			})
		}
	}
}

// TestM05 is the row M05: nothing is shared between deliveries under way.
func TestM05(t *testing.T) {
	const workers, each = 50, 20
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				task := task()
				task.Request.ID = fmt.Sprintf("req-%d-%d", w, i)
				task.Request.RecipientEmail = task.Request.ID + "@example.net"
				task.Request.Title = "for " + task.Request.ID + "."
				msg, err := m.Compose(task)
				if err != nil {
					t.Error(err)
					return
				}
				if got := m.Deliver(t.Context(), msg, soon()); got.State != sent {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	wg.Wait()
	accepted := srv.Accepted()
	if len(accepted) != workers*each {
		t.Fatalf("%d messages accepted, want %d", len(accepted), workers*each)
	}
	inBody := regexp.MustCompile(`for (req-\d+-\d+)\.`)
	seen := make(map[string]bool)
	for _, got := range accepted {
		for _, match := range inBody.FindAllSubmatch(got.Data, -1) {
			if to := string(match[1]) + "@example.net"; !slices.Equal(got.To, []string{to}) {
				t.Errorf("body of %s went to %v", to, got.To)
			}
		}
		seen[got.To[0]] = true
	}
	if len(seen) != workers*each {
		t.Errorf("%d recipients, want %d", len(seen), workers*each)
	}
	if n := srv.Connections(); n > workers {
		t.Errorf("%d connections for %d workers", n, workers)
	}
}

// TestM07 is the row M07: a 4xx after the dot is a clean no.
func TestM07(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Answer("454 Throttling failure: Maximum sending rate exceeded."))})
	m := newMailer(t, local(srv))
	got := deliver(t, m, plainMessage("ana@example.net"))
	expect(t, got, deferred, scheduler.ReasonGreylisted, 454, "Throttling failure")
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
	if n := len(srv.Accepted()); n != 1 {
		t.Errorf("%d messages accepted, want one", n)
	}
}

// TestM09 is the row M09: greylisting is for later, and says nothing about the address.
func TestM09(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageRCPT, smtptest.Answer("450 4.7.1 try again in 300 seconds"))})
	m := newMailer(t, local(srv))
	got := deliver(t, m, plainMessage("ana@example.net"))
	expect(t, got, deferred, scheduler.ReasonGreylisted, 450, "4.7.1 try again in 300 seconds")
	if got.Suppress || got.RelayFault {
		t.Errorf("got %+v, want neither suppression nor a fault of the relay", got)
	}
	expect(t, deliver(t, m, plainMessage("ana@example.net")), sent, "", 250, "")
}

// TestD06 is the row D06: the answer that comes too late leaves the outcome unknown, and one body.
func TestD06(t *testing.T) {
	release := make(chan struct{})
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Answer("250 2.0.0 ok").Until(release))})
	cfg := local(srv)
	shortReply(&cfg)
	m := newMailer(t, cfg)
	expect(t, deliver(t, m, plainMessage("ana@example.net")), unknown, scheduler.ReasonReplyLost, 0, "no answer to the final dot within 300ms")
	close(release)
	if n := len(srv.Bodies()); n != 1 {
		t.Errorf("%d bodies, want one", n)
	}
	// The late 250 is nobody's answer.
	srv.SetScript(smtptest.At(smtptest.StageDot, smtptest.Answer("550 5.7.1 no")))
	expect(t, deliver(t, m, plainMessage("bo@example.net")), failed, scheduler.ReasonMessageRefused, 550, "5.7.1 no")
}

// TestS12 is the row S12: a server that says nothing holds nobody, least of all at the end.
func TestS12(t *testing.T) {
	stages := []smtptest.Stage{
		smtptest.StageConnect, smtptest.StageEHLO, smtptest.StageSTARTTLS, smtptest.StageAUTH,
		smtptest.StageMAIL, smtptest.StageRCPT, smtptest.StageDATA,
	}
	for _, stage := range stages {
		srv := smtptest.Start(t, smtptest.Config{
			StartTLS: true, Username: "u", Password: "p", Script: smtptest.Always(stage, smtptest.Stall()),
		})
		cfg := local(srv)
		cfg.TLS, cfg.Username, cfg.Password = mailer.TLSMandatory, "u", "p"
		t.Run("attempt ends by itself at "+string(stage), func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			shortDial(&cfg)
			shortCommand(&cfg)
			got := deliver(t, newMailer(t, cfg), plainMessage("ana@example.net"))
			if got.State != deferred || !strings.Contains(got.SMTPReply, "within 300ms") {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("attempt ends with the context at "+string(stage), func(t *testing.T) {
			t.Parallel()
			srv := smtptest.Start(t, smtptest.Config{
				StartTLS: true, Username: "u", Password: "p", Script: smtptest.Always(stage, smtptest.Stall()),
			})
			cfg := cfg
			cfg.Port, cfg.TLSConfig = srv.Port(), srv.ClientTLS()
			got := newMailer(t, cfg).Deliver(endsAt(t, srv, stage), plainMessage("ana@example.net"), soon())
			expect(t, got, deferred, scheduler.ReasonShutdown, 0, "stopped before the final dot")
			if got.RelayFault {
				t.Error("nobody is to blame")
			}
			if err := srv.WaitOpen(waiting(t), 0); err != nil {
				t.Error(err)
			}
		})
	}
}
