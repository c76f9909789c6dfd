package mailer

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"maps"
	"slices"
	texttemplate "text/template"

	"golang.org/x/text/language"
)

//go:embed templates
var builtIn embed.FS

// The files that make a mail. A folder of templates has them at its top, for all languages, or in
// a folder of one language, such as fr or pt-br; phrases are of one language, tones of all.
const (
	fileSubject = "subject.txt"
	fileText    = "body.txt"
	fileHTML    = "body.html"
	filePhrases = "phrases.txt"
	fileTone    = "tone.txt"
)

// missingKey makes a key that a map does not have an error.
const missingKey = "missingkey=error"

// localised are the templates of one language.
type localised struct {
	tag     language.Tag
	locale  string // the tag as folders are named
	subject *texttemplate.Template
	text    *texttemplate.Template
	html    *htmltemplate.Template
}

// loadTemplates puts the files of a folder, which may be nil, over the built-in ones. A language
// whose own files cannot be used is as if it had none: the problems tell why. The error is that of the
// folder itself.
func loadTemplates(folder fs.FS) ([]*localised, TemplateProblems, error) {
	inner, _ := fs.Sub(builtIn, "templates") // the name is valid and the folder embedded
	base, problems, err := readLayer(inner, "built-in ")
	if err != nil {
		return nil, nil, fmt.Errorf("read the built-in templates: %w", err)
	}
	layers := []layer{base}
	if folder != nil {
		own, mistakes, err := readLayer(folder, "")
		if err != nil {
			return nil, nil, fmt.Errorf("read templates: %w", err)
		}
		layers, problems = append(layers, own), append(problems, mistakes...)
	}
	locales := map[string]bool{}
	for _, l := range layers {
		maps.Copy(locales, l.locales)
	}
	var sets []*localised
	for _, locale := range slices.Sorted(maps.Keys(locales)) {
		l, mistakes := parseLocale(layers, locale)
		problems = append(problems, mistakes...)
		if len(mistakes) > 0 && base.locales[locale] {
			l, mistakes = parseLocale(layers[:1], locale)
		}
		if len(mistakes) == 0 {
			sets = append(sets, l)
		}
	}
	return sets, problems.sorted(), nil
}

// parseLocale puts one language together. It is complete if there are no problems.
func parseLocale(layers []layer, locale string) (*localised, TemplateProblems) {
	l := &localised{tag: language.Make(locale), locale: locale}
	phrases := find(layers, fileTone)
	for _, wider := range widening(locale) {
		phrases = append(phrases, find(layers, wider+"/"+filePhrases)...)
	}
	var problems TemplateProblems
	note := func(err error) {
		if err != nil {
			problems = append(problems, problemOf(err))
		}
	}
	l.subject = texttemplate.New("").Funcs(funcs(l.tag)).Option(missingKey)
	l.html = htmltemplate.New("").Funcs(funcs(l.tag)).Option(missingKey)
	for _, p := range phrases {
		_, err := l.subject.New(p.name).Parse(p.text)
		if note(err); err == nil {
			_, err = l.html.New(p.name).Parse(p.text)
			note(err)
		}
	}
	l.text = texttemplate.Must(l.subject.Clone()) // a text template that has not run can be cloned
	var err error
	subject, text, html := layout(layers, locale, fileSubject), layout(layers, locale, fileText), layout(layers, locale, fileHTML)
	l.subject, err = l.subject.New(subject.name).Parse(subject.text)
	note(err)
	l.text, err = l.text.New(text.name).Parse(text.text)
	note(err)
	l.html, err = l.html.New(html.name).Parse(html.text)
	note(err)
	if len(problems) > 0 {
		return nil, problems
	}
	return l, l.loose()
}

// loose finds what is wrong with templates that were parsed one by one.
func (l *localised) loose() TemplateProblems {
	problems := dangling(l.locale, l.subject.Name(), textTrees(l.subject))
	problems = append(problems, dangling(l.locale, l.text.Name(), textTrees(l.text))...)
	problems = append(problems, dangling(l.locale, l.html.Name(), htmlTrees(l.html))...)
	if len(problems) > 0 {
		return problems
	}
	// The first execution looks at the HTML of all branches. What else it finds comes of the empty data.
	err := l.html.Execute(io.Discard, TemplateData{})
	if unsafe, ok := errors.AsType[*htmltemplate.Error](err); ok {
		problems = append(problems, problemOf(unsafe))
	}
	return problems
}

// layout finds the file that holds for a language: its own one before a common one, and those of
// the upper layer before those beneath. The built-in layer has the common ones.
func layout(layers []layer, locale, file string) piece {
	for _, l := range slices.Backward(layers) {
		for _, wider := range slices.Backward(widening(locale)) {
			if p, ok := l.pieces[wider+"/"+file]; ok {
				return p
			}
		}
		if p, ok := l.pieces[file]; ok {
			return p
		}
	}
	return piece{}
}

// find returns the files of one name, those of upper layers last.
func find(layers []layer, file string) (found []piece) {
	for _, l := range layers {
		if p, ok := l.pieces[file]; ok {
			found = append(found, p)
		}
	}
	return found
}

// widening lists the locales that one builds upon, the widest first and itself last: pt, pt-br.
func widening(locale string) []string {
	var list []string
	for i, r := range locale {
		if r == '-' {
			list = append(list, locale[:i])
		}
	}
	return append(list, locale)
}

// content is a rendered mail. The parts lie in the buffers that it was rendered into.
type content struct {
	subject    string
	text, html []byte
}

// buffers are what one mail at a time is rendered into.
type buffers struct{ subject, text, html bounded }

// render executes the three templates. It returns an error, never half a mail.
func (l *localised) render(data TemplateData, into *buffers) (content, error) {
	into.subject.Reset()
	into.text.Reset()
	into.html.Reset()
	if err := l.subject.Execute(&into.subject, data); err != nil {
		return content{}, err
	}
	if err := l.text.Execute(&into.text, data); err != nil {
		return content{}, err
	}
	if err := l.html.Execute(&into.html, data); err != nil {
		return content{}, err
	}
	c := content{headerText(into.subject.String()), into.text.Bytes(), into.html.Bytes()}
	if c.subject == "" {
		return content{}, fmt.Errorf("template: %s:1: the subject is empty", l.subject.Name())
	}
	return c, nil
}
