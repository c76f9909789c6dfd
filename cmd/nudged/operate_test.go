package main_test

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// want runs a subcommand that must succeed and print something.
func (s *site) want(output string, args ...string) {
	s.t.Helper()
	out, stderr, status := s.command(args...)
	if status != 0 || !strings.Contains(out, output) {
		s.t.Errorf("%s: status %d, %s%s; want %q", strings.Join(args, " "), status, out, stderr, output)
	}
}

// refuse runs a subcommand that must end with this status and one line that says why.
func (s *site) refuse(status int, line string, args ...string) {
	s.t.Helper()
	_, stderr, got := s.command(args...)
	if got != status || !strings.Contains(stderr, line) || strings.Count(stderr, "\n") != 1 {
		s.t.Errorf("%s: status %d, %q; want status %d and one line with %q", strings.Join(args, " "), got, stderr, status, line)
	}
}

// The classic of this field: the server accepts every message and then goes silent. One body
// each, all unknown, listed, none repeated; after a person says "not sent", exactly one more.
func TestAcceptedAndSilent(t *testing.T) {
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Stall().Accepting())})
	s.due(3)
	p := s.start().ready()
	s.waitRows("unknown/reply_lost", 3)
	out, _, status := s.command("unknown", "--output", "json")
	var list []struct {
		RequestID string `json:"request_id"`
		Slot      string
		MessageID string `json:"message_id"`
		Evidence  string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || status != 0 || len(list) != 3 {
		t.Fatalf("unknown (status %d): %s", status, out)
	}
	if list[0].MessageID == "" || list[0].Evidence == "" || list[0].Slot != "3d" {
		t.Errorf("evidence is missing: %+v", list[0])
	}
	s.wait("the gauge", func() bool {
		_, metrics := p.get("/metrics")
		return strings.Contains(metrics, "nudged_unknown_outcomes 3\n")
	})
	for range 20 {
		s.exec(`SELECT nudged.touch(id) FROM nudged.requests`)
		s.waitPlanned()
	}
	if n := len(s.smtp.Accepted()); n != 3 {
		t.Fatalf("the server accepted %d messages, want 3", n)
	}

	s.smtp.SetScript(nil)
	s.refuse(1, "there is none", "resolve", "r-1", "7d", "--sent", "--why", "log read")
	s.want("settled as not sent", "resolve", "r-1", "3d", "--not-sent", "--why", "the relay's log has no such Message-ID")
	s.want("settled as sent", "resolve", "r-2", "3d", "--sent", "--why", "queue id 4711 in the relay's log")
	// min_gap counts from the mail that may have gone out, so the repetition waits for it.
	s.exec(`UPDATE nudged.reminders SET handed_off_at = handed_off_at - interval '2 hours' WHERE request_id = 'r-1'`)
	s.exec(`SELECT nudged.touch('r-1')`)
	s.wait("r-1 to be sent", func() bool { return len(s.smtp.Accepted()) == 4 })
	s.waitRows("sent/", 2)
	if rows := s.rows(); rows["unknown/reply_lost"] != 1 {
		t.Errorf("got %v, want one still unknown", rows)
	}
	s.want("the relay's log has no such Message-ID", "explain", "r-1")
}

// waitPlanned waits until no request waits to be planned.
func (s *site) waitPlanned() {
	s.t.Helper()
	s.wait("a pass", func() bool {
		var woken int
		err := s.db.QueryRow(s.t.Context(), `SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`).Scan(&woken)
		return err == nil && woken == 0
	})
}

