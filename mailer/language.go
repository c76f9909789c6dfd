package mailer

import (
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// languages picks the language of a mail, by the rules of BCP 47 (RFC 4647) and CLDR: a recipient
// in de-CH, or in lb, gets German, if there are no nearer templates.
type languages struct {
	matcher language.Matcher
	sets    []*localised // the standard one first
}

func newLanguages(standard *localised, sets []*localised) languages {
	ordered := []*localised{standard}
	for _, l := range sets {
		if l != standard {
			ordered = append(ordered, l)
		}
	}
	tags := make([]language.Tag, len(ordered))
	for i, l := range ordered {
		tags[i] = l.tag
	}
	return languages{matcher: language.NewMatcher(tags), sets: ordered}
}

// of returns the templates of the nearest language, or the standard ones.
func (ls languages) of(locale string) *localised {
	if l, ok := ls.find(locale); ok {
		return l
	}
	return ls.sets[0]
}

// find returns the templates of the nearest language; false where none is near.
func (ls languages) find(locale string) (*localised, bool) {
	tag, err := language.Parse(strings.TrimSpace(locale))
	if err != nil {
		return nil, false
	}
	_, i, confidence := ls.matcher.Match(tag)
	if tag == language.Und || confidence == language.No {
		return nil, false
	}
	return ls.sets[i], true
}

// Language returns the language that a mail for a locale is written in, as folders of templates are
// named, such as fr or pt-br.
func (m *Mailer) Language(locale string) string { return m.languages.of(locale).locale }

// Languages returns what Language would be of a mailer with these templates, which may be nil, and
// this default locale.
func Languages(templates fs.FS, standard string) (func(locale string) string, error) {
	found, _, err := loadTemplates(templates, standard)
	if err != nil {
		return nil, err
	}
	return func(locale string) string { return found.of(locale).locale }, nil
}

// direction is which way the language is written.
func (l *localised) direction() string {
	rightToLeft := []string{"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}
	if script, _ := l.tag.Script(); slices.Contains(rightToLeft, script.String()) {
		return "rtl"
	}
	return "ltr"
}
