package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"nudged/internal/smtptest"
)

// reload makes the daemon read its configuration again and returns the answer.
func (p *process) reload() string {
	p.s.t.Helper()
	response, err := http.Post(p.web+"/-/reload", "", nil)
	if err != nil {
		p.s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		p.s.t.Fatal(err)
	}
	return string(answer)
}

// Mails are written in the default language that the file says since the last reload, if the daemon has
// templates for it.
func TestReloadOfTheDefaultLocale(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	templates := filepath.Join(s.dir, "templates")
	if err := os.Mkdir(templates, 0o700); err != nil {
		t.Fatal(err)
	}
	s.writeConfig(strings.Replace(s.readConfig(), "mail: {", "mail: {templates: templates, ", 1))
	config := s.readConfig()
	p := s.start().ready()
	s.due(1)
	s.waitRows("sent/", 1)
	s.writeConfig(config + "defaults: {locale: fr-CA}\n")
	if answer := p.reload(); answer != "ok\n" {
		t.Fatalf("the reload answers %s", answer)
	}
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('second', 'a', 'pending', 's@example.net', 'T')`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('second', 'https://example.com/x', now() - interval '3 days 1 minute')`)
	s.waitRows("sent/", 2)
	for i, m := range s.smtp.Accepted() {
		if want := []string{`lang=3D"en"`, `lang=3D"fr"`}[i]; !strings.Contains(string(m.Data), want) {
			t.Errorf("mail %d is not in the default language:\n%s", i, m.Data)
		}
	}
	s.want("fr, for requests without a locale", "explain", "second")
	if _, page := p.get("/requests/second"); !strings.Contains(page, "fr, for requests without a locale") {
		t.Errorf("the page of the request does not say fr:\n%s", page)
	}

	s.writeConfig(config + "defaults: {locale: ja}\n")
	if answer, line := p.reload(), s.config+":6: defaults.locale: there are no templates for it, "; !strings.HasPrefix(answer, line) {
		t.Errorf("the reload answers %s", answer)
	}
	if strings.Contains(p.log.String(), "level=WARN") {
		t.Error("a warning is logged of what is in force")
	}
	ownLanguage(t, filepath.Join(templates, "ja"))
	if answer := p.reload(); answer != "ok\n" {
		t.Errorf("templates that the daemon does not have: the reload answers %s", answer)
	}
	s.wait("the warning", func() bool {
		return strings.Contains(p.log.String(), `level=WARN msg="the default locale takes effect at the next start`)
	})
	p.stop()
}

// What a reload leaves alone is told by its keys, a secret whose file has another text too, and the status
// page shows what is in force.
func TestReloadTellsWhatItLeavesAlone(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	password := filepath.Join(s.dir, "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hunter2")
	s.writeConfig(strings.Replace(s.readConfig(), "tls: none", "tls: none, username: nudged, password_file: password", 1))
	p := s.start()
	s.wait("the web port", func() bool { status, _ := p.get("/-/healthy"); return status == http.StatusOK })
	write("hunter3")
	s.writeConfig(strings.NewReplacer("environment: test", "environment: other", "lease: 2s", "lease: 3s").Replace(s.readConfig()) + "retention: 300d\n")
	if answer := p.reload(); answer != "ok\n" {
		t.Fatalf("the reload answers %s", answer)
	}
	const told = `level=WARN msg="these keys have changed and take effect at the next start" keys="[environment poll.lease smtp.password_file]"` + "\n"
	s.wait("the keys to be told", func() bool { return strings.Contains(p.log.String(), told) })
	if strings.Contains(p.log.String(), "hunter") {
		t.Error("the log tells a secret")
	}
	if _, page := p.get("/"); !strings.Contains(page, "<strong>test</strong>") {
		t.Errorf("the status page shows another environment than that in force:\n%s", page)
	}
	p.stop()
}

// The shadow reads its file again too, and lives on.
func TestReloadOfTheShadow(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	s.configure(`cadences: {default: {after: [9d]}}`)
	p := s.start("--shadow")
	s.wait("the shadow", func() bool { return strings.Contains(p.log.String(), "nudged shadows") })
	hangUp := func() {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	s.writeConfig("limits: {max_lateness: soon}\n")
	hangUp()
	s.wait("the mistake", func() bool { return strings.Contains(p.log.String(), "the configuration is not reloaded") })
	s.configure(`cadences: {default: {after: [3d]}}`)
	hangUp()
	s.wait("the slot of the new cadence", func() bool { return strings.Count(p.log.String(), `msg="would send"`) == 1 })
	p.stop()
}
