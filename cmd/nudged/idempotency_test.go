package main_test

import (
	"net/mail"
	"strings"
	"sync"
	"testing"

	"nudged/internal/smtptest"
)

// A relay that drops what repeats an idempotency key makes an unknown outcome safe to repeat: the
// repetition carries the key of the first attempt, and the recipient gets one mail.
func TestRelayThatDropsRepetitions(t *testing.T) {
	const header = "Resend-Idempotency-Key"
	var mu sync.Mutex
	seen := map[string]int{}
	s := newSite(t, smtptest.Config{Script: smtptest.OnDot(func(m smtptest.Message) smtptest.Action {
		mu.Lock()
		defer mu.Unlock()
		key := m.Header(header)
		seen[key]++
		if seen[key] == 1 {
			return smtptest.Hangup().Accepting() // taken, and the answer is lost
		}
		return smtptest.Answer("250 2.0.0 Ok: a repetition, dropped").Refusing()
	})})
	s.configure("")
	text := strings.Replace(s.readConfig(), "smtp: {", `smtp: {idempotency_header: "`+header+`", `, 1)
	s.writeConfig(text)
	s.due(5)
	s.start().ready()
	s.waitRows("sent/", 5)
	if n := s.acceptedOnce(); n != 5 || len(s.smtp.Accepted()) != 5 {
		t.Errorf("the relay took %d messages, want 5", len(s.smtp.Accepted()))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 5 || seen[""] != 0 {
		t.Errorf("got keys %v, want five different ones", seen)
	}
}

// Outside the window, for another address, or for a request that was closed, an unknown outcome
// stays unknown.
func TestRepetitionKnowsItsBounds(t *testing.T) {
	for name, change := range map[string]string{
		"window over": `UPDATE nudged.reminders SET unknown_since = unknown_since - interval '21 hours'`,
		"address":     `UPDATE nudged.requests SET recipient_email = 'other@example.net'`,
		"closed":      `UPDATE nudged.requests SET status = 'completed'`,
		"opted out":   `UPDATE nudged.requests SET opted_out_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Hangup().Accepting())})
			s.writeConfig(strings.Replace(strings.Replace(s.readConfig(), "smtp: {", `smtp: {idempotency_header: Idempotency-Key, `, 1),
				"initial: 1s, max: 2s", "initial: 2s, max: 2s", 1))
			s.due(1)
			p := s.start().ready()
			s.waitRows("unknown/reply_lost", 1)
			p.stop() // so that the change comes before the repetition
			s.exec(change)
			s.exec(`UPDATE nudged.reminders SET finished_at = finished_at - interval '1 minute'`)
			s.start().ready()
			s.passes(5)
			if n := len(s.smtp.Bodies()); n != 1 {
				t.Errorf("the relay saw %d bodies, want 1", n)
			}
			if rows := s.rows(); rows["unknown/reply_lost"] != 1 {
				t.Errorf("got %v, want it unknown", rows)
			}
		})
	}
}

// A field that the mail has anyway cannot carry the key: there would be two of it.
func TestKeyHasAFieldOfItsOwn(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	s.exec(`UPDATE nudged.requests SET reply_to = 'ann@example.org'`)
	plain := s.readConfig()
	unsubscribing := strings.Replace(plain, "mail: {", `mail: {unsubscribe: "https://example.com/stop", `, 1)
	alone := strings.Replace(plain, "mail: {", "mail: {thread: false, ", 1)
	names := map[string]bool{}
	for _, text := range []string{unsubscribing, alone} {
		s.writeConfig(text)
		shown, stderr, status := s.command("render", "r-1")
		if status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		mail, err := mail.ReadMessage(strings.NewReader(shown))
		if err != nil {
			t.Fatal(err)
		}
		for name := range mail.Header {
			names[name] = true
		}
	}
	if len(names) < 13 {
		t.Errorf("only %d fields: %v", len(names), names)
	}
	for name := range names {
		s.writeConfig(strings.Replace(plain, "smtp: {", `smtp: {idempotency_header: "`+name+`", `, 1))
		s.refuse(2, "every mail has this field already", "check-config")
	}
}
