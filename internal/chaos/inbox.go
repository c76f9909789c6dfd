//go:build chaos

package chaos

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"nudged/internal/smtptest"
)

// slotKey names one slot of one link of one request.
type slotKey struct {
	request string
	link    time.Time // UTC
	slot    string
}

func keyOf(request string, link time.Time, slot string) slotKey {
	return slotKey{request, link.UTC(), slot}
}

func (k slotKey) String() string {
	return fmt.Sprintf("%s %s (link of %s)", k.request, k.slot, k.link.Format(time.RFC3339Nano))
}

// accepted is one mail that the server committed to, identified by what is in it.
type accepted struct {
	slotKey

	messageID string
	recipient string
	conn      int
	at        time.Time
}

func (a accepted) String() string {
	return fmt.Sprintf("accepted at %s on connection %d: %s, for %s, Message-ID %s",
		stamp(a.at), a.conn, a.slotKey, a.recipient, a.messageID)
}

// decode finds out which slot a mail is for: the request and the link by the upload address in the
// body, the slot by the date, which is when it was due.
func decode(m smtptest.Message, subjects map[string]*subject) (accepted, error) {
	a := accepted{messageID: m.MessageID(), conn: m.Conn, at: m.At}
	if len(m.To) != 1 {
		return a, fmt.Errorf("%d recipients", len(m.To))
	}
	a.recipient = m.To[0]
	parsed, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		return a, fmt.Errorf("read the mail: %w", err)
	}
	due, err := parsed.Header.Date()
	if err != nil {
		return a, fmt.Errorf("read the date: %w", err)
	}
	text, err := plainText(parsed)
	if err != nil {
		return a, err
	}
	url := regexp.MustCompile(`https://` + regexp.QuoteMeta(markLink) + `/u/([^/\s]+)/\d+`).FindStringSubmatch(text)
	if url == nil {
		return a, fmt.Errorf("no upload address in %q", text)
	}
	s, known := subjects[url[1]]
	if !known {
		return a, fmt.Errorf("no request has the upload address %s", url[0])
	}
	created, known := s.urls[url[0]]
	if !known {
		return a, fmt.Errorf("request %s never had the upload address %s", s.id, url[0])
	}
	if !strings.HasPrefix(a.recipient, s.id+".") {
		return a, fmt.Errorf("the mail of request %s went to %s", s.id, a.recipient)
	}
	a.slotKey = keyOf(s.id, created, slotName(due.Sub(created.Truncate(time.Second))))
	return a, nil
}

// plainText returns the text part of a mail.
func plainText(m *mail.Message) (string, error) {
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", fmt.Errorf("read the content type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return "", fmt.Errorf("the mail is %s", kind)
	}
	for parts := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart() // decodes quoted-printable
		if err != nil {
			return "", fmt.Errorf("find the text part: %w", err)
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/plain") {
			text, err := io.ReadAll(part)
			if err != nil {
				return "", fmt.Errorf("read the text part: %w", err)
			}
			return string(text), nil
		}
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.000000")
}
