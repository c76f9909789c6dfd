package mailer_test

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"nudged/cadence"
	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// parsed is a mail as a reader sees it.
type parsed struct {
	mail.Header
	text, html string
}

func parse(t *testing.T, data []byte) parsed {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || media != "multipart/alternative" {
		t.Fatal(media, err)
	}
	p := parsed{Header: m.Header}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []string{"text/plain; charset=UTF-8", "text/html; charset=UTF-8"} {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if got := part.Header.Get("Content-Type"); got != want {
			t.Errorf("got part %q, want %q", got, want)
		}
		content, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		decoded := strings.ReplaceAll(string(content), "\r\n", "\n")
		if strings.Contains(want, "html") {
			p.html = decoded
		} else {
			p.text = decoded
		}
	}
	if _, err := parts.NextRawPart(); err != io.EOF {
		t.Errorf("got %v, want the end after two parts", err)
	}
	return p
}

func (p parsed) subject(t *testing.T) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(p.Get("Subject"))
	if err != nil {
		t.Error(err)
	}
	return s
}

// composer is a mailer that talks to nobody.
func composer(t *testing.T, change ...func(*mailer.Config)) *mailer.Mailer {
	t.Helper()
	cfg := mailer.Config{Host: "relay.example.com", From: example()}
	for _, c := range change {
		c(&cfg)
	}
	return newMailer(t, cfg)
}

func compose(t *testing.T, m *mailer.Mailer, task scheduler.Task) (scheduler.Message, parsed) {
	t.Helper()
	msg, err := m.Compose(task)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, msg.Data)
	return msg, parse(t, msg.Data)
}

// wellFormed checks what RFC 5322 and RFC 5321 ask of every line.
func wellFormed(t *testing.T, data []byte) {
	t.Helper()
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\r\n")) || bytes.ContainsAny(line[:len(line)-2], "\r\n\x00") || len(line) > 1000 {
			t.Errorf("bad line %q", line)
		}
	}
}

// refuses checks that a task does not compose, and for which reason.
func refuses(t *testing.T, m *mailer.Mailer, task scheduler.Task, reason scheduler.Reason) error {
	t.Helper()
	msg, err := m.Compose(task)
	failure, ok := errors.AsType[*scheduler.ComposeError](err)
	if !ok || failure.Reason != reason || len(msg.Data) > 0 {
		t.Errorf("got %v and %d bytes to %q, want a %s and none", err, len(msg.Data), msg.To, reason)
	}
	return err
}

func TestComposeTellsEverything(t *testing.T) {
	task := task()
	task.Zone, _ = time.LoadLocation("America/Santiago")
	task.Request.Deadline = cadence.Date{Year: 2026, Month: time.September, Day: 6} // a day without a midnight there
	task.Request.Message = "Dear Ana,\nplease hurry."
	task.Documents = []scheduler.Document{
		{Title: "Passport", Required: true, State: scheduler.DocumentMissing, Description: "both sides"},
		{Title: "Payslip", Required: true, State: scheduler.DocumentRejected, RejectionReason: "page 2 is missing"},
		{Title: "Lease", State: scheduler.DocumentMissing},
		{Title: "Diploma", Required: true, State: scheduler.DocumentReceived},
		{Title: "Photo", Required: true, State: scheduler.DocumentApproved},
	}
	_, got := compose(t, composer(t), task)
	if want := "Marta Ruiz needs documents from you: Tax return 2025"; got.subject(t) != want {
		t.Errorf("got subject %q, want %q", got.subject(t), want)
	}
	const want = `Hello Ana,

This is a friendly reminder that Marta Ruiz is waiting for documents from you for “Tax return 2025”. If you have them at hand, uploading them takes only a few minutes.

Message from Marta Ruiz:
Dear Ana,
please hurry.

Please send again:
- Payslip
  Reason: page 2 is missing

Still missing:
- Passport
  both sides

Optional, if you have them:
- Lease

Deadline: Sunday, 6 September 2026 (125 days left)

You can upload the documents here:
https://example.com/u/secret?a=1&b=2

The link works until Monday, 1 June 2026, 06:00 (UTC-4).

Any questions? Just reply to this message: your answer goes to Marta Ruiz.

This message was sent automatically on behalf of Marta Ruiz and is meant for Ana. The link is personal; please do not pass it on.
`
	if got.text != want {
		t.Errorf("got text\n%s\nwant\n%s", got.text, want)
	}
	for _, part := range []string{
		`<html lang="en" dir="ltr">`, "Payslip</strong>", "Reason: page 2 is missing", "Passport</strong>", "both sides", "Lease</span>",
		"<strong>Sunday, 6 September 2026</strong>", `href="https://example.com/u/secret?a=1&amp;b=2"`, "Monday, 1 June 2026, 06:00 (UTC-4)",
	} {
		if !strings.Contains(got.html, part) {
			t.Errorf("the HTML lacks %q:\n%s", part, got.html)
		}
	}
	for _, part := range []string{"Diploma", "Photo"} {
		if strings.Contains(got.text+got.html, part) {
			t.Errorf("%q is asked for, which has come already", part)
		}
	}
}

