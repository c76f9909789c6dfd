package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
	"nudged/scheduler"
)

var (
	anchor  = time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC)
	now     = anchor.Add(20 * 24 * time.Hour)
	hurtful = `"><script>alert(1)</script>{{.}}` + "\u202e&lt;"
)

// secrets are what no page may tell unless it is asked to.
var secrets = []string{"ann@client.example", "rita@office.example", "per@secret.example", "s3cret"}

// example is one request with everything that a page can show of one.
func example(id string) Request {
	request := scheduler.Request{
		ID: id, AccountID: hurtful, Status: scheduler.StatusPending, RecipientEmail: "ann@client.example", RecipientName: hurtful,
		Title: hurtful, Message: "call per@secret.example, or use https://up.example/s3cret?a=1&b=2", ReplyTo: "rita@office.example",
		SenderName: hurtful, PausedUntil: scheduler.Forever(), PauseReason: "per@secret.example is away", OptedOutAt: now,
		Deadline: cadence.Date{Year: 2026, Month: 4, Day: 1}, TimeZone: hurtful,
	}
	link := scheduler.Link{URL: "https://up.example/s3cret?a=1&b=2", CreatedAt: anchor, ExpiresAt: now.Add(time.Hour), RevokedAt: now}
	reminder := func(slot string, state scheduler.State, reason scheduler.Reason) scheduler.Reminder {
		return scheduler.Reminder{
			RequestID: id, LinkCreatedAt: anchor, Slot: slot, DueAt: anchor.Add(72 * time.Hour), State: state, Reason: reason, Attempt: 2,
			ClaimedBy: hurtful, MessageID: "m@nudged.example", SMTPCode: 550, SMTPReply: hurtful + " per@secret.example",
			Recipient: "ann@client.example", HandedOffAt: anchor.Add(73 * time.Hour), FinishedAt: anchor.Add(74 * time.Hour),
			RetryAt: now.Add(time.Minute),
		}
	}
	older := reminder("14d", scheduler.StateSkipped, scheduler.ReasonLinkReplaced)
	older.LinkCreatedAt = anchor.Add(-time.Hour)
	next := cadence.Slot{Name: "28d", Due: anchor.Add(28 * 24 * time.Hour)}
	past := []scheduler.Reminder{
		older, reminder("3d", scheduler.StateSent, ""), reminder("7d", scheduler.StateUnknown, scheduler.ReasonReplyLost),
		reminder("14d", scheduler.StateFailed, scheduler.ReasonRecipientRefused), reminder("15d", scheduler.StateDeferred, scheduler.ReasonGreylisted),
	}
	var slots []scheduler.SlotFate
	for _, fate := range scheduler.Fates() {
		slots = append(slots, scheduler.SlotFate{
			LinkCreatedAt: anchor, Slot: next, Fate: fate, Reason: scheduler.ReasonSuperseded, Because: hurtful + " per@secret.example", Rule: hurtful + " per@secret.example",
			Evidence: []scheduler.Evidence{{At: now, Who: "ann@office-1", Words: hurtful + " per@secret.example"}, {Words: hurtful}},
		})
	}
	for i := range past {
		slots[i].Row, slots[i].Earlier = &past[i], i == 0
	}
	return Request{
		Explanation: scheduler.Explanation{
			Sentence: "The sentence " + hurtful, Problem: scheduler.ProblemUnknownZone,
			Mistakes: []scheduler.Mistake{{Problem: scheduler.ProblemUnknownZone, Value: hurtful + " per@secret.example"}},
			Obstacle: scheduler.ReasonPaused, Hindered: hurtful + " per@secret.example",
			Input: scheduler.Input{Now: now, RequestID: id, Request: &request, Link: &link},
			Past:  past, Slots: slots, Stops: []string{hurtful + " per@secret.example"}, Next: []cadence.Slot{next},
			Events: []scheduler.Event{{At: now, Actor: "ann@office-1", Action: "pause", Address: "per@secret.example", Detail: "per@secret.example", Why: hurtful + "per@secret.example"}},
		},
		Documents: []scheduler.Document{{Title: hurtful, RejectionReason: "ask per@secret.example", State: scheduler.DocumentRejected}},
		Language:  "fr",
		Task: &scheduler.Task{
			Request: request, Link: link, Slot: next, Number: 1,
			Documents: []scheduler.Document{{Title: "per@secret.example"}},
		},
	}
}

