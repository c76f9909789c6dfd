package main_test

import (
	"html"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// hostile is an id, and whatever else an application writes, that tries to get out of its place.
const hostile = `it's"><script>document.title='pwned'</script>$(touch /tmp/x) {{.}}`

// requests inserts what a status page can show: r-1 (due now), known (a history), hostile ones and
// mistakes. It returns when known's link was created.
func (s *site) requests() time.Time {
	s.t.Helper()
	anchor := time.Now().UTC().Truncate(time.Hour).Add(-16*24*time.Hour + 123456*time.Microsecond)
	for _, r := range []struct{ id, zone, cadence, text string }{
		{"known", "Europe/Paris", "", "Year-end papers"}, {hostile, "UTC", "", hostile},
		{"bad-cadence", "", "wekly", "T"}, {"bad-zone", "Europe/Pariss", "", "T"},
	} {
		s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, recipient_name, title, message, time_zone, cadence, sender_name, reply_to)
			VALUES ($1, 'acme', 'pending', 'nora@client.example', $4, $4, $4 || ' ask per@secret.example', nullif($2, ''), nullif($3, ''), $4, 'grace@office.example')`,
			r.id, r.zone, r.cadence, r.text)
		s.exec(`INSERT INTO nudged.links (request_id, url, created_at, expires_at) VALUES ($1, 'https://up.example/s3cret?a=1&b=2', $2, $3)`,
			r.id, anchor, anchor.Add(90*24*time.Hour))
		s.exec(`INSERT INTO nudged.documents (request_id, position, title, state, rejection_reason) VALUES ($1, 1, $2, 'rejected', $2)`, r.id, r.text)
	}
	for _, id := range []string{"known", hostile} {
		for _, r := range []struct {
			slot, state, reason string
			days                int
			code                int
			reply               string
		}{
			{"3d", "sent", "", 3, 250, "2.0.0 Ok"}, {"7d", "skipped", "paused", 7, 0, ""},
			{"14d", "unknown", "reply_lost", 14, 0, "no answer within 10m"},
		} {
			due := anchor.Add(time.Duration(r.days) * 24 * time.Hour)
			s.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, claimed_by, recipient, message_id,
					smtp_code, smtp_reply, handed_off_at, finished_at)
				VALUES ($1, $2, $3, $4, $5, nullif($6, ''), 1, 'host-1/42', 'nora@client.example', $3::text || '@nudged.example',
					nullif($9, 0), nullif($10, ''), $7, $8)`,
				id, anchor, r.slot, due, r.state, r.reason, due.Add(time.Second), due.Add(2*time.Second), r.code, r.reply)
		}
		s.exec(`INSERT INTO nudged.events (actor, action, request_id, why) VALUES ('ann@office-1', 'pause', $1, $2 || ' told per@secret.example')`, id, id)
	}
	s.due(1)
	return anchor
}

// page is the text of a page that must have a status.
func (p *process) page(path string, status int) string {
	p.s.t.Helper()
	got, body := p.get(path)
	if got != status {
		p.s.t.Fatalf("%s: status %d, want %d\n%s", path, got, status, body)
	}
	return body
}

func TestStatusPage(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.requests()
	p := s.start().ready()
	s.waitRows("sent/", 3)
	s.waitPlanned()
	s.wait("open requests to be counted", func() bool { _, body := p.get("/"); return strings.Contains(body, "<strong>5</strong>") })
	overview := p.page("/", http.StatusOK)
	for _, want := range []string{
		"The fate of 2 reminders is unknown.", "requests/r-1", ">sent</span>", "the configuration has no cadence &#34;wekly&#34;",
		"there is no time zone &#34;Europe/Pariss&#34;", "<strong>test</strong>", "reminders in the next 7 days",
		"the mail left and the server&#39;s answer never came", "<strong>up</strong>",
	} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview lacks %s", want)
		}
	}
	known := p.page("/requests?id=+known+", http.StatusOK)
	answer, _, _ := s.command("explain", "known")
	answer, _, _ = strings.Cut(answer, "\n")
	for _, want := range []string{
		html.EscapeString(answer), "n***@client.example", "g***@office.example", "p***@secret.example", "ann@office-1", "Year-end papers",
		"<q>250 2.0.0 Ok</q>", "the request was paused when it could have gone out", "https://hidden.invalid/upload-link",
	} {
		if !strings.Contains(strings.ReplaceAll(known, "&#43;", "+"), want) {
			t.Errorf("the page of the request lacks %s", want)
		}
	}
	evil := p.page("/requests/"+url.PathEscape(hostile), http.StatusOK)
	gone := p.page("/requests/none", http.StatusNotFound)
	for name, body := range map[string]string{"overview": overview, "request": known, "hostile": evil, "none": gone, "nothing": p.page("/nothing", http.StatusNotFound)} {
		for _, secret := range []string{"nora@", "grace@", "per@", "s3cret", "r1@example.net", "example.com/u/1", "<script"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s tells %s", name, secret)
			}
		}
	}
	p.stop()

	shown := s.start("--web.show-addresses").ready().page("/requests/known", http.StatusOK)
	for _, format := range []string{"text", "html"} { // the mail is the one that render shows
		mail, _, _ := s.command("render", "known", "--format", format)
		if page := html.UnescapeString(strings.ReplaceAll(shown, "\r", "")); mail == "" || !strings.Contains(page, strings.TrimSpace(mail)) {
			t.Errorf("the page does not show\n%s", mail)
		}
	}
	for _, want := range []string{"nora@client.example", "grace@office.example", "per@secret.example", "https://up.example/s3cret?a=1&amp;b=2"} {
		if !strings.Contains(shown, want) {
			t.Errorf("with --web.show-addresses the page lacks %s", want)
		}
	}
}

