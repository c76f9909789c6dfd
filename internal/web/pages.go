package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"nudged/scheduler"
)

// pageTimeout bounds what a page waits for: its turn and the answer of the database.
const pageTimeout = 1500 * time.Millisecond

// Pages gives the status page its facts. Inbox may be nil; everything else is needed. The functions
// may be called by several goroutines at once.
type Pages struct {
	// Overview tells how things stand.
	Overview func(context.Context) (Overview, error)
	// Request tells all about one request. One that nothing is known of is no error: it has neither
	// Explanation.Input.Request nor Explanation.Past.
	Request func(ctx context.Context, id string) (Request, error)
	// Compose writes the mail of a slot. It returns a *scheduler.ComposeError or nil.
	Compose func(scheduler.Task) (scheduler.Message, error)
	// Settle returns the commands by which a person settles an unknown outcome either way.
	Settle func(scheduler.Reminder) (sent, notSent string)
	// Zone is where instants are shown that belong to no single request.
	Zone func() *time.Location
	// Inbox is the folder of the mails that a local inbox keeps, one .eml file each.
	Inbox fs.FS
	// ShowAddresses shows e-mail addresses and upload links, which are masked otherwise.
	ShowAddresses bool
}

func (p *Pages) validate() error {
	if p != nil && (p.Overview == nil || p.Request == nil || p.Compose == nil || p.Settle == nil || p.Zone == nil) {
		return errors.New("web: pages need overview, request, compose, settle and zone")
	}
	return nil
}

// Overview is how things stand. Counts stop at Limit.
type Overview struct {
	Now         time.Time // by the database's clock
	Environment string
	Trouble     error // why nothing is sent, but for the relay; nil: passes succeed
	RelayUp     bool
	LastPass    time.Time // zero: none yet
	Open        int       // requests
	OnTime      int       // slots due and not yet sent
	Late        int       // those that wait for longer than LateAfter
	LateAfter   time.Duration
	Oldest      time.Time // due of the oldest slot that waits; zero: there is none
	Unplanned   int       // requests that the next passes look at
	Limit       int
	Unknown     int                  // all outcomes that are unknown
	Unsettled   []scheduler.Reminder // the oldest of them
	Outcomes    []scheduler.Reminder // the last ones, newest first
	Mistakes    []Mistake
	Upcoming    []Day
}

// Mistake is a request whose row has a mistake.
type Mistake struct {
	RequestID string
	Problem   scheduler.Problem
	Value     string // what the row says; empty where that may be an address
}

// Row has the words for it.
func (m Mistake) Row() scheduler.Mistake {
	return scheduler.Mistake{Problem: m.Problem, Value: m.Value}
}

// Day is one civil day to come.
type Day struct {
	Begins    time.Time
	Reminders int
}

// Request is all about one request.
type Request struct {
	Explanation scheduler.Explanation
	Documents   []scheduler.Document
	Language    string          // that the mail is written in; empty: unknown
	Task        *scheduler.Task // whose mail is shown; nil: there is none
	WasSent     bool            // it went out already; otherwise it is the next one
}

// routes adds the paths of the pages.
func (s *Server) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /requests", s.search)
	mux.HandleFunc("GET /requests/{id}", s.request)
	if s.cfg.Pages.Inbox != nil {
		mux.HandleFunc("GET /inbox", s.inbox)
		mux.HandleFunc("GET /inbox/{file}", s.mail)
	}
	mux.HandleFunc("GET /", s.missing)
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	var o Overview
	err := s.read(r, func(ctx context.Context) (err error) {
		o, err = s.cfg.Pages.Overview(ctx)
		return err
	})
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.write(w, http.StatusOK, "overview", s.newOverviewPage(s.page(root(r)), o))
}

// search leads to the page of a request. The address is relative, so that it is right behind a
// proxy that serves nudged below a path of its own.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	to := "./"
	if id := strings.TrimSpace(r.URL.Query().Get("id")); id != "" {
		to = "requests/" + url.PathEscape(id)
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (s *Server) request(w http.ResponseWriter, r *http.Request) {
	var request Request
	id := r.PathValue("id")
	err := s.read(r, func(ctx context.Context) (err error) {
		if !utf8.ValidString(id) || strings.Contains(id, "\x00") {
			return nil // no text of the database is like this
		}
		request, err = s.cfg.Pages.Request(ctx, id)
		return err
	})
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	e := request.Explanation
	page := s.page(root(r))
	page.Search = id
	if e.Input.Request == nil && len(e.Past) == 0 {
		s.write(w, http.StatusNotFound, "notice", noticePage{
			page: page, Title: "There is no such request",
			Text: "The database has no request with the id " + id + ", and the ledger has no reminder of one.",
			Hint: "Ids are compared letter by letter, capital and small letters apart.",
		})
		return
	}
	s.write(w, http.StatusOK, "request", s.newRequestPage(page, id, request))
}

func (s *Server) missing(w http.ResponseWriter, r *http.Request) {
	s.write(w, http.StatusNotFound, "notice", noticePage{
		page: s.page(root(r)), Title: "There is no such page",
		Text: "Nothing lies at " + r.URL.Path + ".",
		Hint: "The overview and the field for a request's id lead to all pages there are.",
	})
}

// unavailable tells that the facts cannot be had now. The reason goes to the log alone: it may name
// hosts and users.
func (s *Server) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // whoever asked has gone
	}
	if s.worthTelling() {
		s.cfg.Logger.Warn("a page is not shown; more of them are not logged for a minute", "err", err)
	}
	w.Header().Set("Retry-After", "5")
	s.write(w, http.StatusServiceUnavailable, "notice", noticePage{
		page: s.page(root(r)), Title: "The database does not answer",
		Text: "This page reads the database, which gave no answer in time.",
		Hint: "Nothing is lost: reminders wait, and outcomes are kept until they can be recorded. The log says what is wrong; metrics and health work without the database.",
	})
}

// worthTelling is true once in sayAgain.
func (s *Server) worthTelling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.told) < sayAgain {
		return false
	}
	s.told = time.Now()
	return true
}

// read asks for the facts of a page. One page is read at a time: whoever loads pages in haste
// takes no more than one connection to the database away from the passes.
func (s *Server) read(r *http.Request, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.reading }()
	return ask(ctx)
}

// root is the relative address of the overview, seen from the path that was asked for.
func root(r *http.Request) string {
	return strings.Repeat("../", max(0, strings.Count(r.URL.EscapedPath(), "/")-1))
}
