package mailer_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/smtptest"
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

// with is a composer with some files of its own.
func with(t *testing.T, files fstest.MapFS) *mailer.Mailer {
	t.Helper()
	return composer(t, func(cfg *mailer.Config) { cfg.Templates = files })
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// problems are what the check says of some files.
func problems(t *testing.T, m *mailer.Mailer) string {
	t.Helper()
	err := m.CheckTemplates()
	if err == nil {
		return ""
	}
	list, ok := errors.AsType[mailer.TemplateProblems](err)
	if !ok {
		t.Fatalf("got %T", err)
	}
	return list.Error()
}

// TestT01 is the row T01: a field that does not exist is an error, which names file and line, and
// nothing is sent.
func TestT01(t *testing.T) {
	for _, name := range []string{"en/subject.txt", "en/body.txt", "en/body.html"} {
		for _, text := range []string{"{{.Link}}", "{{index .Missing 3}}", "{{.Title.Nope}}", "{{slice .Title 9}}"} {
			files := folder("en")
			files[name] = file("first line\n" + text)
			m := with(t, files)
			task := task()
			task.Request.Title = "short"
			if err := refuses(t, m, task, scheduler.ReasonTemplateError); err != nil && !strings.Contains(err.Error(), name+":2:") {
				t.Errorf("the error does not name file and line: %v", err)
			}
			if got := problems(t, m); !strings.HasPrefix(got, name+":2: ") {
				t.Errorf("the check says %q", got)
			}
		}
	}
	empty := folder("en")
	empty["en/subject.txt"] = file(" \n")
	refuses(t, with(t, empty), task(), scheduler.ReasonTemplateError)
	noURL := task()
	noURL.Link.URL = ""
	refuses(t, composer(t), noURL, scheduler.ReasonTemplateError)
}

// TestT02 is the row T02: the subject and the text are not HTML, and the HTML is.
func TestT02(t *testing.T) {
	const name = "L'Or\u00e9al & O'Brien <S\u00f6hne>"
	task := task()
	task.Request.SenderName, task.Request.Title, task.Request.RecipientName = name, name, name
	task.Documents = []scheduler.Document{{Title: name, Description: name, Required: true, State: scheduler.DocumentMissing}}
	_, got := compose(t, with(t, fstest.MapFS{
		"en/subject.txt": file("{{.SenderName}}\n"),
		"en/body.txt":    file("{{.SenderName}}"),
		"en/body.html":   file("<p>{{.SenderName}}</p>"),
	}), task)
	if got.subject(t) != name || got.text != name {
		t.Errorf("got subject %q and text %q, want %q", got.subject(t), got.text, name)
	}
	if want := "<p>L&#39;Or\u00e9al &amp; O&#39;Brien &lt;S\u00f6hne&gt;</p>"; got.html != want {
		t.Errorf("got HTML %q, want %q", got.html, want)
	}
	for _, r := range readers() {
		if task.Request.Locale = r.locale; strings.HasPrefix(r.locale, "ar") {
			continue // not built in
		}
		_, got := compose(t, composer(t), task)
		if n := strings.Count(got.subject(t), name); n != 2 || strings.Count(got.text, name) < 4 {
			t.Errorf("%s: got subject %q and text\n%s", r.locale, got.subject(t), got.text)
		}
		if page := checkHTML(t, got.html); strings.Count(page.text, name) < 4 || strings.Contains(got.html, name) {
			t.Errorf("%s: the HTML does not escape %q:\n%s", r.locale, name, got.html)
		}
	}
}

func TestLocales(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) {
		cfg.Templates, cfg.Locale = folder("en", "fr", "pt-br", "pt", "sv", "zh-Hant"), "fr"
	})
	for locale, want := range map[string]string{
		"": "fr", "en": "en", "en-GB": "en", "EN_us": "en", "pt-BR": "pt-br", "pt-PT": "pt", "pt-BR-x-y": "pt-br", "da": "fr", "-": "fr",
		"sv-FI": "sv", "zh-TW": "zh-hant", "und": "fr", "x\r\nBcc: y": "fr", " en ": "en", "fr-CA": "fr", "oc": "fr",
	} {
		task := task()
		task.Request.Locale = locale
		_, got := compose(t, m, task)
		if !strings.EqualFold(got.subject(t), "subject "+want) || !strings.HasSuffix(got.text, " "+want+" "+task.Link.URL) {
			t.Errorf("%q: got %q, want %s", locale, got.text, want)
		}
	}
}

