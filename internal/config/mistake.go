package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	File   string // as it was named to Load; empty: the value came from elsewhere
	Line   int    // from 1; 0: no line
	Key    string // path of the key, for example cadences.default.after[1]; empty: the whole file
	Reason string // what is wrong and what is allowed
	Got    string // the value: a quoted text, or words such as "a list"; empty: there is none
}

// String returns the mistake as one line: file:line: key: reason (got "value").
func (m Mistake) String() string {
	var b strings.Builder
	switch {
	case m.File != "" && m.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", m.File, m.Line)
	case m.File != "":
		fmt.Fprintf(&b, "%s: ", m.File)
	}
	if m.Key != "" {
		b.WriteString(m.Key + ": ")
	}
	b.WriteString(oneLine(m.Reason))
	if m.Got != "" {
		b.WriteString(" (got " + m.Got + ")")
	}
	return b.String()
}

// Mistakes is the error of a configuration that cannot be used. It is never empty.
type Mistakes []Mistake

// Error returns one line for each mistake.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// sort puts the mistakes in the order of the lines, those of the file itself before those of
// files that it names.
func (ms Mistakes) sort(file string) {
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		if (a.File == file) != (b.File == file) {
			if a.File == file {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// about reports whether there is a mistake about a key or about something inside it.
func (ms Mistakes) about(path string) bool {
	return slices.ContainsFunc(ms, func(m Mistake) bool {
		rest, ok := strings.CutPrefix(m.Key, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// exactly reports whether there is a mistake about this very key.
func (ms Mistakes) exactly(path string) bool {
	return slices.ContainsFunc(ms, func(m Mistake) bool { return m.Key == path })
}

// maxShown is how many characters of a value a mistake repeats.
const maxShown = 120

// quote returns a value as a mistake shows it: on one line, and not all of it where it is long.
func quote(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	return strconv.Quote(text)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
