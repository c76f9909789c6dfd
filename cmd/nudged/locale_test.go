package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A default locale that nothing can be written in is told at its key by every command that writes mails or
// tells of them, beside what is wrong with its templates.
func TestDefaultLocaleWithoutTemplates(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	good := s.readConfig()
	s.writeConfig(good + "defaults:\n  locale: ja\n")
	line := s.config + `:7: defaults.locale: there are no templates for it, want one of de, en, es, fr, it, nl, pt, or a folder for it in mail.templates (got "ja")`
	for _, command := range []string{"check-config", "run --web.listen-address=127.0.0.1:0", "render r-1", "send-test a@example.net", "explain r-1"} {
		s.refused(2, line, strings.Fields(command)...)
	}
	s.want("request r-1 is paused", "pause", "r-1", "--why=x")

	folder := filepath.Join(s.dir, "templates")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	ownLanguage(t, filepath.Join(folder, "ja"))
	s.writeConfig(strings.Replace(s.readConfig(), "mail: {", "mail: {templates: templates, ", 1))
	s.want(": ok (", "check-config")
	if err := os.WriteFile(filepath.Join(folder, "ja/body.txt"), []byte("{{.URL"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.refused(2, line+"\n"+folder+"/ja/body.txt:1: mail.templates: unclosed action", "check-config")
}

// ownLanguage writes a folder of templates that is complete.
func ownLanguage(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"subject.txt", "body.txt", "body.html"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("{{.URL}}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
