package mailer

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"nudged/cadence"
	"nudged/scheduler"
)

// TemplateData is what a template sees. Its fields stay: new ones may come, none goes and none
// changes its meaning. docs/templates.md lists them.
//
// Every text that stands in one line is one line, whatever the application wrote.
type TemplateData struct {
	Locale string // tag of the language in use, in lower case, such as fr or pt-br
	Dir    string // direction of its script: ltr or rtl

	RecipientName string // for whom; may be empty
	SenderName    string // who asks: the professional; where the request has none, the name or address in From
	CanReply      bool   // an answer reaches the sender
	Title         string // may be empty
	Message       string // what the professional wrote, in lines; may be empty
	URL           string // the upload link: http or https

	Slot   string // such as 3d
	Number int    // ordinal of this mail among those of the link, 1 for the first
	First  bool   // this is the request itself (slot 0d), not a reminder of it
	IsLast bool   // as things stand no mail follows: the link expires or the series ends before
	Thread bool   // mails of a request are to stand in one thread, so their subjects should be equal

	Deadline  time.Time // a date, at midnight UTC; zero: none
	DaysLeft  int       // calendar days to the deadline in the recipient's zone; 0 today, negative behind it, 0 without one
	DaysLate  int       // calendar days since the deadline; 0 until it has passed
	ExpiresAt time.Time // of the link, in the recipient's zone; zero: never

	Rejected    []TemplateDocument // handed in and refused
	Missing     []TemplateDocument // required and not handed in
	Optional    []TemplateDocument // not required and not handed in
	Outstanding int                // how many Rejected and Missing there are
}

// TemplateDocument is one document that is asked for.
type TemplateDocument struct {
	Title       string
	Description string // may be empty
	Required    bool
	Reason      string // why it was refused; empty where it was not, or nobody said
}

// templateData gives the templates what they need of the task.
func (m *Mailer) templateData(task scheduler.Task, l *localised) TemplateData {
	data := TemplateData{
		Locale:        l.locale,
		Dir:           l.direction(),
		RecipientName: oneLine(task.Request.RecipientName),
		SenderName:    cmp.Or(oneLine(task.Request.SenderName), m.cfg.From.Name, m.cfg.From.Address),
		Title:         oneLine(task.Request.Title),
		Message:       lines(task.Request.Message),
		URL:           task.Link.URL,
		Slot:          task.Slot.Name,
		Number:        task.Number,
		First:         task.Slot.Name == "0d",
		IsLast:        task.Last,
		Thread:        !m.cfg.NoThread,
	}
	_, data.CanReply = replyTo(task.Request)
	if deadline := task.Request.Deadline; !deadline.IsZero() {
		data.Deadline = midnight(deadline)
		data.DaysLeft = deadline.DaysSince(today(task))
		data.DaysLate = max(0, -data.DaysLeft)
	}
	if expires := task.Link.ExpiresAt; !expires.IsZero() && expires.Before(scheduler.Forever()) {
		data.ExpiresAt = expires.In(zoneOf(task))
	}
	for _, d := range task.Documents {
		document := TemplateDocument{Title: oneLine(d.Title), Description: oneLine(d.Description), Required: d.Required}
		switch {
		case d.State == scheduler.DocumentRejected:
			document.Reason = oneLine(d.RejectionReason)
			data.Rejected = append(data.Rejected, document)
		case d.State == scheduler.DocumentMissing && d.Required:
			data.Missing = append(data.Missing, document)
		case d.State == scheduler.DocumentMissing:
			data.Optional = append(data.Optional, document)
		}
	}
	data.Outstanding = len(data.Rejected) + len(data.Missing)
	return data
}

// today is the date that the mail counts days from: that of the recipient when the slot was taken
// up. It is not the present one, because all attempts are equal.
func today(task scheduler.Task) cadence.Date {
	since := task.Since
	if since.IsZero() {
		since = task.Slot.Due
	}
	return cadence.DateOf(since.In(zoneOf(task)))
}

func zoneOf(task scheduler.Task) *time.Location {
	if task.Zone == nil {
		return time.UTC
	}
	return task.Zone
}

// midnight turns a date into an instant for formatting. In UTC every date has a midnight.
func midnight(d cadence.Date) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
}

// lines makes a text of several lines fit for a mail: valid UTF-8, \n between lines, no other
// control characters, no blank lines around it.
func lines(text string) string {
	if text == "" {
		return ""
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}
