package main

import (
	"log/slog"
	"strconv"
	"strings"
	"unicode"
)

// oneLine writes an error on one line. The driver of the database puts each address that it tried on
// a line of its own, and tries an address twice, with TLS and without: each line stands once.
func oneLine(err error) string {
	var lines []string
	said := map[string]bool{}
	for line := range strings.Lines(err.Error()) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !said[line] {
			said[line] = true
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "; ")
	return strings.ReplaceAll(text, ":; ", ": ")
}

// plain shows a text that somebody else wrote as one piece of a line: a control character could
// forge another line, or play with the terminal.
func plain(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// errorsOnOneLine is for slog.HandlerOptions.
func errorsOnOneLine(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok && err != nil {
		a.Value = slog.StringValue(oneLine(err))
	}
	return a
}