func TestPauseResumeSuppress(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('p', 'a', 'pending', 'P@Example.net', 'T'), ('q', 'a', 'pending', 'q@example.net', 'T')`)
	s.want("is paused until resumed", "pause", "p", "--why", "on holiday")
	s.want("is suppressed", "suppress", "q@example.net", "--why", "asked by phone")
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) SELECT id, 'https://example.com/x', now() - interval '3 days 1 minute' FROM nudged.requests`)
	s.start().ready()
	s.waitRows("skipped/paused", 1)
	s.waitRows("skipped/suppressed", 1)
	s.want("nothing is sent now: the request is paused until resumed", "explain", "p")
	s.want("is resumed", "resume", "p")
	s.want("may be mailed again", "unsuppress", "q@example.net")
	s.want("was not suppressed", "unsuppress", "q@example.net")
	s.waitPlanned()
	if n := len(s.smtp.Accepted()); n != 0 {
		t.Errorf("a slot that fell due in the pause was sent afterwards: %d messages", n)
	}
	s.refuse(1, "request nobody: there is none", "pause", "nobody", "--why", "x")
	s.refuse(2, "--why", "pause", "p")
	s.refuse(2, `got "soon"`, "pause", "p", "--until", "soon", "--why", "x")
	s.refuse(2, `got "Ann <a@b.c>"`, "suppress", "Ann <a@b.c>", "--why", "x")
	var events int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.events WHERE actor LIKE '%@%' AND why <> ''`).Scan(&events); err != nil || events != 4 {
		t.Errorf("got %d events (%v), want 4", events, err)
	}
}

// What becomes of a database, and the words that tell it.
func foreign() map[string]struct{ change, says string } {
	return map[string]struct{ change, says string }{
		"other environment": {`UPDATE nudged.installation SET environment = 'production'`,
			`this database is adopted for the environment "production" and the configuration says "test": nothing is sent; the database url or the environment of the configuration is wrong, ` +
				"and `nudged adopt` is right only where the database is meant to change its environment"},
		"restored copy": {`UPDATE nudged.installation SET identity = '1'`,
			"this database is a copy of the one adopted for \"test\", and its ledger may lack mails that went out: nothing is sent before `nudged adopt`"},
	}
}

// refuses waits until the daemon says why this is not its database: in its log, to a probe and on its page.
func (p *process) refuses(says string) {
	p.s.t.Helper()
	logged := strings.ReplaceAll(says, `"`, `\"`)
	p.s.wait("the refusal in the log", func() bool { return strings.Contains(p.log.String(), logged) })
	// What plans anew may have met the refusal, and told it, before a pass did.
	p.s.wait("the refusal to a probe", func() bool {
		status, body := p.get("/-/ready")
		return status == http.StatusServiceUnavailable && strings.Contains(body, ": "+says)
	})
	if _, page := p.get("/"); !strings.Contains(html.UnescapeString(page), ": "+says) {
		p.s.t.Errorf("the page does not say %q", says)
	}
}

// A database of another environment, or a restored copy, sends nothing until a person adopts it.
func TestForeignDatabaseSendsNothing(t *testing.T) {
	for name, tt := range foreign() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, smtptest.Config{})
			s.start().ready().stop()
			s.exec(tt.change)
			s.due(1)
			p := s.start()
			p.refuses(tt.says)
			if rows := s.rows(); len(rows) != 0 {
				t.Errorf("the ledger was written: %v", rows)
			}
			s.want("is adopted", "adopt", "--why", "staging copy of last night")
			p.ready()
			s.waitRows("skipped/before_adoption", 1)
			if n := len(s.smtp.Accepted()); n != 0 {
				t.Errorf("a slot due before the adoption was sent")
			}
		})
	}
}

// A copy restored under a running daemon stops it from sending, too, and so does an adoption for another
// environment.
func TestDatabaseReplacedUnderTheDaemon(t *testing.T) {
	for name, tt := range foreign() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, smtptest.Config{})
			p := s.start().ready()
			s.exec(tt.change)
			s.due(1)
			p.refuses(tt.says)
			if rows := s.rows(); len(rows) != 0 {
				t.Errorf("the ledger was written: %v", rows)
			}
			s.want("is adopted", "adopt", "--why", "restored after a crash")
			p.ready()
			s.waitRows("skipped/before_adoption", 1)
		})
	}
}

