package mailer

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"golang.org/x/net/idna"
)

// Limits of RFC 5321 section 4.5.3.1, in bytes; a path has two angle brackets besides.
const (
	maxLocalPart = 64
	maxAddress   = 254
)

// errNoAddress stands for the parser's own words, which quote the address.
var errNoAddress = errors.New("not one e-mail address")

// parseAddress reads one address, with or without a display name, and writes its domain in
// A-labels (RFC 5890), which every relay understands.
func parseAddress(text string) (mail.Address, error) {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return mail.Address{}, errNoAddress
	}
	return encodeDomain(*parsed)
}

// encodeDomain also checks that the address can stand in a command.
func encodeDomain(parsed mail.Address) (mail.Address, error) {
	at := strings.LastIndexByte(parsed.Address, '@')
	local, domain := parsed.Address[:at], parsed.Address[at+1:]
	if !ascii(domain) {
		encoded, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return mail.Address{}, errors.New("the domain is not a valid international name")
		}
		domain = encoded
	}
	parsed.Address = local + "@" + domain
	if len(local) > maxLocalPart || len(parsed.Address) > maxAddress {
		return mail.Address{}, fmt.Errorf("longer than %d bytes, or than %d before the @", maxAddress, maxLocalPart)
	}
	if !safe(parsed.Address) {
		return mail.Address{}, errors.New("contains a control character")
	}
	return parsed, nil
}

// parseRecipient reads a bare address, with nothing around it but spaces: the ledger and the suppressions
// know it by its text, so that another spelling of it would be another address there.
func parseRecipient(text string) (string, error) {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return "", errNoAddress
	}
	if path(parsed.Address) != "<"+strings.Trim(text, " ")+">" {
		return "", errors.New("not a bare e-mail address")
	}
	encoded, err := encodeDomain(*parsed)
	return encoded.Address, err
}

// path returns an address as MAIL and RCPT want it: the local part quoted where it must be, in
// angle brackets.
func path(address string) string { return (&mail.Address{Address: address}).String() }

// safe tells whether an address can stand in a command without ending it.
func safe(address string) bool {
	return strings.LastIndexByte(address, '@') > 0 &&
		!strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func ascii[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
