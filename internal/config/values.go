package config

import (
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/language"

	"nudged/cadence"
)

// The functions of this file parse one value each. Their errors are read by a user behind the
// name of the key and in front of the value, so they say what is wrong and what is allowed.

// ceiling parses a number that package cadence checks.
func ceiling(text string) (*int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, errors.New("want a whole number")
	}
	return &n, nil
}

// pointer parses a text that package cadence checks.
func pointer(text string) (*string, error) { return &text, nil }

// integer returns a parser for whole numbers of a range, both ends included.
func integer(low, high int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("want a whole number from %d to %d", low, high)
		}
		return n, nil
	}
}

func rate(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0, errors.New("want messages a second, 0 for no limit")
	}
	return n, nil
}

func boolean(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("want true or false")
}

// oneOf returns a parser for a word of a closed list.
func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		names := make([]string, len(words))
		for i, word := range words {
			names[i] = string(word)
		}
		return "", errors.New("want one of " + strings.Join(names, ", "))
	}
}

// optional returns a parser that takes the empty text for the zero value: as if the key were absent.
func optional[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if text == "" {
			var none T
			return none, nil
		}
		return parse(text)
	}
}

// line parses one line of anything.
func line(text string) (string, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("want one line without control characters")
	}
	return text, nil
}

// word parses a word that names something: an environment, a cadence.
func word(text string) (string, error) {
	if !plainKey.MatchString(text) {
		return "", errors.New("want a name of letters, digits, _ and -")
	}
	return text, nil
}

// hostName matches names as hosts have them, and names of containers, which may have a _.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// host parses the name or the address of a server.
func host(text string) (string, error) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr.String(), nil
	}
	if hostName.MatchString(text) {
		return text, nil
	}
	ascii, err := domain(text)
	if err != nil {
		return "", errors.New("want a host name or an address, without scheme and port")
	}
	return ascii, nil
}

// domain parses a domain name and returns it in A-labels, which is how SMTP and DNS spell it.
func domain(text string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(text)
	if err != nil {
		return "", errors.New("want a domain name")
	}
	return ascii, nil
}

// mailbox parses one address with or without a display name. Its local part is ASCII: a sender
// that needs SMTPUTF8 could not mail anyone whose server lacks it (RFC 6531 section 3.3).
func mailbox(text string) (mail.Address, error) {
	address, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsControl) || !ascii(localPart(address.Address)) {
		return mail.Address{}, errors.New(`want one address, ASCII in front of the @, such as "Example <reminders@example.com>"`)
	}
	return *address, nil
}

// bareAddress parses one address without a display name.
func bareAddress(text string) (string, error) {
	address, err := mailbox(text)
	if err != nil || address.Address != text {
		return "", errors.New("want one bare address, ASCII in front of the @, such as bounces@example.com")
	}
	return text, nil
}

// localPart returns what stands in front of the last @.
func localPart(address string) string { return address[:strings.LastIndexByte(address, '@')] }

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// domainOf returns what stands behind the last @.
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// printable matches what may stand in a header field without any encoding and cannot end a URL
// in angle brackets (RFC 2369 section 2).
var printable = regexp.MustCompile(`^[!#-;=?-~]+$`)

// unsubscribe parses a URL that may name the request by a placeholder, though not as part of the host.
func unsubscribe(text string) (string, error) {
	u, err := url.Parse(text)
	known := err == nil && (u.Scheme == "https" && u.Host != "" || u.Scheme == "mailto" && u.Opaque != "")
	if !known || !printable.MatchString(text) {
		return "", errors.New("want an https: or mailto: URL in ASCII")
	}
	if strings.ContainsAny(strings.ReplaceAll(text, "{request_id}", ""), "{}") {
		return "", errors.New("want {request_id} as the only thing in braces")
	}
	return text, nil
}

// fieldName matches the names of header fields that are in use (RFC 5322 section 2.2 allows more).
var fieldName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// headerName parses the name of a header field that a mail does not have anyway: a second Message-ID
// would make it one that relays refuse.
func headerName(text string) (string, error) {
	own := func(name string) bool { return strings.EqualFold(name, text) }
	switch {
	case !fieldName.MatchString(text):
		return "", errors.New("want the name of a header field, such as Resend-Idempotency-Key")
	case slices.ContainsFunc(ownFields(), own):
		return "", errors.New("want another name, every mail has this field already")
	}
	return text, nil
}

// ownFields are the fields that a mail can have by itself, and those that relays add or act upon.
func ownFields() []string {
	return []string{
		"Auto-Submitted", "Bcc", "Cc", "Content-Transfer-Encoding", "Content-Type", "Date", "DKIM-Signature", "From",
		"In-Reply-To", "List-Unsubscribe", "List-Unsubscribe-Post", "Message-ID", "MIME-Version", "Received",
		"References", "Reply-To", "Return-Path", "Sender", "Subject", "To", "X-Auto-Response-Suppress",
		"X-Entity-Ref-ID",
	}
}

// timeZone loads a zone for everyone who names none.
func timeZone(text string) (*time.Location, error) {
	zone, err := cadence.LoadZone(text)
	if err != nil {
		return nil, errors.New("no such time zone, want an IANA name such as Europe/Paris, or UTC")
	}
	return zone, nil
}

func locale(text string) (string, error) {
	if _, err := language.Parse(text); err != nil {
		return "", errors.New("want a language tag, such as en, fr or pt-BR")
	}
	return text, nil
}

// keywords matches what begins like host=/run/postgresql dbname=app.
var keywords = regexp.MustCompile(`^ *\w+ *=`)

// databaseURL checks which of the two forms a URL has, and leaves the rest to the driver. Its error never
// holds the text.
func (r *reader) databaseURL(text string) (Secret, error) {
	known := strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") || keywords.MatchString(text)
	if !known || strings.ContainsFunc(text, unicode.IsControl) {
		return Secret{}, errors.New("want postgres://user@host/database, or keywords such as host=/run/postgresql dbname=app")
	}
	if r.checks.DatabaseURL != nil {
		if err := r.checks.DatabaseURL(text); err != nil {
			return Secret{}, err
		}
	}
	return NewSecret(text), nil
}