func TestReloadPutsACadenceInPlace(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.configure(`cadences: {default: {after: [3d, 7d]}}`)
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('r', 'a', 'pending', 'r@example.net', 'T')`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('r', 'https://example.com/x', now() - interval '1 day 1 minute')`)
	p := s.start().ready()
	s.waitPlanned()

	// A bad file keeps the old configuration and says why.
	s.configure(`cadences: {default: {after: [7d, 3d]}}`)
	response, err := http.Post(p.web+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	_, metrics := p.get("/metrics")
	if response.StatusCode != http.StatusInternalServerError || !strings.Contains(metrics, "nudged_config_last_reload_successful 0\n") {
		t.Errorf("a bad file: status %d, metrics %t", response.StatusCode, strings.Contains(metrics, "nudged_config_last_reload_successful 0\n"))
	}

	// What would change is shown before it is put in place.
	good := filepath.Join(s.dir, "other.yml")
	s.configure(`cadences: {default: {after: [1d, 7d]}}`)
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(good, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.configure(`cadences: {default: {after: [3d, 7d]}}`)
	s.want("1 of 1 open requests would have another next slot", "plan", "--diff", good)
	s.want("moved", "plan", "--diff", good)
	s.want("0 of 1 open requests", "plan", "--diff", s.config)

	if err := os.Rename(good, s.config); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.waitRows("sent/", 1) // slot 1d is due by the new cadence
	_, metrics = p.get("/metrics")
	if !strings.Contains(metrics, "nudged_config_last_reload_successful 1\n") {
		t.Error("the reload metric does not tell the success")
	}
	s.want("1d", "plan", "r")
}

func TestConfigurationChangedBetweenRuns(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.configure(`cadences: {default: {after: [30d]}}`)
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('r', 'a', 'pending', 'r@example.net', 'T')`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('r', 'https://example.com/x', now() - interval '1 day 1 minute')`)
	p := s.start().ready()
	s.waitPlanned()
	p.stop()
	s.configure(`cadences: {default: {after: [1d, 30d]}}`)
	s.start().ready()
	s.waitRows("sent/", 1)
}

// Requests that had nothing to wake for, because their cadence was over or not in the file, go on by a
// file that has more.
func TestReloadWakesWhatSlept(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.configure(`cadences: {default: {after: [1h]}}`)
	s.due(2)
	s.exec(`UPDATE nudged.requests SET cadence = 'special' WHERE id = 'r-1'`)
	p := s.start().ready()
	s.waitPlanned()
	s.configure(`cadences: {default: {after: [1h, 3d]}, special: {after: [3d]}}`)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.waitRows("sent/", 2)
}

func TestShadowSendsAndWritesNothing(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(2)
	p := s.start("--shadow")
	s.wait("both slots to be told", func() bool { return strings.Count(p.log.String(), `msg="would send"`) == 2 })
	p.stop()
	if n := s.smtp.Connections(); n != 0 {
		t.Errorf("the shadow connected to the mail server %d times", n)
	}
	var woken, installed int
	err := s.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'),
		(SELECT count(*) FROM nudged.installation)`).Scan(&woken, &installed)
	if rows := s.rows(); err != nil || len(rows) != 0 || woken != 2 || installed != 0 {
		t.Errorf("the shadow wrote: ledger %v, %d waiting, %d installations (%v)", rows, woken, installed, err)
	}
	s.refuse(2, "do not go together", "run", "--shadow", "--dev")
}

// The shadow says where a daemon would send nothing, whatever it tells.
func TestShadowWarnsOfAForeignDatabase(t *testing.T) {
	for name, tt := range foreign() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, smtptest.Config{})
			s.start().ready().stop()
			s.due(1)
			p := s.start("--shadow")
			s.wait("the slot to be told", func() bool { return strings.Contains(p.log.String(), `msg="would send"`) })
			const warning = `level=WARN msg="a daemon would send nothing here; `
			if strings.Contains(p.log.String(), warning) {
				t.Error("it warns of a database that is in service")
			}
			s.exec(tt.change)
			s.wait("the warning", func() bool { return strings.Contains(p.log.String(), warning) })
			s.want("is adopted", "adopt", "--why", "moved")
			p.stop()
			if !strings.Contains(p.log.String(), strings.ReplaceAll(tt.says, `"`, `\"`)) || strings.Count(p.log.String(), warning) != 1 {
				t.Errorf("it does not say once %q", tt.says)
			}
		})
	}
}