// The commands on the page do what they say, whatever the id of the request.
func TestCommandsOfTheStatusPage(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.requests()
	s.configure("limits: {max_lateness: 1h}\n") // what is settled as not sent does not go out
	s.writeConfig(strings.Replace(s.readConfig(), "limits: {retry_backoff: {initial: 1s, max: 2s}}\n", "", 1))
	p := s.start("--config.file=" + s.config).ready()
	bin := t.TempDir()
	if err := os.Symlink(os.Getenv("NUDGED_TEST_BINARY"), filepath.Join(bin, "nudged")); err != nil {
		t.Fatal(err)
	}
	run := func(line string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NUDGED_DATABASE_URL="+s.url)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	code := regexp.MustCompile(`(?s)<pre[^>]*><code>(.*?)</code></pre>`)
	known := code.FindAllStringSubmatch(p.page("/requests/known", http.StatusOK), -1)
	evil := code.FindAllStringSubmatch(p.page("/requests/"+url.PathEscape(hostile), http.StatusOK), -1)
	if len(known) != 2 || len(evil) != 2 {
		t.Fatalf("%d and %d commands, want 2 and 2", len(known), len(evil))
	}
	run(html.UnescapeString(known[0][1]))
	s.waitRows("sent/", 4) // r-1, two of the history, and this one
	run(html.UnescapeString(evil[1][1]))
	s.waitRows("unknown/reply_lost", 0)
	if body := p.page("/", http.StatusOK); !strings.Contains(body, "every outcome is known") {
		t.Error("the overview still has unknown outcomes")
	}
}

// The database is down, or takes connections and says nothing: pages tell so within two seconds.
func TestStatusPageWithoutDatabase(t *testing.T) {
	check := func(t *testing.T, p *process) {
		t.Helper()
		for _, path := range []string{"/", "/requests/r-1"} {
			begun := time.Now()
			if body := p.page(path, http.StatusServiceUnavailable); !strings.Contains(body, "The database does not answer") {
				t.Errorf("%s says:\n%s", path, body)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("%s took %s", path, took)
			}
			for _, other := range []string{"/metrics", "/-/healthy"} {
				p.page(other, http.StatusOK)
			}
		}
	}
	t.Run("stopped", func(t *testing.T) {
		s, stop, restart := newSiteOnOwnServer(t, smtptest.Config{})
		s.configure("")
		p := s.start().ready()
		p.page("/", http.StatusOK)
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, p)
		if err := restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wait("the page to be back", func() bool { status, _ := p.get("/"); return status == http.StatusOK })
	})
	t.Run("silent", func(t *testing.T) {
		s := newSite(t, smtptest.Config{})
		silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts, and nobody answers
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		s.url = "postgres://nobody@" + silent.Addr().String() + "/none"
		p := s.start()
		s.wait("the web port", func() bool { status, _ := p.get("/metrics"); return status == http.StatusOK })
		for _, path := range []string{"/", "/requests/r-1"} {
			begun := time.Now()
			p.page(path, http.StatusServiceUnavailable)
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("%s took %s", path, took)
			}
		}
		p.page("/metrics", http.StatusOK)
	})
}

// run --dev prints where the page is, and the mails of its inbox can be read there.
func TestDevShowsItsInbox(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	dir, err := os.MkdirTemp("", "nudged-dev-") // short, and for another account to reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	s.url, s.config = "", ""
	p := s.start("--dev", "--dev.dir="+dir).ready()
	if !strings.Contains(p.log.String(), "status     http://127.0.0.1:") {
		t.Errorf("the address of the page is not told:\n%s", p.log)
	}
	var mails []string
	s.wait("three mails in the inbox", func() bool {
		_, body := p.get("/inbox")
		mails = regexp.MustCompile(`href="(inbox/[^"]+)"`).FindAllString(body, -1)
		return len(mails) >= 3
	})
	path := strings.TrimSuffix(strings.TrimPrefix(mails[len(mails)-1], `href="`), `"`)
	body := p.page("/"+path, http.StatusOK)
	for _, want := range []string{"@client.example", "https://uploads.ledger.example/sample-", "<iframe"} {
		if !strings.Contains(body, want) {
			t.Errorf("the mail lacks %s:\n%s", want, body)
		}
	}
	p.page("/requests/sample-due-1", http.StatusOK)
	p.stop()
}
