package web

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
)

// Bounds of what is shown of a mail.
const (
	maxPart  = 1 << 20 // bytes of one part
	maxDepth = 5       // of parts within parts
)

// message is a mail as a page shows it.
type message struct {
	Header []field
	Text   string
	HTML   string
}

// field is one field of a header.
type field struct{ Name, Value string }

// Subject is empty where there is none.
func (m message) Subject() string {
	for _, f := range m.Header {
		if f.Name == "Subject" {
			return f.Value
		}
	}
	return ""
}

// parseMessage reads a mail: the fields that people look at, and the first part of either kind.
func parseMessage(data []byte) (message, error) {
	parsed, err := netmail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return message{}, fmt.Errorf("read a mail: %w", err)
	}
	var m message
	for _, name := range []string{"Subject", "From", "Reply-To", "To", "Date", "Message-ID"} {
		if raw := parsed.Header.Get(name); raw != "" {
			m.Header = append(m.Header, field{name, decodeHeader(raw)})
		}
	}
	body := decodeBody(parsed.Body, parsed.Header.Get("Content-Transfer-Encoding"))
	return m, m.add(parsed.Header.Get("Content-Type"), body, maxDepth)
}

func decodeHeader(raw string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(raw)
	if err != nil {
		return raw
	}
	return decoded
}

func decodeBody(r io.Reader, encoding string) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		return quotedprintable.NewReader(r)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, r)
	default:
		return r
	}
}

// add takes one part, or those that lie in it.
func (m *message) add(contentType string, body io.Reader, depth int) error {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = "text/plain" // RFC 2045 section 5.2
	}
	if strings.HasPrefix(kind, "multipart/") && depth > 0 {
		for parts := multipart.NewReader(body, parameters["boundary"]); ; {
			part, err := parts.NextPart() // it decodes quoted-printable by itself
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read a part of a mail: %w", err)
			}
			inner := decodeBody(part, part.Header.Get("Content-Transfer-Encoding"))
			if err := m.add(part.Header.Get("Content-Type"), inner, depth-1); err != nil {
				return err
			}
		}
	}
	into := map[string]*string{"text/plain": &m.Text, "text/html": &m.HTML}[kind]
	if into == nil || *into != "" {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(body, maxPart))
	if err != nil {
		return fmt.Errorf("read the text of a mail: %w", err)
	}
	*into = strings.ToValidUTF8(string(content), "\uFFFD")
	return nil
}
