package web

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nudged/scheduler"
)

// hiddenLink stands for an upload link: whoever has the link can use it.
const hiddenLink = "https://hidden.invalid/upload-link"

// address finds what looks like an e-mail address in a text.
var address = regexp.MustCompile(`(?:"[^"\n]*"|[^\s<>()\[\],;:@"']+)@[^\s<>()\[\],;:@"'/?]+`)

// masker hides the addresses and the link of one request. Templates get only what came through it.
type masker struct {
	show bool
	link string // URL
}

// text hides every address in a text, and the link.
func (m masker) text(s string) string {
	if m.show {
		return s
	}
	if m.link != "" {
		s = strings.ReplaceAll(s, m.link, hiddenLink)
	}
	return address.ReplaceAllStringFunc(s, maskAddress)
}

// address hides one address, whatever it looks like.
func (m masker) address(s string) string {
	switch {
	case m.show || s == "":
		return s
	case strings.Contains(s, "@"):
		return maskAddress(s)
	default:
		return "***"
	}
}

// maskAddress keeps the first letter and the domain: a***@example.com. What is an address stays one.
func maskAddress(s string) string {
	at := strings.LastIndexByte(s, '@')
	first, size := utf8.DecodeRuneInString(s[:at])
	if !unicode.IsLetter(first) && !unicode.IsDigit(first) {
		size = 0
	}
	return s[:size] + "***" + s[at:]
}

// request returns a copy without addresses.
func (m masker) request(r scheduler.Request) scheduler.Request {
	r.RecipientEmail, r.ReplyTo = m.address(r.RecipientEmail), m.address(r.ReplyTo)
	for _, s := range []*string{&r.AccountID, &r.RecipientName, &r.SenderName, &r.Title, &r.Message, &r.PauseReason} {
		*s = m.text(*s)
	}
	return r
}

// url returns the link as it may be shown.
func (m masker) url() string {
	if m.show {
		return m.link
	}
	return hiddenLink
}

func (m masker) documents(list []scheduler.Document) []scheduler.Document {
	list = slices.Clone(list)
	for i := range list {
		d := &list[i]
		d.Title, d.Description, d.RejectionReason = m.text(d.Title), m.text(d.Description), m.text(d.RejectionReason)
	}
	return list
}

// events keeps who acted: a login and a host look like an address and are none.
func (m masker) events(list []scheduler.Event) []scheduler.Event {
	list = slices.Clone(list)
	for i := range list {
		list[i].Address, list[i].Detail, list[i].Why = m.address(list[i].Address), m.text(list[i].Detail), m.text(list[i].Why)
	}
	return list
}
