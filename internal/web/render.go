package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"nudged/scheduler"
)

//go:embed templates
var files embed.FS

// views are the pages, each a template of its own inside the common layout.
type views struct {
	pages  map[string]*template.Template
	style  template.CSS
	policy string // Content-Security-Policy of pages that hold no mail
}

// mailPolicy is the Content-Security-Policy of pages that hold a mail: a mail's frame is bound to
// the policy of the page, and the styles of a mail are written at its elements.
const mailPolicy = "style-src 'unsafe-inline'; " + commonPolicy

// commonPolicy lets a page load nothing but the icon in itself. No script runs.
const commonPolicy = "default-src 'none'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func parseViews() (views, error) {
	style, err := files.ReadFile("templates/style.css")
	if err != nil {
		return views{}, fmt.Errorf("read the style sheet: %w", err)
	}
	sum := sha256.Sum256(style)
	v := views{
		pages:  map[string]*template.Template{},
		style:  template.CSS(style), //nolint:gosec // a file of this package
		policy: "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " + commonPolicy,
	}
	for _, name := range []string{"overview", "request", "notice", "inbox", "mail"} {
		v.pages[name], err = template.ParseFS(files, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return views{}, fmt.Errorf("read the templates of the pages: %w", err)
		}
	}
	return v, nil
}

// page is what every page has.
type page struct {
	Root     string // relative address of the overview
	Search   string // the request id that was asked for
	HasInbox bool
	Style    template.CSS
	Build    Build

	now  time.Time
	zone *time.Location
}

func (s *Server) page(root string) page {
	return page{
		Root: root, HasInbox: s.cfg.Pages.Inbox != nil, Style: s.views.style, Build: s.cfg.Build,
		now: time.Now(), zone: s.cfg.Pages.Zone(),
	}
}

// AsOf is the instant that the page shows.
func (p page) AsOf() *moment { return p.Moment(p.now) }

// Path leads to the page of a request, whatever its id is made of.
func (p page) Path(id string) string { return p.Root + "requests/" + url.PathEscape(id) }

// Number groups digits.
func (page) Number(n int) string { return number(n) }

// Plus writes a count that may have been cut short.
func (page) Plus(n int, cut bool) string { return plus(n, cut) }

// Zone is the name of the zone that the page's instants are written in.
func (p page) Zone() string { return p.zone.String() }

// moment is one instant, written for machines and for people.
type moment struct {
	UTC, Local, Ago string
}

// Moment returns nil for the zero instant.
func (p page) Moment(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	m := &moment{UTC: t.UTC().Format(time.RFC3339Nano), Local: scheduler.Local(t, p.zone)}
	if !t.Equal(scheduler.Forever()) && !t.Equal(scheduler.BeforeAll()) {
		m.Ago = ago(p.now.Sub(t))
	}
	return m
}

// ago says roughly how long before now something was, or after, where d is negative.
func ago(d time.Duration) string {
	switch {
	case d.Abs() < time.Second:
		return "now"
	case d < 0:
		return "in " + span(-d)
	default:
		return span(d) + " ago"
	}
}

// span writes a length of time in one unit, rounded down.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return count(int(d/time.Second), "second")
	case d < 2*time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour")
	default:
		return count(int(d/(24*time.Hour)), "day")
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// number groups the digits of a number by three.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plus marks a number that was cut short.
func plus(n int, cut bool) string {
	if cut {
		return number(n) + "+"
	}
	return number(n)
}

// noticePage says one thing in plain words.
type noticePage struct {
	page

	Title, Text, Hint string
}

// write renders a page as a whole before the first byte leaves, so that none is cut short.
func (s *Server) write(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := s.views.pages[name].ExecuteTemplate(&body, "layout", data); err != nil {
		s.cfg.Logger.Error("a page cannot be written", "err", err)
		answer(w, http.StatusInternalServerError, "this page cannot be written; the log says why")
		return
	}
	policy := s.views.policy
	if bytes.Contains(body.Bytes(), []byte("<iframe")) { // ours: in data it is written &lt;iframe
		policy = mailPolicy
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := body.WriteTo(w); err != nil {
		s.cfg.Logger.Debug("a page is cut off", "err", err)
	}
}
