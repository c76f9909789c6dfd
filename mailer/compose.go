package mailer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"time"

	gomail "github.com/wneessen/go-mail"

	"nudged/cadence"
	"nudged/scheduler"
)

// maxHeaderText bounds a subject and a display name, in characters. A word of that many still
// fits in a line of 998 bytes (RFC 5322 section 2.1.1).
const maxHeaderText = 500

// Compose implements scheduler.Mailer. The bytes depend on the task and the configuration alone.
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
	text := m.templates.of(task.Request.Locale)
	body, err := text.render(m.templateData(task, text.locale))
	if err != nil {
		return scheduler.Message{}, composeError(scheduler.ReasonTemplateError, err)
	}
	id := identity(task.Request.ID, task.Link.CreatedAt, task.Slot.Name)
	var data bytes.Buffer
	if _, err := m.build(task, to, id, body).WriteTo(&data); err != nil {
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

// build puts the mail together. Both parts are quoted-printable, so no relay needs 8BITMIME.
func (m *Mailer) build(task scheduler.Task, to, id string, body content) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary(id))
	msg.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, &m.cfg.From)
	msg.SetAddrHeaderFromMailAddress(gomail.HeaderTo, &mail.Address{Name: headerText(task.Request.RecipientName), Address: to})
	if replyTo, err := parseAddress(task.Request.ReplyTo); err == nil && ascii(replyTo.Address) {
		replyTo.Name = headerText(cmp.Or(replyTo.Name, task.Request.SenderName))
		msg.SetAddrHeaderFromMailAddress(gomail.HeaderReplyTo, &replyTo)
	}
	root := "<" + m.messageID(threadRoot(task.Request.ID)) + ">"
	msg.SetMessageIDWithValue(m.messageID(id))
	msg.SetGenHeader(gomail.HeaderInReplyTo, root)
	msg.SetGenHeader(gomail.HeaderReferences, root)
	msg.SetDateWithValue(task.Slot.Due.In(zoneOf(task)))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834 section 5
	msg.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	if m.cfg.Unsubscribe != "" {
		msg.SetGenHeader(gomail.HeaderListUnsubscribe, "<"+m.cfg.Unsubscribe+">")
	}
	if m.cfg.IdempotencyHeader != "" {
		msg.SetGenHeader(gomail.Header(m.cfg.IdempotencyHeader), id)
	}
	msg.Subject(body.subject)
	msg.SetBodyString(gomail.TypeTextPlain, body.text)
	msg.AddAlternativeString(gomail.TypeTextHTML, body.html)
	return msg
}

func (m *Mailer) messageID(id string) string { return id + "@" + m.cfg.MessageIDDomain }

// templateData gives the templates what they need of the task.
func (m *Mailer) templateData(task scheduler.Task, locale string) TemplateData {
	data := TemplateData{
		Locale:        locale,
		RecipientName: oneLine(task.Request.RecipientName),
		SenderName:    cmp.Or(oneLine(task.Request.SenderName), m.cfg.From.Name, m.cfg.From.Address),
		Title:         oneLine(task.Request.Title),
		Message:       task.Request.Message,
		URL:           task.Link.URL,
		Deadline:      midnight(task.Request.Deadline),
		Slot:          task.Slot.Name,
		First:         task.Slot.Name == "0d",
		Number:        task.Number,
	}
	if !task.Link.ExpiresAt.IsZero() {
		data.ExpiresAt = task.Link.ExpiresAt.In(zoneOf(task))
	}
	for _, d := range task.Documents {
		document := TemplateDocument{Title: oneLine(d.Title), Description: d.Description, Required: d.Required}
		switch {
		case d.State == scheduler.DocumentRejected:
			document.Reason = d.RejectionReason
			data.Rejected = append(data.Rejected, document)
		case d.State == scheduler.DocumentMissing && d.Required:
			data.Missing = append(data.Missing, document)
		case d.State == scheduler.DocumentMissing:
			data.Optional = append(data.Optional, document)
		}
	}
	return data
}

func zoneOf(task scheduler.Task) *time.Location {
	if task.Zone == nil {
		return time.UTC
	}
	return task.Zone
}

// midnight turns a date into an instant for formatting. In UTC every date has a midnight.
func midnight(d cadence.Date) time.Time {
	if d.IsZero() {
		return time.Time{}
	}
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
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