// TestOneLanguage: subject, text, HTML and dates are in the recipient's language, or all of them in
// the default one, whatever the application's own language is.
func TestOneLanguage(t *testing.T) {
	signs := map[string][]string{ // words of each part: subject, text and HTML; button; month
		"en": {"needs documents", "Hello", "Upload documents", "May"},
		"fr": {"vous demande", "Bonjour", "Déposer les documents", "mai"},
		"de": {"bittet Sie", "Guten Tag", "Unterlagen hochladen", "Mai"},
		"es": {"le solicita", "Hola", "Subir los documentos", "mayo"},
		"it": {"Le chiede", "Gentile", "Caricare i documenti", "maggio"},
		"nl": {"vraagt u", "Beste", "Documenten uploaden", "mei"},
		"pt": {"precisa de documentos", "Olá", "Enviar os documentos", "maio"},
	}
	for locale, want := range map[string]string{
		"fr": "fr", "fr-BE": "fr", "de-AT": "de", "gsw": "de", "es-419": "es", "it-CH": "it", "nl": "nl", "pt-PT": "pt", "en-AU": "en",
		"": "nl", "sv": "nl", "ja-JP": "nl", "nonsense!": "nl",
	} {
		m := composer(t, func(cfg *mailer.Config) { cfg.Locale = "nl-NL" })
		task := task()
		task.Request.Locale = locale
		_, got := compose(t, m, task)
		for language, words := range signs {
			is := []bool{
				strings.Contains(got.subject(t), words[0]), strings.HasPrefix(got.text, words[1]),
				strings.Contains(got.html, ">"+words[2]+"</a>"), strings.Contains(got.html, `lang="`+language+`"`),
				regexp.MustCompile(`\b` + words[3] + `\b`).MatchString(got.text), regexp.MustCompile(`\b` + words[3] + `\b`).MatchString(got.html),
			}
			if all, none := !slices.Contains(is, false), !slices.Contains(is, true); language == want && !all || language != want && !none {
				t.Errorf("%q: parts are in %s: %v, want %s", locale, language, is, want)
			}
		}
	}
}

// TestOwnPieces: a file of one's own takes the place of the built-in one, and nothing else.
func TestOwnPieces(t *testing.T) {
	rows := map[string]struct {
		files fstest.MapFS
		wants map[string][]string // by locale: parts of subject, text and HTML together
		lacks map[string][]string
	}{
		"a phrase": {
			fstest.MapFS{"fr/phrases.txt": file(`{{define "button"}}Envoyer{{end}}`)},
			map[string][]string{"fr": {">Envoyer</a>", "Bonjour"}, "de": {"Unterlagen hochladen"}},
			map[string][]string{"fr": {"Déposer les documents</a>"}},
		},
		"a phrase that is empty": {
			fstest.MapFS{"en/phrases.txt": file(`{{define "footer"}}{{""}}{{end}}`)},
			map[string][]string{"en": {"Hello"}},
			map[string][]string{"en": {"sent automatically"}},
		},
		"the subject of one language": {
			fstest.MapFS{"fr/subject.txt": file("{{template \"button\" .}}: {{.Title}}, {{template \"date\" .Deadline}}")},
			map[string][]string{"fr": {"Déposer les documents: Tax return 2025, mercredi 20 mai 2026", "Bonjour"}, "en": {"Marta Ruiz needs"}},
			nil,
		},
		"the HTML of all languages": {
			fstest.MapFS{"body.html": file("<p lang={{.Locale}}>{{template \"greeting\" .}}</p>"), "fr/body.html": file("<b>{{template \"greeting\" .}}</b>")},
			map[string][]string{"de": {"<p lang=de>Guten Tag Ana,</p>"}, "fr": {"<b>Bonjour Ana,</b>"}},
			map[string][]string{"de": {"</table>"}, "fr": {"</table>", "<p lang"}},
		},
		"a tone": {
			fstest.MapFS{"tone.txt": file(`{{define "intro"}}{{template "intro-firm" .}}{{end}}`)},
			map[string][]string{"de": {"hat noch nicht alle Unterlagen"}},
			map[string][]string{"de": {"freundlich daran erinnern"}},
		},
		"a region": {
			fstest.MapFS{"pt_BR/phrases.txt": file("\ufeff" + `{{define "greeting"}}Prezado(a) {{.RecipientName}},{{end}}`)},
			map[string][]string{"pt-BR": {"Prezado(a) Ana,", "Enviar os documentos", `lang="pt-br"`}, "pt": {"Olá, Ana,"}},
			map[string][]string{"pt-BR": {"Olá"}},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			m := with(t, row.files)
			if got := problems(t, m); got != "" {
				t.Error(got)
			}
			for _, locale := range slices.Sorted(maps.Keys(row.wants)) {
				task := task()
				task.Request.Locale = locale
				_, got := compose(t, m, task)
				all := got.subject(t) + "\n" + got.text + "\n" + got.html
				for _, want := range row.wants[locale] {
					if !strings.Contains(all, want) {
						t.Errorf("%s: %q is lacking in\n%s", locale, want, all)
					}
				}
				for _, lack := range row.lacks[locale] {
					if strings.Contains(all, lack) {
						t.Errorf("%s: %q is there", locale, lack)
					}
				}
			}
		})
	}
}

