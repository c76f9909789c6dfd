package mailer

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"nudged/scheduler"
)

// maxHeaderText bounds a subject and a display name, in characters. A word of that many still fits in a
// line of 998 bytes (RFC 5322 section 2.1.1), even where each is escaped.
const maxHeaderText = 480

// usualHeader is what header and boundaries of a mail usually stay below, in bytes.
const usualHeader = 1500

// Compose implements scheduler.Mailer. The bytes depend on the task, the configuration and
// the default locale alone.
func (m *Mailer) Compose(task scheduler.Task) (msg scheduler.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			msg, err = scheduler.Message{}, composeError(scheduler.ReasonTemplateError, fmt.Errorf("panic: %v", r))
		}
	}()
	to, err := parseRecipient(task.Request.RecipientEmail)
	if err != nil {
		return scheduler.Message{}, composeError(scheduler.ReasonInvalidAddress, fmt.Errorf("recipient: %w", err))
	}
	if err := checkURL(task.Link.URL); err != nil {
		return scheduler.Message{}, composeError(scheduler.ReasonTemplateError, err)
	}
	language := m.languages.Load().of(task.Request.Locale)
	scratch, _ := m.scratch.Get().(*buffers)
	defer m.scratch.Put(scratch)
	body, err := language.render(m.templateData(task, language), scratch)
	if err != nil {
		return scheduler.Message{}, composeError(scheduler.ReasonTemplateError, err)
	}
	id := identity(task.Request.ID, task.Link.CreatedAt, task.Slot.Name)
	var data bounded
	data.Grow(usualHeader + (len(body.text)+len(body.html))*9/8) // quoted-printable grows by the ends of long lines
	if err := writeMessage(&data, m.fields(task, id, body.subject), m.addresses(task.Request, to), id, body); err != nil {
		return scheduler.Message{}, composeError(scheduler.ReasonTemplateError, err)
	}
	return scheduler.Message{
		ClaimID: task.ClaimID, From: m.sender, To: to, MessageID: m.messageID(id),
		UTF8: !ascii(to), Data: data.Bytes(),
	}, nil
}

func composeError(reason scheduler.Reason, err error) error {
	return &scheduler.ComposeError{Reason: reason, Err: err}
}

// fields are the header of the mail, but for the addresses.
func (m *Mailer) fields(task scheduler.Task, id, subject string) []field {
	fields := []field{
		{"Auto-Submitted", "auto-generated"}, // RFC 3834 section 5
		{"Date", task.Slot.Due.In(zoneOf(task)).Format(time.RFC1123Z)},
		{"MIME-Version", "1.0"},
		{"Message-ID", "<" + m.messageID(id) + ">"},
		{"Subject", subject},
		{"X-Auto-Response-Suppress", "All"},
	}
	if m.cfg.NoThread {
		fields = append(fields, field{"X-Entity-Ref-ID", id}) // keeps Gmail from making a thread of like subjects
	} else {
		root := "<" + m.messageID(threadRoot(task.Request.ID)) + ">"
		fields = append(fields, field{"In-Reply-To", root}, field{"References", root})
	}
	if link := unsubscribe(m.cfg.Unsubscribe, task.Request.ID); link != "" {
		fields = append(fields, field{"List-Unsubscribe", "<" + link + ">"})
		if strings.HasPrefix(link, "https:") {
			fields = append(fields, field{"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"}) // RFC 8058 section 3.1
		}
	}
	if m.cfg.IdempotencyHeader != "" {
		fields = append(fields, field{m.cfg.IdempotencyHeader, id})
	}
	return fields
}

// addresses are the fields of who writes to whom.
func (m *Mailer) addresses(request scheduler.Request, to string) []field {
	recipient := mail.Address{Name: headerText(request.RecipientName), Address: to}
	fields := []field{{"From", m.cfg.From.String()}, {"To", recipient.String()}}
	if address, ok := replyTo(request); ok {
		fields = append(fields, field{"Reply-To", address.String()})
	}
	return fields
}

func (m *Mailer) messageID(id string) string { return id + "@" + m.cfg.MessageIDDomain }

// replyTo is where an answer goes: to the professional, if the request has a usable address.
func replyTo(request scheduler.Request) (mail.Address, bool) {
	address, err := parseAddress(request.ReplyTo)
	if err != nil || !ascii(address.Address) {
		return mail.Address{}, false
	}
	address.Name = headerText(cmp.Or(address.Name, request.SenderName))
	return address, true
}

// maxUnsubscribe bounds the URL in bytes, so that its line stays far below 998 (RFC 5322 section
// 2.1.1): it cannot be folded.
const maxUnsubscribe = 900

// unsubscribe fills the id of the request into the configured URL. It is percent-encoded but for
// the unreserved characters of RFC 3986, so it can neither end the header nor change the rest of
// the URL. A URL that would become too long is left out.
func unsubscribe(pattern, requestID string) string {
	if !strings.Contains(pattern, "{request_id}") {
		return pattern
	}
	id := strings.ReplaceAll(url.QueryEscape(requestID), "+", "%20")
	link := strings.ReplaceAll(pattern, "{request_id}", id)
	if len(link) > maxUnsubscribe {
		return ""
	}
	return link
}

// checkURL refuses a link that a mail must not carry. The error does not repeat it: it is a secret.
func checkURL(link string) error {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return errors.New("the link is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the link is not an http or https URL")
	}
	return nil
}

// headerText makes text fit for a header: one line, at most maxHeaderText characters.
func headerText(text string) string {
	characters := []rune(oneLine(text))
	return string(characters[:min(len(characters), maxHeaderText)])
}
