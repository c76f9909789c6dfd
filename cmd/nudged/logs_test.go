package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// Words that only stand in what no log may tell.
const (
	wordAddress  = "address-word"
	wordLink     = "link-word"
	wordSubject  = "subject-word"
	wordName     = "name-word"
	wordDocument = "document-word"
	wordDatabase = "database-word"
	wordRelay    = "relay-word"
)

// talkative is a mail server that repeats in its answers what it was given, as filters do, and
// ends each request of the test in a way of its own, by the number in the address.
func talkative() smtptest.Script {
	echo := fmt.Sprintf("<someone@%s.example> \"%s\" https://%s.example/u/1 %s", wordAddress, wordSubject, wordLink, wordName)
	once := func(stage smtptest.Stage, recipient string, action smtptest.Action) smtptest.Script {
		play := smtptest.At(stage, action)
		return func(e smtptest.Event) smtptest.Action {
			// At RCPT the recipient is in the command and not in the envelope yet.
			if e.Stage == stage && strings.Contains(e.Line+strings.Join(e.Message.To, " "), recipient+"@") {
				return play(e)
			}
			return smtptest.Action{}
		}
	}
	return smtptest.First(
		once(smtptest.StageRCPT, "r2", smtptest.Answer("550 5.1.1 no such user: "+echo)),
		once(smtptest.StageRCPT, "r3", smtptest.Answer("451 4.7.1 greylisted: "+echo)),
		once(smtptest.StageDot, "r4", smtptest.Hangup().Accepting()),
		once(smtptest.StageDot, "r5", smtptest.Answer("554 5.7.1 spam: "+echo)),
		once(smtptest.StageDot, "r6", smtptest.Answer("421 4.7.0 too much of "+echo).ThenHangup()),
		once(smtptest.StageRCPT, "r7", smtptest.Answer("421 4.7.0 slow down, "+echo).ThenHangup()),
		once(smtptest.StageDATA, "r8", smtptest.Raw("garbage "+echo+"\r\n")),
	)
}

// talk runs a daemon through whatever may happen to a reminder, its pages and its configuration, at
// level debug, and returns all that was logged.
func (s *site) talk(format string) string {
	s.t.Helper()
	templates := filepath.Join(s.dir, "templates", "fr")
	if err := os.MkdirAll(templates, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(templates, "body.txt"), []byte("{{.Title.Nothing}} {{.URL}}\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for name, secret := range map[string]string{"password": wordRelay, "ca.pem": string(certificate(s.t, s.smtp))} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(secret), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	config := strings.Replace(s.readConfig(), "tls: none", "tls: mandatory, ca_file: ca.pem, username: nudged, password_file: password", 1)
	s.writeConfig(strings.Replace(config, "mail: {", "mail: {templates: templates, ", 1))
	s.url = strings.Replace(s.url, "postgres@", "postgres:"+wordDatabase+"@", 1)

	s.exec(`INSERT INTO nudged.suppressions (address, reason) VALUES ('r11@address-word.example', 'asked')`)
	s.insert(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)

	shadow := s.start("--shadow", "--log.level=debug", "--log.format="+format)
	s.wait("the shadow", func() bool { return strings.Count(shadow.log.String(), "would send") > 5 })
	shadow.stop()

	p := s.start("--log.level=debug", "--log.format="+format)
	s.wait("the web port", func() bool { return p.findWeb() })
	s.waitRows("sent/", 5) // r-1, and after a while r-3, r-6 or its like, r-7, r-8
	s.waitRows("failed/recipient_refused", 1)
	s.waitRows("failed/message_refused", 1)
	s.waitRows("failed/template_error", 1)
	s.waitRows("unknown/reply_lost", 1)
	for _, path := range []string{"/", "/metrics", "/-/ready", "/requests/r-1", "/requests/r-4", "/requests/r-9", "/requests/" + wordAddress} {
		if status, _ := p.get(path); status == 0 {
			s.t.Errorf("%s is not answered", path)
		}
	}

	// The database and the relay go and come back, and a reload is refused.
	s.smtp.StopListening()
	s.smtp.CloseConnections()
	s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name LIKE 'nudged%'`)
	s.insert(13)
	s.wait("the relay to be missed", func() bool { return strings.Contains(p.log.String(), "the relay does not accept mail now") })
	if err := s.smtp.Listen(); err != nil {
		s.t.Fatal(err)
	}
	s.waitRows("sent/", 6)
	good := s.readConfig()
	s.writeConfig(strings.Replace(good, "from: ", "bounce_address: \""+wordAddress+"@@sender.example\", from: ", 1))
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	s.wait("the refused reload", func() bool { return strings.Contains(p.log.String(), "not reloaded") })
	s.writeConfig(good)
	p.stop()

	wrong := s.url
	s.url = "postgres://nobody:" + wordDatabase + "@127.0.0.1:1/none"
	lost := s.start("--log.level=debug", "--log.format="+format)
	s.wait("the database to be missed", func() bool { return strings.Contains(lost.log.String(), "nothing is sent yet") })
	lost.stop()
	s.url = wrong
	return shadow.log.String() + p.log.String() + lost.log.String()
}

// insert adds requests of these numbers with a slot that is due. That of 9 is in the language whose
// template fails, 10 has no usable address and 12 no cadence.
func (s *site) insert(numbers ...int) {
	s.t.Helper()
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, recipient_name, title, sender_name, locale, cadence)
	        SELECT 'r-' || i, 'a', 'pending', CASE i WHEN 10 THEN 'address-word' ELSE 'r' || i || '@address-word.example' END,
	               'name-word', 'subject-word', 'name-word', CASE i WHEN 9 THEN 'fr' END, CASE i WHEN 12 THEN 'none-such' END
	        FROM unnest($1::int[]) i`, numbers)
	s.exec(`INSERT INTO nudged.documents (request_id, position, title, state, rejection_reason)
	        SELECT 'r-' || i, 1, 'document-word', 'rejected', 'document-word' FROM unnest($1::int[]) i`, numbers)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at)
	        SELECT 'r-' || i, 'https://link-word.example/u/' || i, now() - interval '3 days 1 minute' FROM unnest($1::int[]) i`, numbers)
}

// findWeb reads the address of the web from a log of either format.
func (p *process) findWeb() bool {
	found := regexp.MustCompile(`address"?[=:]"?(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(p.log.String())
	if found != nil {
		p.web = "http://" + found[1]
	}
	return found != nil
}

// Whatever happens to reminders, database, relay and configuration: no line tells an address, a
// link, a subject, a name or a secret, at level debug, in either format.
func TestNoLineTellsWhatItMustNot(t *testing.T) {
	for _, format := range []string{"logfmt", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smtptest.Config{StartTLS: true, Username: "nudged", Password: wordRelay, Script: talkative()})
			log := s.talk(format)
			lines := 0
			for line := range strings.Lines(log) {
				lines++
				for _, word := range []string{wordAddress, wordLink, wordSubject, wordName, wordDocument, wordDatabase, wordRelay} {
					if strings.Contains(line, word) {
						t.Errorf("%s: %s", word, line)
					}
				}
				if format == "json" && !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
			for _, outcome := range []string{"sent", "deferred", "failed", "unknown"} {
				if !strings.Contains(strings.ReplaceAll(log, `"`, ""), "outcome"+map[string]string{"logfmt": "=", "json": ":"}[format]+outcome) {
					t.Errorf("no line has the outcome %s: the run proves little", outcome)
				}
			}
			t.Logf("%d lines tell nothing that they must not", lines)
		})
	}
}

