package main_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/smtptest"
)

// instant is one that a page shows: for machines, and for people.
type instant struct{ UTC, Local string }

// The status page in a real browser: it is right, it fits narrow and wide windows, nothing in it
// runs, and the browser has nothing to complain about.
func TestStatusPageInABrowser(t *testing.T) {
	b := startBrowser(t)
	s := newSite(t, smtptest.Config{})
	s.configure("cadences: {default: {after: [3d, 7d, 14d], then_every: 7d}}\n")
	anchor := s.requests()
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT 'r-' || i, 'a', 'pending', 'r' || i || '@example.net', 'Papers' FROM generate_series(100, 400) i`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at)
		SELECT 'r-' || i, 'https://example.com/u', now() - interval '3 days' + (i - 99) * interval '26 minutes' FROM generate_series(100, 400) i`)
	p := s.start().ready()
	s.waitRows("sent/", 3)
	s.waitPlanned()
	s.wait("open requests to be counted", func() bool { _, body := p.get("/"); return strings.Contains(body, "<strong>306</strong>") })

	pages := map[string]string{"overview": "/", "request": "/requests/known", "hostile": "/requests/" + url.PathEscape(hostile), "missing": "/nothing"}
	for name, path := range pages {
		for _, width := range []int{360, 1280} {
			b.open(p.web+path, width)
			var wide int
			if b.evaluate("document.documentElement.scrollWidth", &wide); wide > width {
				t.Errorf("%s is %d px wide in a window of %d px", name, wide, width)
			}
			var title string
			if b.evaluate("document.title", &title); title == "pwned" || !strings.HasSuffix(title, " – nudged") {
				t.Errorf("%s has the title %q", name, title)
			}
			var small []string
			b.evaluate(`[...document.querySelectorAll('main, main *, header, footer')].filter(e => parseFloat(getComputedStyle(e).fontSize) < 12
				&& !e.closest('svg')).map(e => e.outerHTML)`, &small)
			if len(small) > 0 {
				t.Errorf("%s has text smaller than 12 px: %s", name, small[0])
			}
		}
	}

	b.open(p.web+"/requests/known", 1280)
	s.compareTimeline(b, anchor)
	mail := b.frame()
	for what, expression := range map[string]string{
		"shows the mail":  `document.body.innerText.includes('Year-end papers') && document.links[0].href == 'https://hidden.invalid/upload-link'`,
		"keeps its style": `[...document.querySelectorAll('[style*=background]')].some(e => !['rgba(0, 0, 0, 0)'].includes(getComputedStyle(e).backgroundColor))`,
		"has no right":    `origin == 'null'`,
	} {
		var holds bool
		if mail.evaluate(expression, &holds); !holds {
			t.Errorf("not true of the frame: it %s", what)
		}
	}
	b.press("Tab")
	var focused string
	if b.evaluate("document.activeElement.textContent", &focused); focused != "Skip to the content" {
		t.Errorf("the first key leads to %q", focused)
	}
	var ground [2]string
	for i, dark := range []bool{false, true} {
		b.dark(dark)
		b.evaluate("getComputedStyle(document.body).backgroundColor", &ground[i])
	}
	if ground[0] == ground[1] {
		t.Errorf("the page is %s in light and in dark", ground[0])
	}
}

// compareTimeline holds the instants of known's page against its ledger and against nudged plan.
func (s *site) compareTimeline(b *browser, anchor time.Time) {
	s.t.Helper()
	out, stderr, status := s.command("plan", "--cadence=default", "--anchor="+anchor.Format(time.RFC3339Nano), "--zone=Europe/Paris",
		"--expires="+anchor.Add(90*24*time.Hour).Format(time.RFC3339Nano), "--count=13", "--output=json")
	if status != 0 {
		s.t.Fatalf("plan: %s", stderr)
	}
	var planned []struct{ Slot, Due, Local string }
	if err := json.Unmarshal([]byte(out), &planned); err != nil {
		s.t.Fatal(err)
	}
	want := map[string]instant{}
	add := func(slot string, due time.Time, local string) {
		clock, err := time.Parse(time.RFC3339, local)
		if err != nil {
			s.t.Fatal(err)
		}
		want[slot] = instant{due.UTC().Format(time.RFC3339Nano), clock.Format("Mon 2006-01-02 15:04:05 -07:00")}
	}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		s.t.Fatal(err)
	}
	for slot, days := range map[string]int{"3d": 3, "7d": 7, "14d": 14} {
		due := anchor.Add(time.Duration(days) * 24 * time.Hour)
		add(slot, due, due.In(paris).Format(time.RFC3339))
	}
	for _, slot := range planned {
		due, err := time.Parse(time.RFC3339, slot.Due)
		if err != nil {
			s.t.Fatal(err)
		}
		if due.After(time.Now()) {
			add(slot.Slot, due, slot.Local)
		}
	}
	var shown []struct {
		Slot string
		instant
	}
	b.evaluate(`[...document.querySelectorAll('.timeline > li:not(.mark)')].map(li => {
		const time = li.querySelector('.slot time');
		return {Slot: li.querySelector('h3').textContent.replace('Slot ', ''), UTC: time.dateTime, Local: time.textContent}
	})`, &shown)
	got := map[string]instant{}
	for _, step := range shown {
		got[step.Slot] = step.instant
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 10 {
		s.t.Errorf("timeline of %d slots (-want +got):\n%s", len(got), diff)
	}
	rising := slices.IsSortedFunc(shown, func(x, y struct {
		Slot string
		instant
	}) int {
		return strings.Compare(x.UTC, y.UTC)
	})
	if !rising {
		s.t.Errorf("the timeline does not run forward: %v", shown)
	}
}

// frame is the one frame in the page, which Chromium keeps in a process of its own.
func (b *browser) frame() *browser {
	b.t.Helper()
	var found struct {
		TargetInfos []struct {
			TargetID string `json:"targetId"`
		} `json:"targetInfos"`
	}
	b.call("Target.getTargets", map[string]any{"filter": []any{map[string]any{"type": "iframe"}}}, &found)
	if len(found.TargetInfos) != 1 {
		b.t.Fatalf("%d frames, want one", len(found.TargetInfos))
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": found.TargetInfos[0].TargetID, "flatten": true}, &attached)
	frame := *b
	frame.session, frame.last = attached.SessionID, b.last+1000 // numbers of its own on the same pipe
	return &frame
}

// The pages that tell of trouble, in a browser.
func TestTroubleInABrowser(t *testing.T) {
	b := startBrowser(t)
	s, stop, _ := newSiteOnOwnServer(t, smtptest.Config{})
	s.configure("")
	p := s.start().ready()
	p.page("/", http.StatusOK)
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{360, 1280} {
		b.open(p.web+"/", width)
		var heading string
		if b.evaluate("document.querySelector('h1').textContent", &heading); heading != "The database does not answer" {
			t.Errorf("at %d px the page says %q", width, heading)
		}
	}
}
