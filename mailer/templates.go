package mailer

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"strings"
	texttemplate "text/template"
	"time"
)

//go:embed templates
var builtIn embed.FS

// TemplateData is what a template sees.
//
// A folder of templates holds one folder for each locale, named by its BCP 47 tag in lower case
// (en, fr, pt-br), with three files: subject.txt and body.txt (text/template) and body.html
// (html/template). A recipient whose locale is pt-BR gets pt-br, else pt, else the default
// locale. A field that does not exist is an error, and then nothing is sent.
type TemplateData struct {
	Locale        string // tag of the folder in use
	RecipientName string // may be empty
	SenderName    string // the professional; where the request has none, the name or address in From
	Title         string
	Message       string    // what the professional wrote; may be empty
	URL           string    // the upload link: http or https
	ExpiresAt     time.Time // of the link, in the recipient's zone; zero: never
	Deadline      time.Time // a date, at midnight UTC; zero: none
	Slot          string    // such as 3d
	First         bool      // this is the request itself (slot 0d), not a reminder of it
	Number        int       // ordinal of this mail among those of the link, 1 for the first

	Rejected []TemplateDocument // handed in and refused
	Missing  []TemplateDocument // required and not handed in
	Optional []TemplateDocument // not required and not handed in
}

// TemplateDocument is one document that is asked for.
type TemplateDocument struct {
	Title       string
	Description string // may be empty
	Required    bool
	Reason      string // why it was refused; empty where it was not, or nobody said
}

// localised are the templates of one locale.
type localised struct {
	locale  string
	subject *texttemplate.Template
	text    *texttemplate.Template
	html    *htmltemplate.Template
}

// templates are those of all locales, immutable after parsing.
type templates struct {
	byLocale map[string]localised
	standard string
}

// parseTemplates reads every locale of a folder; nil: the built-in one.
func parseTemplates(folder fs.FS, standard string) (templates, error) {
	if folder == nil {
		folder, _ = fs.Sub(builtIn, "templates") // the name is valid and the folder embedded
	}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return templates{}, fmt.Errorf("read templates: %w", err)
	}
	t := templates{byLocale: make(map[string]localised), standard: tag(standard)}
	for _, entry := range entries {
		// Stat follows links: that is how Kubernetes mounts folders, beside hidden ones of its own.
		info, err := fs.Stat(folder, entry.Name())
		if err != nil {
			return templates{}, fmt.Errorf("read templates: %w", err)
		}
		if !info.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		parsed, err := parseLocale(folder, entry.Name())
		if err != nil {
			return templates{}, err
		}
		t.byLocale[parsed.locale] = parsed
	}
	if _, ok := t.find(t.standard); !ok {
		return templates{}, fmt.Errorf("read templates: there are none for the default locale %q", standard)
	}
	return t, nil
}

func parseLocale(folder fs.FS, name string) (localised, error) {
	const strict = "missingkey=error"
	l := localised{locale: tag(name)}
	var err error
	if l.subject, err = texttemplate.New("subject.txt").Option(strict).ParseFS(folder, name+"/subject.txt"); err != nil {
		return l, fmt.Errorf("read templates of %s: %w", name, err)
	}
	if l.text, err = texttemplate.New("body.txt").Option(strict).ParseFS(folder, name+"/body.txt"); err != nil {
		return l, fmt.Errorf("read templates of %s: %w", name, err)
	}
	if l.html, err = htmltemplate.New("body.html").Option(strict).ParseFS(folder, name+"/body.html"); err != nil {
		return l, fmt.Errorf("read templates of %s: %w", name, err)
	}
	return l, nil
}

// tag writes a locale the way folders are named.
func tag(locale string) string { return strings.ToLower(strings.ReplaceAll(locale, "_", "-")) }

// find returns the templates of a locale, or of the next wider one: pt-br, then pt.
func (t templates) find(locale string) (localised, bool) {
	for locale = tag(locale); ; {
		if l, ok := t.byLocale[locale]; ok {
			return l, true
		}
		cut := strings.LastIndexByte(locale, '-')
		if cut < 0 {
			return localised{}, false
		}
		locale = locale[:cut]
	}
}

// of returns the templates of a locale, or the default ones.
func (t templates) of(locale string) localised {
	if l, ok := t.find(locale); ok {
		return l
	}
	l, _ := t.find(t.standard)
	return l
}

// content is a rendered mail.
type content struct{ subject, text, html string }

// render executes the three templates. It returns an error, never half a mail.
func (l localised) render(data TemplateData) (content, error) {
	var subject, text, html bytes.Buffer
	if err := l.subject.Execute(&subject, data); err != nil {
		return content{}, err
	}
	if err := l.text.Execute(&text, data); err != nil {
		return content{}, err
	}
	if err := l.html.Execute(&html, data); err != nil {
		return content{}, err
	}
	c := content{headerText(subject.String()), text.String(), html.String()}
	if c.subject == "" {
		return content{}, errors.New("the subject is empty")
	}
	return c, nil
}