func TestComposeWithLittle(t *testing.T) {
	bare := scheduler.Task{
		Request: scheduler.Request{ID: "r", RecipientEmail: "ana@example.net"},
		Link:    scheduler.Link{URL: "http://localhost:8080/u"},
		Slot:    cadence.Slot{Name: "0d", Due: time.Date(2026, 5, 4, 7, 0, 0, 0, time.UTC)},
	}
	_, got := compose(t, composer(t), bare)
	if want := "Example needs documents from you"; got.subject(t) != want {
		t.Errorf("got subject %q, want %q", got.subject(t), want)
	}
	const want = `Hello,

Example asks you for documents. Please upload them through your personal link.

You can upload the documents here:
http://localhost:8080/u

This message was sent automatically on behalf of Example. The link is personal; please do not pass it on.
`
	if got.text != want {
		t.Errorf("got text\n%s\nwant\n%s", got.text, want)
	}
	if got.Get("To") != "<ana@example.net>" || got.Get("Reply-To") != "" {
		t.Errorf("got %v", got.Header)
	}
}

// TestM19 is the row M19, and the other headers that every mail has.
func TestM19(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) {
		cfg.MessageIDDomain = "m\u00fcnchen.example"
		cfg.IdempotencyHeader = "Resend-Idempotency-Key"
		cfg.Unsubscribe = "https://example.com/stop"
	})
	task := task()
	task.Zone = time.FixedZone("", 2*60*60)
	msg, got := compose(t, m, task)
	id, _, _ := strings.Cut(msg.MessageID, "@")
	want := mail.Header{
		"Auto-Submitted":           {"auto-generated"},
		"X-Auto-Response-Suppress": {"All"},
		"From":                     {`"Example" <reminders@example.com>`},
		"To":                       {`"Ana" <ana@example.net>`},
		"Reply-To":                 {`"Marta Ruiz" <marta@example.org>`},
		"Date":                     {"Mon, 04 May 2026 09:00:00 +0200"},
		"Message-Id":               {"<" + id + "@xn--mnchen-3ya.example>"},
		"Resend-Idempotency-Key":   {id},
		"List-Unsubscribe":         {"<https://example.com/stop>"},
		"List-Unsubscribe-Post":    {"List-Unsubscribe=One-Click"},
		"Mime-Version":             {"1.0"},
		"In-Reply-To":              {got.Get("References")},
	}
	for name, values := range want {
		if !slices.Equal(got.Header[name], values) {
			t.Errorf("%s: got %q, want %q", name, got.Header[name], values)
		}
	}
	for name := range got.Header {
		if _, ok := want[name]; !ok && !slices.Contains([]string{"Subject", "References", "Content-Type"}, name) {
			t.Errorf("unexpected header %s: %q", name, got.Header[name])
		}
	}
	if len(id) < 32 || got.Get("References") == got.Get("Message-Id") {
		t.Errorf("got Message-ID %q, References %q", msg.MessageID, got.Get("References"))
	}
}