// TestBadTemplates: what is wrong is told with file and line. Recipients get the built-in mail, or
// where there is none that of the next language, as a whole. What only shows when a template runs
// ends that one mail.
func TestBadTemplates(t *testing.T) {
	rows := []struct{ name, file, text, want string }{
		{"syntax", "fr/subject.txt", "ok\n{{", "fr/subject.txt:2: "},
		{"syntax of a phrase", "fr/phrases.txt", "\n\n{{define \"button\"}}{{if}}{{end}}", "fr/phrases.txt:3: "},
		{"function", "fr/body.txt", "{{upper .Title}}", `fr/body.txt:1: function "upper" not defined`},
		{"template", "fr/body.txt", "\n{{if .IsLast}}{{template \"other\" .}}{{end}}", `fr/body.txt:2: there is no template "other"`},
		{"template of all", "body.txt", "\n{{range .Missing}}{{else}}{{template \"other\" .}}{{end}}", `body.txt:2: there is no template "other"`},
		{"HTML", "fr/body.html", "<p>\n<a href=\"{{if .First}}\">{{end}}</p>", "fr/body.html:2: "},
		{"HTML of all", "body.html", "<script>{{if .First}}'{{end}}</script>", "body.html:1: "},
		{"HTML that does not end", "body.html", "<a href=\"{{.URL}}>{{.Title}}", "body.html:1: ends inside a tag, an attribute or a script: "},
		{"no text", "fr/phrases.txt", "{{define \"button\"}}\nA\xffB{{end}}", "fr/phrases.txt:2: not text in UTF-8"},
		{"a NUL", "body.txt", "a\x00b", "body.txt:1: not text in UTF-8"},
		{"a language with one file", "sv/subject.txt", "hej", `sv/phrases.txt:1: the phrase "date" is missing`},
		{"a file nobody reads", "fr/sujet.txt", "x", "fr/sujet.txt:1: not read, want one of subject.txt, body.txt, body.html, phrases.txt"},
		{"a file in the wrong place", "phrases.txt", "x", "phrases.txt:1: not read, want one of subject.txt, body.txt, body.html, tone.txt"},
		{"no language", "partials/subject.txt", "x", "partials:1: not the tag of a language"},
		{"running: names of months", "fr/phrases.txt", "{{define \"day\"}}\n{{month . \"janvier février\"}}{{end}}", "fr/phrases.txt:2: "},
		{"running: plural", "fr/phrases.txt", "{{define \"greeting\"}}{{plural .Outstanding \"one\"}}{{end}}", "fr/phrases.txt:1: "},
		{"running: plural without other", "fr/phrases.txt", "{{define \"greeting\"}}{{plural .Outstanding \"two\" \"#\"}}{{end}}", "fr/phrases.txt:1: "},
		{"running: data of a built-in phrase", "fr/body.txt", "{{template \"date\" .Title}}", "built-in fr/phrases.txt:2: "},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m := with(t, fstest.MapFS{row.file: file(row.text)})
			if got := problems(t, m); !strings.Contains("\n"+got, "\n"+row.want) {
				t.Errorf("the check says %q, want %q", got, row.want)
			}
			for locale, want := range map[string]string{"de": "Guten Tag", "sv": "Hello", "fr": "Bonjour"} {
				task := task()
				task.Request.Locale = locale
				msg, err := m.Compose(task)
				if onlyRunning := strings.HasPrefix(row.name, "running: "); onlyRunning && locale == "fr" {
					if failure, ok := errors.AsType[*scheduler.ComposeError](err); !ok || failure.Reason != scheduler.ReasonTemplateError {
						t.Errorf("got %v, want this mail to fail", err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := parse(t, msg.Data); !strings.HasPrefix(got.text, want) || !strings.Contains(got.html, ">"+want) {
					t.Errorf("%s: got %q, want %q", locale, got.text, want)
				}
			}
		})
	}
}

// TestBadTemplateStopsNoOther sends past a language whose mails fail.
func TestBadTemplateStopsNoOther(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	cfg := local(srv)
	cfg.Templates = fstest.MapFS{"fr/body.txt": file("{{.Nothing}}"), "de/body.html": file("{{"), "it/body.txt": file("{{.ExpiresAt.In nil}}")}
	m := newMailer(t, cfg)
	sentTo := []string{}
	for _, locale := range []string{"fr", "de", "it", "en", "fr", "es"} {
		task := task()
		task.Request.Locale, task.Request.RecipientEmail = locale, locale+"@example.net"
		msg, err := m.Compose(task)
		if err != nil {
			continue
		}
		expect(t, deliver(t, m, msg), sent, "", 250, "")
		sentTo = append(sentTo, locale)
	}
	if want := []string{"de", "en", "es"}; !slices.Equal(sentTo, want) || len(srv.Accepted()) != len(want) {
		t.Errorf("mails went to %v, want %v", sentTo, want)
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
	m := composer(t, func(cfg *mailer.Config) { cfg.Templates = os.DirFS(dir) })
	if _, got := compose(t, m, task()); got.subject(t) != "subject en" {
		t.Errorf("got %q", got.subject(t))
	}
	if got := problems(t, m); got != "" {
		t.Error(got)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "fr")); err != nil {
		t.Fatal(err)
	}
	m = composer(t, func(cfg *mailer.Config) { cfg.Templates = os.DirFS(dir) })
	if got := problems(t, m); got != "fr:1: cannot be read: no such file or directory" {
		t.Errorf("got %q", got)
	}
}

func TestPanicInTemplate(t *testing.T) {
	// Reflection calls the method, which panics.
	files := folder("en")
	files["en/body.txt"] = file(`{{.ExpiresAt.In nil}}`)
	refuses(t, with(t, files), task(), scheduler.ReasonTemplateError)
}

// TestTemplatesAreDocumented holds docs/templates.md against the type, the functions and the files.
func TestTemplatesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, typ := range []reflect.Type{reflect.TypeFor[mailer.TemplateData](), reflect.TypeFor[mailer.TemplateDocument]()} {
		for field := range typ.Fields() {
			fields = append(fields, "."+field.Name+" "+strings.ReplaceAll(field.Type.String(), "mailer.TemplateDocument", "document"))
		}
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\.[A-Za-z]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	if diff := cmp.Diff(fields, documented); diff != "" {
		t.Errorf("fields (-type +docs/templates.md):\n%s", diff)
	}
	phrases, err := os.ReadFile("templates/en/phrases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, define := range regexp.MustCompile(`\{\{define "([a-z-]+)"`).FindAllStringSubmatch(string(phrases), -1) {
		if !strings.Contains(string(text), "`"+define[1]+"`") {
			t.Errorf("docs/templates.md does not name the phrase %s", define[1])
		}
	}
}

// TestLanguagesHaveTheSamePhrases: none has one too few, or one that nobody asks for.
func TestLanguagesHaveTheSamePhrases(t *testing.T) {
	var want []string
	for _, language := range []string{"en", "de", "es", "fr", "it", "nl", "pt"} {
		text, err := os.ReadFile("templates/" + language + "/phrases.txt")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile(`\{\{define "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1])
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-en +%s):\n%s", language, language, diff)
		}
		if bytes.ContainsAny(text, "<&'\t") {
			t.Errorf("%s has a character that HTML or the eye does not like", language)
		}
	}
}