// busy is an overview with everything that there can be.
func busy() Overview {
	reminders := example(hurtful).Explanation.Past
	return Overview{
		Now: now, Environment: hurtful, RelayUp: true, LastPass: now.Add(-time.Second), Open: 1234567, OnTime: 3, Late: 4,
		LateAfter: time.Hour, Oldest: now.Add(-3 * time.Hour), Unplanned: 5, Limit: 1000, Unknown: 2,
		Unsettled: reminders[2:3], Outcomes: reminders[1:4],
		Mistakes: []Mistake{
			{hurtful, scheduler.ProblemUnknownCadence, hurtful + "per@secret.example"}, {"z", scheduler.ProblemUnknownZone, "Europe/Pariss"},
		},
		Upcoming: []Day{{now, 7}, {now.Add(24 * time.Hour), 0}, {now.Add(48 * time.Hour), 1000}},
	}
}

// compose writes what a mailer would of a task: every field of it that a mail may show.
func compose(task scheduler.Task) (scheduler.Message, error) {
	if !strings.Contains(task.Request.RecipientEmail, "@") {
		return scheduler.Message{}, &scheduler.ComposeError{Reason: scheduler.ReasonInvalidAddress, Err: errors.New("x")}
	}
	text := strings.Join([]string{
		task.Request.RecipientEmail, task.Request.ReplyTo, task.Request.Title, task.Request.Message, task.Link.URL, task.Documents[0].Title,
	}, "\r\n")
	return scheduler.Message{Data: []byte("From: Office <office@nudged.example>\r\nTo: <" + task.Request.RecipientEmail + ">\r\n" +
		"Subject: =?utf-8?q?caf=C3=A9?=\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + text + "\r\n" +
		"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p style=\"color:red\">hello <b>you</b></p><script>alert(1)</script>\r\n--b--\r\n")}, nil
}

// withPages is a program whose pages show the example under every id but "none".
func withPages() Config {
	cfg := new(program).config()
	cfg.Pages = &Pages{
		Overview: func(context.Context) (Overview, error) { return busy(), nil },
		Request: func(_ context.Context, id string) (Request, error) {
			if id == "none" {
				return Request{}, nil
			}
			return example(id), nil
		},
		Compose: compose,
		Settle: func(r scheduler.Reminder) (string, string) {
			return "settle '" + r.RequestID + "' sent", "settle '" + r.RequestID + "' not sent"
		},
		Zone: func() *time.Location { return time.UTC },
		Inbox: fstest.MapFS{
			"20260302T090000.000000Z-a.eml": {Data: []byte("Subject: first\r\nTo: ann@client.example\r\n\r\nHello\r\n")},
			"20260302T090001.000000Z-b.eml": {Data: []byte("Subject: " + hurtful + "\r\nContent-Type: text/html\r\n\r\n" + hurtful)},
			"20260302T090002.000000Z-c.eml": {Data: []byte("no mail at all")},
			".draft.eml":                    {Data: []byte("Subject: draft\r\n\r\n")},
			"notes.txt":                     {Data: []byte("Subject: notes\r\n\r\n")},
		},
	}
	return cfg
}

// allPages are paths that lead to each kind of page, and their status.
var allPages = map[string]int{
	"/": 200, "/requests/r-1": 200, "/requests/none": 404, "/requests/" + url.PathEscape(hurtful): 200,
	"/nothing": 404, "/nothing/at/all": 404, "/inbox": 200, "/inbox/20260302T090000.000000Z-a.eml": 200,
	"/inbox/20260302T090001.000000Z-b.eml": 200, "/inbox/20260302T090002.000000Z-c.eml": 500, "/inbox/none.eml": 404,
}

func TestPagesAreReached(t *testing.T) {
	base := "http://" + start(t, withPages())[0]
	for path, want := range allPages {
		got := ask(t, client(nil), "GET", base+path, nil)
		if got.status != want || !strings.HasPrefix(got.body, "<!doctype html>") || got.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %s\n%.100s", path, got.status, got.header.Get("Content-Type"), got.body)
		}
		if head := ask(t, client(nil), "HEAD", base+path, nil); head.status != want || head.body != "" {
			t.Errorf("HEAD %s: %d %q", path, head.status, head.body)
		}
		if post := ask(t, client(nil), "POST", base+path, nil); post.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, post.status)
		}
	}
}