// The first line says which program runs on what.
func TestFirstLine(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.configure("cadences: {default: {after: [3d]}, second: {after: [1w]}, third: {after: [2w]}}")
	p := s.start("--log.format=json").readyInJSON()
	first, _, _ := strings.Cut(p.log.String(), "\n")
	var line struct {
		Msg, Version, Revision, Config, Environment, Tzdata string
		Schema                                              int
		Cadences                                            []string
	}
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		t.Fatalf("%v: %s", err, first)
	}
	out, _, _ := s.command("check-config")
	want := []string{"default", "second", "third"}
	if line.Msg != "nudged starts" || line.Version == "" || line.Revision == "" || line.Schema < 3 || line.Environment != "test" ||
		line.Tzdata == "" || !slices.Equal(line.Cadences, want) || len(line.Config) != 12 || !strings.Contains(out, "hash "+line.Config) {
		t.Errorf("got %s", first)
	}
	p.stop()
	if n := strings.Count(p.log.String(), "nudged starts"); n != 1 {
		t.Errorf("%d lines tell the start", n)
	}
}

// readyInJSON waits for a daemon that logs in JSON.
func (p *process) readyInJSON() *process {
	p.s.t.Helper()
	p.s.wait("the web port", p.findWeb)
	return p.ready()
}

// A fault that lasts is told when it begins and when it ends, and counted meanwhile.
func TestLastingFaultIsToldOnce(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	p := s.start().ready()
	s.wait("the relay", func() bool { return p.metric("nudged_relay_up") == "1" })
	s.exec(`ALTER TABLE nudged.schedules RENAME TO away`)
	s.wait("passes that fail", func() bool {
		n := p.metric(`nudged_passes_total{result="error"}`)
		return len(n) > 1 // ten or more
	})
	s.exec(`ALTER TABLE nudged.away RENAME TO schedules`)
	s.wait("a pass that succeeds", func() bool { return strings.Contains(p.log.String(), "passes succeed again") })
	p.stop()
	log := p.log.String()
	if told, over := strings.Count(log, "the pass failed"), strings.Count(log, "passes succeed again"); told != 1 || over != 1 {
		t.Errorf("the fault is told %d times and its end %d times:\n%s", told, over, log)
	}

	s.smtp.StopListening()
	s.due(1)
	p = s.start().ready()
	begun := time.Now()
	s.wait("three probes", func() bool {
		// The pauses are 1 s, 2 s and 4 s, each drawn from its half upwards.
		return time.Since(begun) > 4*time.Second && strings.Contains(p.log.String(), "the relay does not accept mail now")
	})
	if err := s.smtp.Listen(); err != nil {
		t.Fatal(err)
	}
	s.waitRows("sent/", 1)
	p.stop()
	log = p.log.String()
	if told, over := strings.Count(log, "the relay does not accept mail now"), strings.Count(log, "the relay answers"); told != 1 || over != 1 {
		t.Errorf("the fault is told %d times and its end %d times:\n%s", told, over, log)
	}
}

// metric returns the value of one series, as text.
func (p *process) metric(series string) string {
	status, metrics := p.get("/metrics")
	if status != http.StatusOK {
		return ""
	}
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