// TestDerived: equal tasks give equal bytes on every attempt and in every process; another
// request, link or slot gives another identity, and the thread is the request's.
func TestDerived(t *testing.T) {
	first, header := compose(t, composer(t), task())
	again := task()
	again.Attempt, again.ClaimID, again.ClaimedAt = 7, scheduler.ClaimID{1}, time.Now()
	second, _ := compose(t, composer(t), again)
	if !bytes.Equal(first.Data, second.Data) || first.MessageID != second.MessageID {
		t.Error("a second attempt differs from the first")
	}
	if second.ClaimID != again.ClaimID {
		t.Error("the claim is not the task's")
	}
	others := map[string]func(*scheduler.Task){
		"request": func(t *scheduler.Task) { t.Request.ID = "req-2" },
		"link":    func(t *scheduler.Task) { t.Link.CreatedAt = t.Link.CreatedAt.Add(time.Microsecond) },
		"slot":    func(t *scheduler.Task) { t.Slot.Name = "7d" },
		// Parts must not run into each other.
		"borders": func(t *scheduler.Task) { t.Request.ID, t.Slot.Name = "req-13", "d" },
	}
	for name, change := range others {
		other := task()
		change(&other)
		msg, otherHeader := compose(t, composer(t), other)
		if msg.MessageID == first.MessageID || bytes.Contains(msg.Data, []byte("boundary="+strings.Split(first.MessageID, "@")[0])) {
			t.Errorf("another %s has the same identity", name)
		}
		same := otherHeader.Get("References") == header.Get("References")
		if want := other.Request.ID == task().Request.ID; same != want {
			t.Errorf("another %s is in the same thread: %t, want %t", name, same, want)
		}
	}
	elsewhere := task()
	elsewhere.Link.CreatedAt = elsewhere.Link.CreatedAt.In(time.FixedZone("", 3600))
	if msg, _ := compose(t, composer(t), elsewhere); msg.MessageID != first.MessageID {
		t.Error("the identity depends on the location of an instant")
	}
}

// TestM13 is the row M13: no CR or LF from data reaches a header or a command.
func TestM13(t *testing.T) {
	evil := "Ana\r\nBcc: evil@example.net\r\n\r\nbody"
	fields := map[string]func(*scheduler.Task){
		"recipient name": func(t *scheduler.Task) { t.Request.RecipientName = evil },
		"sender name":    func(t *scheduler.Task) { t.Request.SenderName = evil },
		"title":          func(t *scheduler.Task) { t.Request.Title = evil },
		"title, NUL":     func(t *scheduler.Task) { t.Request.Title = "a\x00b\u0085c\u2028Bcc: evil@example.net" },
		"message":        func(t *scheduler.Task) { t.Request.Message = evil },
		"reply to":       func(t *scheduler.Task) { t.Request.ReplyTo = evil },
		"reply to name":  func(t *scheduler.Task) { t.Request.ReplyTo = "\"Ana\r\nBcc: evil\" <marta@example.org>" },
		"document": func(t *scheduler.Task) {
			t.Documents = []scheduler.Document{{Title: evil, Description: evil, State: scheduler.DocumentMissing}}
		},
		"request id": func(t *scheduler.Task) { t.Request.ID = evil },
		"slot":       func(t *scheduler.Task) { t.Slot.Name = evil },
		"locale":     func(t *scheduler.Task) { t.Request.Locale = evil },
		"names with quotes": func(t *scheduler.Task) {
			t.Request.RecipientName = `Ana" <evil@example.net>, "x\`
		},
		"encoded name": func(t *scheduler.Task) { t.Request.RecipientName = "=?utf-8?q?Ana=0D=0ABcc:_evil@example.net?=" },
		"long word":    func(t *scheduler.Task) { t.Request.RecipientName = strings.Repeat("x", 5000) },
		"long title":   func(t *scheduler.Task) { t.Request.Title = strings.Repeat("\u00fc", 5000) },
		"bad UTF-8":    func(t *scheduler.Task) { t.Request.Title = "a\xffb" },
	}
	srv := smtptest.Start(t, smtptest.Config{})
	m := newMailer(t, local(srv))
	for name, change := range fields {
		t.Run(name, func(t *testing.T) {
			task := task()
			change(&task)
			msg, got := compose(t, m, task)
			if _, ok := got.Header["Bcc"]; ok {
				t.Errorf("a Bcc header came in:\n%s", msg.Data)
			}
			for _, header := range []string{"To", "From", "Reply-To", "Subject", "Message-Id"} {
				if len(got.Header[header]) > 1 {
					t.Errorf("%d headers %s", len(got.Header[header]), header)
				}
			}
			if to, err := got.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != "ana@example.net" {
				t.Errorf("To is %v, %v", to, err)
			}
			if strings.ContainsAny(got.subject(t), "\r\n") {
				t.Errorf("subject %q", got.subject(t))
			}
			expect(t, deliver(t, m, msg), sent, "", 250, "")
			accepted := srv.Accepted()
			last := accepted[len(accepted)-1]
			if !slices.Equal(last.To, []string{"ana@example.net"}) || !bytes.Equal(last.Data, msg.Data) {
				t.Errorf("went to %v", last.To)
			}
		})
	}
}
