package mailer_test

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	_ "time/tzdata"

	"mime/quotedprintable"

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
	if want := "Reminder: Marta Ruiz is waiting for your documents: Tax return 2025"; got.subject(t) != want {
		t.Errorf("got subject %q, want %q", got.subject(t), want)
	}
	const want = `Hello Ana,

Marta Ruiz is still waiting for documents from you: Tax return 2025.

Dear Ana,
please hurry.

Please send again:
- Payslip (refused: page 2 is missing)

Still missing:
- Passport - both sides

Optional, if you have them:
- Lease

They are needed by Sunday, 6 September 2026.

Upload them here:
https://example.com/u/secret?a=1&b=2

The link works until Monday, 1 June 2026, 06:00 -04.

This mail was sent automatically on behalf of Marta Ruiz.
`
	if got.text != want {
		t.Errorf("got text\n%s\nwant\n%s", got.text, want)
	}
	for _, part := range []string{
		`<html lang="en">`, "Payslip <em>(refused: page 2 is missing)</em>", "Passport<br><small>both sides</small>", "<li>Lease</li>",
		"<strong>Sunday, 6 September 2026</strong>", `href="https://example.com/u/secret?a=1&amp;b=2"`, "Monday, 1 June 2026, 06:00 -04",
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
	if want := "Example asks you for documents"; got.subject(t) != want {
		t.Errorf("got subject %q, want %q", got.subject(t), want)
	}
	const want = `Hello,

Example asks you for documents.

Upload them here:
http://localhost:8080/u

This mail was sent automatically on behalf of Example.
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

func TestAddresses(t *testing.T) {
	m := composer(t)
	good := map[string]string{
		"ana@example.net":                     "ana@example.net",
		" ana@example.net ":                   "ana@example.net",
		"<ana@example.net>":                   "ana@example.net",
		"ana+tax@example.net":                 "ana+tax@example.net",
		"ana@localhost":                       "ana@localhost",
		"Ana@Example.NET":                     "Ana@Example.NET",
		"ana@b\u00fccher.example":             "ana@xn--bcher-kva.example",
		"ana@B\u00dcCHER.example":             "ana@xn--bcher-kva.example",
		"\u30e6\u30fc\u30b6\u30fc@example.jp": "\u30e6\u30fc\u30b6\u30fc@example.jp",
		`"ana b"@example.net`:                 "ana b@example.net",
	}
	for text, want := range good {
		task := task()
		task.Request.RecipientEmail = text
		msg, err := m.Compose(task)
		if err != nil || msg.To != want || msg.UTF8 != (want[0] >= 0x80) {
			t.Errorf("%q: got %q, UTF8 %t, %v, want %q", text, msg.To, msg.UTF8, err, want)
		}
	}
	bad := []string{
		"", "@", "ana", "ana@", "@example.net", "ana@example.net, bo@example.net", "ana@example.net;bo@example.net",
		"Ana <ana@example.net>", "ana@example.net\r\nBcc: evil@example.net", "\"ana\r\n\"@example.net", "ana@exa mple.net",
		"friends: ana@example.net;", "ana@\u00fc..example", "ana@example\u3002net@", strings.Repeat("a", 65) + "@example.net",
		"ana@" + strings.Repeat("a.", 130) + "net",
	}
	for _, text := range bad {
		task := task()
		task.Request.RecipientEmail = text
		if err := refuses(t, m, task, scheduler.ReasonInvalidAddress); err != nil && len(text) > 3 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the address: %v", err)
		}
	}
}

func TestReplyTo(t *testing.T) {
	m := composer(t)
	for text, want := range map[string]string{
		"marta@example.org":               `"Marta Ruiz" <marta@example.org>`,
		"Office <marta@example.org>":      `"Office" <marta@example.org>`,
		"marta@b\u00fccher.example":       `"Marta Ruiz" <marta@xn--bcher-kva.example>`,
		"":                                "",
		"not an address":                  "",
		"a@example.org, b@example.org":    "",
		"m\u00e4rta@example.org":          "", // would need SMTPUTF8
		"marta@example.org\r\nBcc: a@b.c": "",
	} {
		task := task()
		task.Request.ReplyTo = text
		if _, got := compose(t, m, task); got.Get("Reply-To") != want {
			t.Errorf("%q: got Reply-To %q, want %q", text, got.Get("Reply-To"), want)
		}
	}
}

func TestLinks(t *testing.T) {
	m := composer(t)
	for _, link := range []string{"", "example.com/u", "/u", "https://", "javascript:alert(1)", "ftp://example.com/u", "http://exa mple.com/\x00", "https://%zz"} {
		task := task()
		task.Link.URL = link
		if err := refuses(t, m, task, scheduler.ReasonTemplateError); err != nil && link != "" && strings.Contains(err.Error(), link) {
			t.Errorf("the error repeats the link: %v", err)
		}
	}
}

// folder is a set of templates with one file replaced in each locale.
func folder(locales ...string) fstest.MapFS {
	files := make(fstest.MapFS)
	for _, locale := range locales {
		files[locale+"/subject.txt"] = &fstest.MapFile{Data: []byte("subject " + locale)}
		files[locale+"/body.txt"] = &fstest.MapFile{Data: []byte("text " + locale + " {{.Locale}} {{.URL}}")}
		files[locale+"/body.html"] = &fstest.MapFile{Data: []byte("<p>html " + locale + "</p>")}
	}
	return files
}

// TestT01 is the row T01: a field that does not exist is an error, and nothing is sent.
func TestT01(t *testing.T) {
	for _, name := range []string{"en/subject.txt", "en/body.txt", "en/body.html"} {
		for _, text := range []string{"{{.Link}}", "{{index .Missing 3}}", "{{.Title.Nope}}", "{{template \"other\"}}", "{{slice .Title 9}}"} {
			files := folder("en")
			files[name] = &fstest.MapFile{Data: []byte(text)}
			m, err := mailer.New(mailer.Config{Host: "relay.example.com", From: example(), Templates: files})
			if err != nil {
				continue // html/template finds a missing template already when it parses
			}
			task := task()
			task.Request.Title = "short"
			if err := refuses(t, m, task, scheduler.ReasonTemplateError); err != nil && !strings.Contains(err.Error(), strings.TrimPrefix(name, "en/")) {
				t.Errorf("the error does not name the file: %v", err)
			}
			m.Close()
		}
	}
	empty := folder("en")
	empty["en/subject.txt"] = &fstest.MapFile{Data: []byte(" \n")}
	refuses(t, composer(t, func(cfg *mailer.Config) { cfg.Templates = empty }), task(), scheduler.ReasonTemplateError)
	noURL := task()
	noURL.Link.URL = ""
	refuses(t, composer(t), noURL, scheduler.ReasonTemplateError)
}

// TestT02 is the row T02: the subject and the text are not HTML, and the HTML is.
func TestT02(t *testing.T) {
	const name = "L'Or\u00e9al & O'Brien <S\u00f6hne>"
	m := composer(t, func(cfg *mailer.Config) {
		cfg.Templates = fstest.MapFS{
			"en/subject.txt": {Data: []byte("{{.SenderName}}\n")},
			"en/body.txt":    {Data: []byte("{{.SenderName}}")},
			"en/body.html":   {Data: []byte("<p>{{.SenderName}}</p>")},
		}
	})
	task := task()
	task.Request.SenderName = name
	_, got := compose(t, m, task)
	if got.subject(t) != name || got.text != name {
		t.Errorf("got subject %q and text %q, want %q", got.subject(t), got.text, name)
	}
	if want := "<p>L&#39;Or\u00e9al &amp; O&#39;Brien &lt;S\u00f6hne&gt;</p>"; got.html != want {
		t.Errorf("got HTML %q, want %q", got.html, want)
	}
}

func TestLocales(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) { cfg.Templates, cfg.Locale = folder("en", "fr", "pt-br", "pt"), "fr" })
	for locale, want := range map[string]string{
		"": "fr", "en": "en", "en-GB": "en", "EN_us": "en", "pt-BR": "pt-br", "pt-PT": "pt", "pt-BR-x-y": "pt-br", "de": "fr", "-": "fr",
	} {
		task := task()
		task.Request.Locale = locale
		_, got := compose(t, m, task)
		if got.subject(t) != "subject "+want || got.text != "text "+want+" "+want+" "+task.Link.URL {
			t.Errorf("%q: got %q, want %s", locale, got.text, want)
		}
	}
}

func TestPanicInTemplate(t *testing.T) {
	// A nil zone deep in a task is the kind of thing that panics while rendering.
	files := folder("en")
	files["en/body.txt"] = &fstest.MapFile{Data: []byte(`{{.ExpiresAt.In nil}}`)}
	refuses(t, composer(t, func(cfg *mailer.Config) { cfg.Templates = files }), task(), scheduler.ReasonTemplateError)
}
