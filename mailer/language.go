package mailer

import (
	"fmt"
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

// LocaleError says that there are no templates for the default locale.
type LocaleError struct {
	Locale string
	Have   []string // the languages that there are templates for
}

func (e *LocaleError) Error() string {
	return fmt.Sprintf("there are no templates for the default locale %q, want one of %s", e.Locale, strings.Join(e.Have, ", "))
}

// standing returns the languages with that of a locale as the standard one. The error is a *LocaleError.
func standing(sets []*localised, locale string) (*languages, error) {
	first, ok := newLanguages(sets[0], sets).find(locale)
	if !ok {
		have := make([]string, len(sets))
		for i, l := range sets {
			have[i] = l.locale
		}
		return nil, &LocaleError{Locale: locale, Have: have}
	}
	ls := newLanguages(first, sets)
	return &ls, nil
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
func (m *Mailer) Language(locale string) string { return m.languages.Load().of(locale).locale }

// SetLocale puts another default locale in force, for mails that are written from then on. The templates
// are those of New: the error is a *LocaleError where they have none for it, and nothing is changed.
func (m *Mailer) SetLocale(locale string) error {
	ls, err := standing(m.sets, locale)
	if err != nil {
		return err
	}
	m.languages.Store(ls)
	return nil
}

// Languages returns what Language would be of a mailer with these templates, which may be nil, and
// this default locale. The error is a *LocaleError where they have none for that.
func Languages(templates fs.FS, standard string) (func(locale string) string, error) {
	sets, _, err := loadTemplates(templates)
	if err != nil {
		return nil, err
	}
	found, err := standing(sets, standard)
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
