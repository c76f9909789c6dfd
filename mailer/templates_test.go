package mailer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"nudged/mailer"
	"nudged/scheduler"
)

// folder is a set of templates that tell their locale.
func folder(locales ...string) fstest.MapFS {
	files := make(fstest.MapFS)
	for _, locale := range locales {
		files[locale+"/subject.txt"] = &fstest.MapFile{Data: []byte("subject " + locale)}
		files[locale+"/body.txt"] = &fstest.MapFile{Data: []byte("text " + locale + " {{.Locale}} {{.URL}}")}
		files[locale+"/body.html"] = &fstest.MapFile{Data: []byte("<p>html " + locale + "</p>")}
	}
	return files
}

// TestT01 is the row T01: a field that does not exist is an error, and nothing is sent.
func TestT01(t *testing.T) {
	for _, name := range []string{"en/subject.txt", "en/body.txt", "en/body.html"} {
		for _, text := range []string{"{{.Link}}", "{{index .Missing 3}}", "{{.Title.Nope}}", "{{template \"other\"}}", "{{slice .Title 9}}"} {
			files := folder("en")
			files[name] = &fstest.MapFile{Data: []byte(text)}
			m := composer(t, func(cfg *mailer.Config) { cfg.Templates = files })
			task := task()
			task.Request.Title = "short"
			if err := refuses(t, m, task, scheduler.ReasonTemplateError); err != nil && !strings.Contains(err.Error(), strings.TrimPrefix(name, "en/")) {
				t.Errorf("the error does not name the file: %v", err)
			}
		}
	}
	empty := folder("en")
	empty["en/subject.txt"] = &fstest.MapFile{Data: []byte(" \n")}
	refuses(t, composer(t, func(cfg *mailer.Config) { cfg.Templates = empty }), task(), scheduler.ReasonTemplateError)
	noURL := task()
	noURL.Link.URL = ""
	refuses(t, composer(t), noURL, scheduler.ReasonTemplateError)
}

// TestT02 is the row T02: the subject and the text are not HTML, and the HTML is.
func TestT02(t *testing.T) {
	const name = "L'Or\u00e9al & O'Brien <S\u00f6hne>"
	m := composer(t, func(cfg *mailer.Config) {
		cfg.Templates = fstest.MapFS{
			"en/subject.txt": {Data: []byte("{{.SenderName}}\n")},
			"en/body.txt":    {Data: []byte("{{.SenderName}}")},
			"en/body.html":   {Data: []byte("<p>{{.SenderName}}</p>")},
		}
	})
	task := task()
	task.Request.SenderName = name
	_, got := compose(t, m, task)
	if got.subject(t) != name || got.text != name {
		t.Errorf("got subject %q and text %q, want %q", got.subject(t), got.text, name)
	}
	if want := "<p>L&#39;Or\u00e9al &amp; O&#39;Brien &lt;S\u00f6hne&gt;</p>"; got.html != want {
		t.Errorf("got HTML %q, want %q", got.html, want)
	}
}

func TestLocales(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) { cfg.Templates, cfg.Locale = folder("en", "fr", "pt-br", "pt"), "fr" })
	for locale, want := range map[string]string{
		"": "fr", "en": "en", "en-GB": "en", "EN_us": "en", "pt-BR": "pt-br", "pt-PT": "pt", "pt-BR-x-y": "pt-br", "de": "fr", "-": "fr",
	} {
		task := task()
		task.Request.Locale = locale
		_, got := compose(t, m, task)
		if got.subject(t) != "subject "+want || got.text != "text "+want+" "+want+" "+task.Link.URL {
			t.Errorf("%q: got %q, want %s", locale, got.text, want)
		}
	}
}

// TestTemplateFolder: links are followed, hidden entries and plain files are not looked at.
func TestTemplateFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "..data"), folder("en")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "en"), filepath.Join(dir, "en")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, got := compose(t, composer(t, func(cfg *mailer.Config) { cfg.Templates = os.DirFS(dir) }), task())
	if got.subject(t) != "subject en" {
		t.Errorf("got %q", got.subject(t))
	}
}

func TestPanicInTemplate(t *testing.T) {
	// Reflection calls the method, which panics.
	files := folder("en")
	files["en/body.txt"] = &fstest.MapFile{Data: []byte(`{{.ExpiresAt.In nil}}`)}
	refuses(t, composer(t, func(cfg *mailer.Config) { cfg.Templates = files }), task(), scheduler.ReasonTemplateError)
}
