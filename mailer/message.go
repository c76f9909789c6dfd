package mailer

import (
	"cmp"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strings"
)

// field is one field of a header. Its value is on one line, not yet encoded.
type field struct{ name, value string }

// writeMessage writes a mail of two alternatives (RFC 2046 section 5.1.4): the fields in the order of
// their names, the addresses, which are encoded already, and both parts as quoted-printable, so that no
// relay needs 8BITMIME. The boundary must not begin a line of either part.
func writeMessage(into *bounded, fields, addresses []field, boundary string, body content) error {
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	header := make([]byte, 0, usualHeader)
	for _, f := range fields {
		header = appendField(header, f.name, mime.QEncoding.Encode("UTF-8", f.value)) // RFC 2047
	}
	for _, f := range addresses {
		header = appendField(header, f.name, f.value)
	}
	header = append(header, "Content-Type: multipart/alternative;\r\n boundary="+boundary+"\r\n"...)
	if _, err := into.Write(header); err != nil {
		return err
	}
	for _, part := range []struct {
		kind string
		text []byte
	}{{"text/plain", body.text}, {"text/html", body.html}} {
		if err := writePart(into, boundary, part.kind, part.text); err != nil {
			return err
		}
	}
	_, err := into.Write([]byte("\r\n--" + boundary + "--\r\n"))
	return err
}

func writePart(into *bounded, boundary, kind string, text []byte) error {
	begin := "\r\n--" + boundary + "\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: " + kind + "; charset=UTF-8\r\n\r\n"
	if _, err := into.Write([]byte(begin)); err != nil {
		return err
	}
	encoder := quotedprintable.NewWriter(into)
	if _, err := encoder.Write(text); err != nil {
		return err
	}
	return encoder.Close()
}

// appendField folds a field before the words that would make its line longer than the 76 characters that
// RFC 2047 section 2 allows. A single word that is longer stays whole.
func appendField(header []byte, name, value string) []byte {
	const whole, further = 74, 73
	header = append(append(header, name...), ": "...)
	room := whole - len(name) - len(": ")
	first := true
	for word := range strings.SplitSeq(value, " ") {
		if !first {
			header = append(header, ' ')
			room--
		}
		first = false
		if room-len(word) <= 1 {
			header = append(header[:len(header)-1], "\r\n "...) // the blank before the word becomes the fold
			room = further
		}
		header = append(header, word...)
		room -= len(word)
	}
	return append(header, "\r\n"...)
}
