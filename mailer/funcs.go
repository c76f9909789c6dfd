package mailer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// funcs are the functions that the templates of one language have besides those of Go.
func funcs(tag language.Tag) map[string]any {
	return map[string]any{
		"plural":  func(n int, forms ...string) (string, error) { return pluralise(tag, n, forms) },
		"weekday": func(t time.Time, names string) (string, error) { return nameOf(int(t.Weekday()), 7, names) },
		"month":   func(t time.Time, names string) (string, error) { return nameOf(int(t.Month())-1, 12, names) },
		"utc":     utc,
	}
}

// pluralise picks the form that the language wants with a number, by the names of CLDR: zero, one,
// two, few, many, other. Forms that are not given are "other"; # stands for the number.
func pluralise(tag language.Tag, n int, forms []string) (string, error) {
	if len(forms)%2 != 0 {
		return "", fmt.Errorf("plural: want pairs of a category and a text, got %d texts", len(forms))
	}
	given := make(map[string]string, len(forms)/2)
	for i := 0; i < len(forms); i += 2 {
		given[forms[i]] = forms[i+1]
	}
	text, ok := given[category(tag, n)]
	if !ok {
		text, ok = given["other"]
	}
	if !ok {
		return "", fmt.Errorf("plural: no text for %q", "other")
	}
	return strings.ReplaceAll(text, "#", strconv.Itoa(n)), nil
}

func category(tag language.Tag, n int) string {
	const modulo = 10_000_000 // more than any rule looks at
	switch plural.Cardinal.MatchPlural(tag, max(n, -n)%modulo, 0, 0, 0, 0) {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	default:
		return "other"
	}
}

// nameOf returns one of a list of names with blanks between them.
func nameOf(i, want int, names string) (string, error) {
	list := strings.Split(names, " ")
	if len(list) != want {
		return "", fmt.Errorf("want %d names with one blank between them, got %d", want, len(list))
	}
	return list[i], nil
}

// utc tells how far the clock of an instant is from UTC: UTC, UTC+2, UTC-3:30.
func utc(t time.Time) string {
	_, offset := t.Zone()
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	hours, minutes := offset/3600, offset%3600/60
	switch {
	case hours == 0 && minutes == 0:
		return "UTC"
	case minutes == 0:
		return fmt.Sprintf("UTC%s%d", sign, hours)
	default:
		return fmt.Sprintf("UTC%s%d:%02d", sign, hours, minutes)
	}
}