// Every id leads to its own page, by the search and by the links of the overview.
func TestAnyIDIsFound(t *testing.T) {
	cfg := withPages()
	var asked atomic.Pointer[string]
	cfg.Pages.Request = func(_ context.Context, id string) (Request, error) {
		asked.Store(&id)
		return example(id), nil
	}
	base := "http://" + start(t, cfg)[0]
	for _, id := range []string{"r-1", "a/b", "a b", "?id=x#y", "100%", "é\u202e", "-x", "a:b", "..%2f", hurtful, strings.Repeat("x", 1000)} {
		asked.Store(nil)
		got := ask(t, client(nil), "GET", base+"/requests?id="+url.QueryEscape(" "+id+" "), nil) // the client follows
		if got.status != 200 || asked.Load() == nil || *asked.Load() != id {
			t.Errorf("%q: status %d, asked for %v", id, got.status, asked.Load())
		}
		asked.Store(nil)
		overview := busy()
		overview.Outcomes = []scheduler.Reminder{{RequestID: id}}
		cfg.Pages.Overview = func(context.Context) (Overview, error) { return overview, nil }
		links := linksOf(t, ask(t, client(nil), "GET", base+"/", nil).body)
		followed := false
		for _, link := range links {
			if strings.HasPrefix(link, "requests/") {
				ask(t, client(nil), "GET", base+"/"+link, nil)
				followed = followed || asked.Load() != nil && *asked.Load() == id
			}
		}
		if !followed {
			t.Errorf("%q: no link of the overview leads to it: %q", id, links)
		}
	}
	if got := ask(t, client(nil), "GET", base+"/requests?id=", nil); got.status != 200 || !strings.Contains(got.body, "Last outcomes") {
		t.Errorf("the search for nothing does not lead to the overview: %d", got.status)
	}
	asked.Store(nil)
	for _, id := range []string{"%00", "%ff"} {
		if got := ask(t, client(nil), "GET", base+"/requests/"+id, nil); got.status != 404 || asked.Load() != nil {
			t.Errorf("%s: status %d, asked for %v; no text of the database is like this", id, got.status, asked.Load())
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	for _, show := range []bool{false, true} {
		cfg := withPages()
		cfg.Pages.ShowAddresses, cfg.Pages.Inbox = show, nil
		base := "http://" + start(t, cfg)[0]
		told := map[string]bool{}
		for path := range allPages {
			body := ask(t, client(nil), "GET", base+path, nil).body
			for _, secret := range secrets {
				told[secret] = told[secret] || strings.Contains(body, secret)
			}
			if !show && path == "/requests/r-1" {
				for _, want := range []string{"a***@client.example", "r***@office.example", "p***@secret.example", hiddenLink, "ann@office-1"} {
					if !strings.Contains(body, want) {
						t.Errorf("%s lacks %s", path, want)
					}
				}
			}
		}
		for _, secret := range secrets {
			if told[secret] != show {
				t.Errorf("ShowAddresses %t: %s is told: %t", show, secret, told[secret])
			}
		}
	}
}

// An address that cannot be mailed is told as such, also where it is masked.
func TestMailThatCannotBeWritten(t *testing.T) {
	cfg := withPages()
	cfg.Pages.Request = func(_ context.Context, id string) (Request, error) {
		r := example(id)
		r.Task.Request.RecipientEmail = "nobody"
		return r, nil
	}
	body := ask(t, client(nil), "GET", "http://"+start(t, cfg)[0]+"/requests/r", nil).body
	if !strings.Contains(body, "There is no mail: the address is not one that can be mailed.") {
		t.Errorf("the page does not say so:\n%s", body)
	}
}

func TestSentenceOfTheOverview(t *testing.T) {
	calm := Overview{RelayUp: true, LateAfter: time.Hour, Limit: 100}
	for want, change := range map[string]func(*Overview){
		"All is well: nothing is due.":                                                     func(*Overview) {},
		"All is well: 1 reminder due, on time.":                                            func(o *Overview) { o.OnTime = 1 },
		"All is well: at least 100 reminders due, on time.":                                func(o *Overview) { o.OnTime = 100 },
		"All is well but for requests whose row has a mistake.":                            func(o *Overview) { o.Mistakes = []Mistake{{}} },
		"2 reminders waited for longer than 60 minutes.":                                   func(o *Overview) { o.Late, o.Mistakes = 2, []Mistake{{}} },
		"The fate of one reminder is unknown. A person has to settle it.":                  func(o *Overview) { o.Unknown, o.Late = 1, 2 },
		"The fate of 2 reminders is unknown. A person has to settle them.":                 func(o *Overview) { o.Unknown = 2 },
		"Sending has stopped: the mail server does not accept mail. It goes on by itself.": func(o *Overview) { o.RelayUp, o.Unknown = false, 2 },
		"Nothing is sent now: the last pass failed.":                                       func(o *Overview) { o.RelayUp, o.Trouble = false, errors.New("the last pass failed") },
	} {
		o := calm
		change(&o)
		if got, _ := o.sentence(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The database is away, or does not answer: the page says so within two seconds, and the paths that
// need no database answer as ever.
func TestDatabaseAway(t *testing.T) {
	for name, overview := range map[string]func(context.Context) (Overview, error){
		"refuses": func(context.Context) (Overview, error) {
			return Overview{}, errors.New("dial tcp 10.0.0.1: connection refused, user=boss")
		},
		"is silent": func(ctx context.Context) (Overview, error) { <-ctx.Done(); return Overview{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withPages()
			cfg.Pages.Overview = overview
			cfg.Pages.Request = func(ctx context.Context, _ string) (Request, error) { _, err := overview(ctx); return Request{}, err }
			base := "http://" + start(t, cfg)[0]
			results := make(chan reply)
			begun := time.Now()
			const many = 10
			for i := range many {
				go func() { results <- ask(t, client(nil), "GET", base+[]string{"/", "/requests/r-1"}[i%2], nil) }()
			}
			for _, path := range []string{"/metrics", "/-/healthy", "/inbox"} {
				if got := ask(t, client(nil), "GET", base+path, nil); got.status != 200 {
					t.Errorf("%s: %d", path, got.status)
				}
			}
			for range many {
				got := <-results
				if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "The database does not answer") {
					t.Errorf("status %d:\n%s", got.status, got.body)
				}
				if strings.Contains(got.body, "10.0.0.1") || strings.Contains(got.body, "boss") {
					t.Error("the page tells where the database is")
				}
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("ten pages took %s, want at most 2s", took)
			}
		})
	}
}

// However many people load pages, the database is asked for one at a time.
func TestOnePageIsReadAtATime(t *testing.T) {
	cfg := withPages()
	var reading, most atomic.Int32
	cfg.Pages.Overview = func(context.Context) (Overview, error) {
		n := reading.Add(1)
		defer reading.Add(-1)
		most.Store(max(most.Load(), n))
		for range 1000 {
			_ = fmt.Sprint(busy())
		}
		return busy(), nil
	}
	base := "http://" + start(t, cfg)[0]
	results := make(chan int)
	for range 10 {
		go func() { results <- ask(t, client(nil), "GET", base+"/", nil).status }()
	}
	answered := 0
	for range 10 {
		if <-results == 200 {
			answered++
		}
	}
	if most.Load() != 1 || answered == 0 {
		t.Errorf("%d pages were read at a time, %d answered", most.Load(), answered)
	}
}

func TestPagesWantTheirFunctions(t *testing.T) {
	for name, change := range map[string]func(*Pages){
		"overview": func(p *Pages) { p.Overview = nil },
		"request":  func(p *Pages) { p.Request = nil },
		"compose":  func(p *Pages) { p.Compose = nil },
		"settle":   func(p *Pages) { p.Settle = nil },
		"zone":     func(p *Pages) { p.Zone = nil },
	} {
		cfg := withPages()
		change(cfg.Pages)
		if _, err := New(cfg); err == nil {
			t.Errorf("no error without %s", name)
		}
	}
}

func TestInboxKeepsToItsMails(t *testing.T) {
	base := "http://" + start(t, withPages())[0]
	list := ask(t, client(nil), "GET", base+"/inbox", nil).body
	var files []string
	for _, link := range linksOf(t, list) {
		if file, ok := strings.CutPrefix(link, "inbox/"); ok {
			files = append(files, file)
		}
	}
	want := []string{"20260302T090002.000000Z-c.eml", "20260302T090001.000000Z-b.eml", "20260302T090000.000000Z-a.eml"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("mails of the inbox, newest first (-want +got):\n%s", diff)
	}
	for _, file := range []string{".draft.eml", "notes.txt", "..%2fa.eml", "%2fetc%2fpasswd", "..%5ca.eml"} {
		if got := ask(t, client(nil), "GET", base+"/inbox/"+file, nil); got.status != 404 {
			t.Errorf("%s: status %d", file, got.status)
		}
	}
	cfg := withPages()
	cfg.Pages.Inbox = nil
	if got := ask(t, client(nil), "GET", "http://"+start(t, cfg)[0]+"/inbox", nil); got.status != 404 {
		t.Errorf("without an inbox: status %d", got.status)
	}
}