func TestSchemaThatDoesNotFitIsRefused(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`INSERT INTO nudged.schema_migrations (version_id, is_applied) VALUES (99999, true)`)
	s.refuseRun("newer than the")
	for _, args := range [][]string{{"migrate"}, {"migrate", "--status"}} {
		if _, stderr, status := s.command(args...); status != 1 || !strings.Contains(stderr, "newer than the") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	s.exec(`DELETE FROM nudged.schema_migrations WHERE version_id = 99999`)
	s.want("[]\n", "migrate", "--output", "json")
	s.exec(`DELETE FROM nudged.schema_migrations WHERE version_id >= 3`)
	s.refuseRun("run `nudged migrate`")
}

// refuseRun starts a daemon that must end by itself with one line that says why.
func (s *site) refuseRun(line string, args ...string) {
	s.t.Helper()
	p := s.start(args...)
	select {
	case <-p.done:
	case <-time.After(patience):
		s.t.Fatal("the daemon runs")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || strings.Count(p.log.String(), line) != 1 {
		s.t.Errorf("status %d, log %s; want %q", code, p.log, line)
	}
}

// Five different mistakes give five lines and status 2.
func TestFiveMistakesFiveLines(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	text := "poll: {every: 30}\nsmtp: {host: localhost, port: 70000, tls: maybe}\ndefaults: {time_zone: EST}\ncadences: {default: {after: [7d, 3d]}}\nmail: {from: a@example.com}\n"
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := s.command("check-config")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if status != 2 || len(lines) != 5 {
		t.Errorf("status %d and %d lines, want 2 and 5:\n%s", status, len(lines), stderr)
	}
	for i, key := range []string{"poll.every", "smtp.port", "smtp.tls", "defaults.time_zone", "cadences.default.after[1]"} {
		if i < len(lines) && (!strings.Contains(lines[i], key) || !strings.HasPrefix(lines[i], s.config+":")) {
			t.Errorf("line %d is %q, want %s:LINE: %s", i+1, lines[i], s.config, key)
		}
	}
}

// What an application or a person wrote stays one piece of a line: no control character of it reaches
// the terminal, and none forges a line.
func TestControlCharactersStayInTheirLine(t *testing.T) {
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Hangup().Accepting())})
	const id, forged = "r\n\x1b[31m-1", "went out on time"
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ($1, 'a', 'pending', 'ann@example.com', 'Papers')`, id)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ($1, 'https://example.com/u', now() - interval '3 days 1 minute')`, id)
	p := s.start().ready()
	s.waitRows("unknown/reply_lost", 1)
	p.stop()
	check := func(args ...string) {
		out, stderr, _ := s.command(args...)
		if strings.ContainsRune(out+stderr, 0x1b) || strings.Contains(out, "\n"+forged) || strings.Contains(out, "\nSlot 99d") {
			t.Errorf("%s prints %q", args[0], out+stderr)
		}
	}
	check("unknown")
	check("resolve", id, "3d", "--not-sent", "--why", "a\n\x1b[31m"+forged)
	check("pause", id, "--why", "b\n"+forged)
	s.exec(`UPDATE nudged.requests SET status = E'clo\nSlot 99d \x1b[31m', cadence = E'x\n\x1b[31m', time_zone = E'y\n\x1b[31m', locale = E'z\n\x1b[31m'`)
	check("explain", id)
	check("explain", "--recipient", "ann@example.com")
	check("suppress", "ann@example.com", "--why", "c\n\x1b[31m")
}
