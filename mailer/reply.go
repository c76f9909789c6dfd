package mailer

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords bounds what is kept of an answer, in bytes.
const maxWords = 500

// reply is one readable answer of the relay.
type reply struct {
	code int
	text string // without the code; lines separated by \n
}

func (r reply) class() int { return r.code / 100 }

// enhanced returns the enhanced status code (RFC 2034, RFC 3463) that the text begins with, or
// "". It must agree with the class of the reply.
func (r reply) enhanced() string {
	word, _, _ := strings.Cut(r.text, " ")
	parts := strings.Split(word, ".")
	if len(parts) != 3 || slices.ContainsFunc(parts, func(p string) bool { return !digits(p) }) {
		return ""
	}
	if parts[0] != strconv.Itoa(r.class()) {
		return ""
	}
	return word
}

func digits(s string) bool {
	return len(s) >= 1 && len(s) <= 3 && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// noSuchAddress reports whether the relay said, in a code, that the address does not exist and
// will not exist until somebody changes it.
func (r reply) noSuchAddress() bool {
	switch r.enhanced() {
	case "5.1.1", // bad destination mailbox
		"5.1.2",  // bad destination system
		"5.1.3",  // bad destination mailbox syntax
		"5.1.6",  // mailbox has moved
		"5.1.10", // recipient has a null MX (RFC 7505)
		"5.2.1":  // mailbox disabled
		return true
	}
	return false
}

// words makes text fit to be kept: one line, no e-mail address, at most maxWords bytes.
func words(text string) string {
	text = oneLine(MaskAddresses(text))
	if len(text) <= maxWords {
		return text
	}
	cut := maxWords
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// oneLine replaces every run of white space and control characters by one space.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// MaskAddresses writes <address> for everything that looks like an e-mail address.
func MaskAddresses(text string) string {
	var masked strings.Builder
	for {
		at := strings.IndexByte(text, '@')
		if at < 0 {
			masked.WriteString(text)
			return masked.String()
		}
		start := 0
		if strings.HasSuffix(text[:at], `"`) { // a quoted local part
			start = max(0, strings.LastIndexByte(text[:at-1], '"'))
		} else if i := strings.LastIndexAny(text[:at], addressEnds); i >= 0 {
			start = i + 1
		}
		end := len(text)
		if i := strings.IndexAny(text[at+1:], addressEnds); i >= 0 {
			end = at + 1 + i
		}
		if start > 0 && end < len(text) && text[start-1] == '<' && text[end] == '>' {
			start, end = start-1, end+1
		}
		masked.WriteString(text[:start] + "<address>")
		text = text[end:]
	}
}

// addressEnds are the characters that cannot be part of an address as relays print it.
const addressEnds = " \t\r\n<>()[]{},;:\"'`|\\"
