package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// PostgreSQL holds instants that JSON has no number of years for. An explanation tells of them all.
func TestExplainFarInstants(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	type far struct{ set, link, answer, field string }
	all := map[string]far{
		"created-never":   {link: `created_at = 'infinity'`, answer: "Nothing is sent: links.created_at is outside of the years 1970 to 9998 (it is infinity).", field: `"created_at": "infinity"`},
		"created-bc":      {link: `created_at = '4000-01-01 BC'`, answer: "Nothing is sent: links.created_at is outside of the years 1970 to 9998", field: `"created_at": "-infinity"`},
		"created-20000":   {link: `created_at = '20000-01-01'`, answer: "Nothing is sent: links.created_at is outside of the years 1970 to 9998", field: `"created_at": "infinity"`},
		"expires-20000":   {link: `expires_at = '20000-01-01'`, answer: "The next reminder is slot 3d, due ", field: `"expires_at": "infinity"`},
		"expires-never":   {link: `expires_at = 'infinity'`, answer: "The next reminder is slot 3d, due ", field: `"expires_at": "infinity"`},
		"expired-always":  {link: `expires_at = '-infinity'`, answer: "Nothing is sent now: the upload link expired before all time.", field: `"expires_at": "-infinity"`},
		"expired-bc":      {link: `expires_at = '4000-01-01 BC'`, answer: "Nothing is sent now: the upload link expired ", field: `"expires_at": "-infinity"`},
		"revoked-20000":   {link: `revoked_at = '20000-01-01'`, answer: "Nothing is sent now: the upload link was withdrawn ", field: `"revoked_at": "infinity"`},
		"opted-out-bc":    {set: `opted_out_at = '4000-01-01 BC'`, answer: "Nothing is sent now: the recipient opted out ", field: `"status": "pending"`},
		"opted-out-20000": {set: `opted_out_at = '20000-01-01'`, link: `created_at = now() - interval '3 days 1 minute'`, answer: "Slot 3d was not sent, and nothing is sent now: the recipient opted out ", field: `"reason": "opted_out"`},
		"opted-out-once":  {set: `opted_out_at = '4000-01-01 BC'`, link: `created_at = now() - interval '3 days 1 minute'`, answer: "Slot 3d was not sent, and nothing is sent now: the recipient opted out ", field: `"at": "-infinity"`},
		"paused-20000":    {set: `paused_until = '20000-01-01'`, answer: "Nothing is sent now: the request is paused until ", field: `"status": "pending"`},
		"deadline-20000":  {set: `deadline = '20000-01-01'`, answer: "The next reminder is slot 3d, due ", field: `"next": [`},
		"deadline-never":  {set: `deadline = 'infinity'`, answer: "The next reminder is slot 3d, due ", field: `"next": [`},
		"deadline-bc":     {set: `deadline = '4000-01-01 BC'`, answer: "The next reminder is slot 3d, due ", field: `"next": [`},
	}
	s.configure("cadences: {default: {after: [3d, 7d], before_deadline: [1d]}}\n")
	p := s.start().ready()
	s.exec(`UPDATE nudged.installation SET adopted_at = now() - interval '1 year'`)
	for id, c := range all {
		s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ($1, 'a', 'pending', 'far@example.net', 'T')`, id)
		if c.set != "" {
			s.exec(`UPDATE nudged.requests SET `+c.set+` WHERE id = $1`, id)
		}
		s.exec(`INSERT INTO nudged.links (request_id, url) VALUES ($1, 'https://example.com/u')`, id)
		if c.link != "" {
			s.exec(`UPDATE nudged.links SET `+c.link+` WHERE request_id = $1`, id)
		}
	}
	s.waitRows("skipped/opted_out", 2)
	for id, c := range all {
		text, answer := s.explain(id)
		if !strings.HasPrefix(text, answer.Answer) || !strings.HasPrefix(answer.Answer, c.answer) || strings.Contains(text, "0001-01-01") {
			t.Errorf("%s: answer %q, want %q\n%s", id, answer.Answer, c.answer, text)
		}
		out, _, _ := s.command("explain", id, "--output", "json")
		if !strings.Contains(out, c.field) {
			t.Errorf("%s: the JSON lacks %s:\n%s", id, c.field, out)
		}
		if body := p.page("/requests/"+url.PathEscape(id), http.StatusOK); strings.Contains(body, "0001-01-01 00:00:00") {
			t.Errorf("%s: the page has an instant that is none", id)
		}
	}
	out, stderr, status := s.command("explain", "--recipient", "far@example.net", "--output", "json")
	var answer struct{ Requests []told }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || status != 0 || len(answer.Requests) != len(all) {
		t.Errorf("status %d, %v, %d requests: %s", status, err, len(answer.Requests), stderr)
	}
}

// Behind a mail server that drops repetitions nobody has to settle what nudged repeats by itself.
func TestExplainRepetition(t *testing.T) {
	s := newSite(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Hangup().Accepting())})
	s.configure("cadences: {default: {after: [3d, 7d], max: 1}}\n")
	text := strings.Replace(s.readConfig(), "smtp: {", "smtp: {idempotency_header: Idempotency-Key, ", 1)
	s.writeConfig(strings.Replace(text, "initial: 1s, max: 2s", "initial: 10m, max: 1h", 1))
	s.due(1)
	p := s.start().ready()
	s.waitRows("unknown/reply_lost", 1)
	text, answer := s.explain("r-1")
	want := "Slot 3d may have gone out, TIME; slot 3d is repeated by itself after TIME, as the mail server drops repetitions, until TIME."
	if timeless(answer.Answer) != want {
		t.Errorf("answer %q\nwant   %q", timeless(answer.Answer), want)
	}
	if len(answer.Next) != 0 || strings.Contains(text, "nudged resolve") || !strings.Contains(fmt.Sprint(answer.Stops), "1 may follow, slot 3d first") {
		t.Errorf("got\n%s", text)
	}
	slot := answer.Slots[0]
	if slot.Fate != "unknown" || !strings.Contains(slot.facts(), "repeated by itself at the first pass after this, as the mail server drops repetitions\nrepeated no more after this") {
		t.Errorf("got %+v", slot)
	}
	if out, _, _ := s.command("explain", "r-1", "--output=json"); !strings.Contains(out, `"retry_at": `) {
		t.Errorf("the JSON has no retry_at: %s", out)
	}
	body := p.page("/requests/r-1", http.StatusOK)
	if strings.Contains(body, "resolve r-1") || !strings.Contains(body, "repeated by itself") || !strings.Contains(body, "<dt>Tried again</dt>") {
		t.Errorf("the page is\n%s", body)
	}
	s.exec(`UPDATE nudged.reminders SET unknown_since = unknown_since - interval '21 hours'`)
	text, answer = s.explain("r-1")
	want = "Slot 3d may have gone out, TIME, and a person has to settle it; nothing is sent now: the cadence's maximum of 1 mail for this link is reached."
	if timeless(answer.Answer) != want || !strings.Contains(text, "nudged resolve r-1 3d --sent") {
		t.Errorf("once the window is over: %s", text)
	}
}

// An act about an address concerns the request that has it, and no other.
func TestExplainWhoseSuppression(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(2)
	s.want("is suppressed", "suppress", "R1@example.net", "--why", "asked by phone")
	s.start().ready()
	s.waitRows("skipped/suppressed", 1)
	s.waitRows("sent/", 1)
	s.exec(`UPDATE nudged.reminders SET recipient = 'r1@example.net' WHERE request_id = 'r-2'`) // it had that address once
	s.exec(`INSERT INTO nudged.suppressions (address, reason) VALUES ('r2@example.net', 'by hand')`)
	text, answer := s.explain("r-1")
	if !strings.Contains(answer.Slots[0].facts(), " suppressed the address: asked by phone") || !strings.Contains(text, "suppress r1@example.net ") {
		t.Errorf("got %s", text)
	}
	if _, answer = s.explain("r-2"); !strings.HasSuffix(answer.Answer, "; nothing is sent now: the address is suppressed.") || len(answer.Events) != 1 {
		t.Errorf("got %+v", answer)
	}
}

// A plan of a request has the slot that is due and waits, and nothing that the maximum forbids.
func TestPlanOfWhatWaits(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.configure("cadences: {default: {after: [3d, 7d], max: 1}}\n")
	s.due(1)
	s.start().ready()
	s.waitRows("sent/", 1)
	s.exec(`UPDATE nudged.links SET created_at = now() - interval '3 days 30 seconds'`)
	out, _, status := s.command("plan", "r-1", "--output", "json")
	var slots []struct{ Slot, State string }
	if err := json.Unmarshal([]byte(out), &slots); err != nil || status != 0 || fmt.Sprint(slots) != "[{3d sent} {3d }]" {
		t.Errorf("status %d, %v: %v, want 3d of the old link and 3d of the new one, which waits", status, err, slots)
	}
	if _, answer := s.explain("r-1"); !strings.Contains(answer.Answer, "slot 3d is due since ") || len(answer.Next) != 0 {
		t.Errorf("got %+v", answer)
	}
}
