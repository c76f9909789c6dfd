package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// told is what explain says as JSON, as far as these tests look.
type told struct {
	RequestID string `json:"request_id"`
	Answer    string
	Warnings  []string
	Zone      string
	Language  string
	Slots     []toldSlot
	Next      []toldSlot
	Stops     []string
	Events    []struct{ Actor, Action, Why string }
}

type toldSlot struct {
	Slot     string
	Fate     string
	Reason   string
	Rule     string
	Due      time.Time
	DueLocal string `json:"due_local"`
	Evidence []struct {
		At, Local string
		Who, What string
	}
}

// facts are the words of the evidence, one behind the other.
func (s toldSlot) facts() string {
	var words []string
	for _, e := range s.Evidence {
		words = append(words, strings.TrimSpace(e.Who+" "+e.What))
	}
	return strings.Join(words, "\n")
}

// explain asks both ways.
func (s *site) explain(args ...string) (text string, answer told) {
	s.t.Helper()
	text, stderr, status := s.command(append([]string{"explain"}, args...)...)
	if status != 0 || stderr != "" {
		s.t.Fatalf("explain %v: status %d, %s", args, status, stderr)
	}
	out, _, _ := s.command(append([]string{"explain", "--output=json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return text, answer
}

// timeless leaves out instants, host names and random ids.
func timeless(text string) string {
	text = regexp.MustCompile(`[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`<[0-9a-f]{40}@[a-z.]+>`).ReplaceAllString(text, "<ID>")
}

// situation is one request of the scripted test and what explain has to say of it.
type situation struct {
	age        string // of the link; 3 days and a minute where empty
	address    string
	set        string // columns of the request
	link       string // columns of the link
	answer     string // the first line, without instants
	slot, fate string // and the reason
	rule       string
	evidence   string // part of it
}

// situations has one request for each verdict there is.
func situations() map[string]situation {
	const (
		next     = "; the next reminder is slot 7d, due TIME."
		default3 = "cadence default: slot 3d, counted from the creation of the link"
	)
	return map[string]situation{
		"on-time": {
			set:    `time_zone = 'Asia/Tokyo', locale = 'fr-CA'`,
			answer: "Slot 3d went out on time, TIME" + next, slot: "3d", fate: "on_time", rule: default3,
			evidence: "handed off for on-time@example.net, attempt 1, Message-ID <ID>\naccepted; the server said: 250 ",
		},
		"late": {
			age:    "3 days 5 hours",
			answer: "Slot 3d went out 5h late, TIME" + next, slot: "3d", fate: "late", rule: "limits.max_lateness 48h: a slot that is found late goes out within it",
			evidence: "first taken up, 5h after its due: before that nudged did not run",
		},
		"completed": {
			set:    `status = 'completed'`,
			answer: `Slot 3d is not sent while the request is "completed": only pending and pending_resubmission are reminded.`,
			slot:   "3d", fate: "not_sent request_closed", rule: "requests.status: only pending and pending_resubmission are reminded",
			evidence: `the status is "completed" now`,
		},
		"paused": {
			answer: "Slot 3d was not sent, and nothing is sent now: the request is paused until resumed (ACTOR: on holiday).",
			slot:   "3d", fate: "not_sent paused", rule: "requests.paused_until: a slot that falls due or waits in a pause is skipped, and not sent after it",
			evidence: "ACTOR paused the request until infinity: on holiday",
		},
		"opted-out": {
			set:    `opted_out_at = now() - interval '1 day'`,
			answer: "Slot 3d was not sent, and nothing is sent now: the recipient opted out TIME.",
			slot:   "3d", fate: "not_sent opted_out", rule: "requests.opted_out_at: nothing is sent once it is set", evidence: "the recipient opted out",
		},
		"expired": {
			link:   `expires_at = now() - interval '10 seconds'`,
			answer: "Slot 3d was not sent, and nothing is sent now: the upload link expired TIME.",
			slot:   "3d", fate: "not_sent link_expired", rule: "links.expires_at: nothing is sent at that instant or after it", evidence: "the link expires",
		},
		"revoked": {
			link:   `revoked_at = now() - interval '10 seconds'`,
			answer: "Slot 3d was not sent, and nothing is sent now: the upload link was withdrawn TIME.",
			slot:   "3d", fate: "not_sent link_revoked", rule: "links.revoked_at: nothing is sent for a link that was withdrawn, or whose row is gone", evidence: "the link was withdrawn",
		},
		"superseded": {
			age:    "7 days 1 minute",
			answer: "Slot 7d went out on time, TIME; the next reminder is slot 14d, due TIME.",
			slot:   "3d", fate: "not_sent superseded", rule: "of several slots that are due at once only the newest is sent", evidence: "slot 7d was due as well",
		},
		"missed": {
			age:    "6 days",
			answer: "Slot 3d was not sent: it was found later than limits.max_lateness allows" + next,
			slot:   "3d", fate: "not_sent missed", rule: "limits.max_lateness 48h: a slot that is found later than this is not sent", evidence: "found 3d after its due",
		},
		"suppressed": {
			answer: "Slot 3d was not sent, and nothing is sent now: the address is suppressed (ACTOR: asked by phone).",
			slot:   "3d", fate: "not_sent suppressed", rule: "nudged.suppressions: an address in it is not mailed", evidence: "ACTOR suppressed the address: asked by phone",
		},
		"max-reached": {
			age: "7 days 1 minute", set: `cadence = 'once'`,
			answer: "Slot 7d was not sent, and nothing is sent now: the cadence's maximum of 1 mail for this link is reached.",
			slot:   "7d", fate: "not_sent max_reached", rule: "max: 1 of cadence once: so many mails for one link, unknown ones included", evidence: "1 mail went out for this link, or may have",
		},
		"not-allowed": {
			address: "someone@outside.test",
			answer:  "Slot 3d was not sent, and nothing is sent now: mail.allow_recipients does not allow this address.",
			slot:    "3d", fate: "not_sent not_allowed", rule: "mail.allow_recipients: @example.net, nobody", evidence: `the address is "someone@outside.test" now`,
		},
		"invalid-address": {
			address: "a b@example.net",
			answer:  `Slot 3d was not sent: the address is not one that can be mailed (recipient: not one e-mail address)` + next,
			slot:    "3d", fate: "failed invalid_address", rule: "requests.recipient_email: one bare address that can be mailed", evidence: `the address is "a b@example.net" now`,
		},
		"template-error": {
			link:   `url = 'ftp://example.com/u'`,
			answer: "Slot 3d was not sent: the mail could not be written (the link is not an http or https URL)" + next,
			slot:   "3d", fate: "failed template_error", rule: "a mail that cannot be written is not sent; later slots go on", evidence: "the link is not an http or https URL",
		},
		"refused": {
			answer: "Slot 3d was not sent: the server refused the recipient (550 5.1.1 no such user here); nothing is sent now: the address is suppressed (nudged: 5.1.1 no such user here).",
			slot:   "3d", fate: "failed recipient_refused", rule: "an answer of the mail server that begins with 5 is final for the slot; later slots go on",
			evidence: "the server refused the recipient; the server said: 550 5.1.1 no such user here",
		},
		"greylisted": {
			answer: "Slot 3d is tried again after TIME: the server asked to try again later.",
			slot:   "3d", fate: "retry greylisted", rule: "limits.retry_backoff 5m to 1h between attempts, for limits.retry_for 24h", evidence: "the server said: 451 4.7.1 come back later",
		},
		"unknown": {
			answer: "Slot 3d may have gone out, TIME, and a person has to settle it" + next,
			slot:   "3d", fate: "unknown reply_lost", rule: "a mail that may have been accepted is never sent again by itself: a person settles it",
			evidence: "no answer to the final dot within 1s",
		},
		"to-come": {
			age:    "0",
			answer: "The next reminder is slot 3d, due TIME.", slot: "3d", fate: "to_come", rule: default3,
		},
		"no-cadence": {
			set:    `cadence = 'wekly'`,
			answer: `Nothing is sent: the configuration has no cadence "wekly".`,
		},
		"no-link": {answer: "Nothing is sent: the request has no upload link."},
	}
}

// TestExplainEachVerdict has a real daemon lead requests into every situation that there is, and
// explain tell of each: in one sentence, with the rule and the evidence.
func TestExplainEachVerdict(t *testing.T) {
	s := newSite(t, smtptest.Config{Script: func(e smtptest.Event) smtptest.Action {
		switch {
		case e.Stage == smtptest.StageRCPT && strings.Contains(e.Line, "refused@"):
			return smtptest.Answer("550 5.1.1 no such user here")
		case e.Stage == smtptest.StageRCPT && strings.Contains(e.Line, "greylisted@"):
			return smtptest.Answer("451 4.7.1 come back later")
		case e.Stage == smtptest.StageDot && slices.Equal(e.Message.To, []string{"unknown@example.net"}):
			return smtptest.Stall().Accepting()
		}
		return smtptest.Action{}
	}})
	s.configure("cadences: {default: {after: [3d, 7d, 14d], then_every: 7d}, once: {after: [3d, 7d], max: 1}}\n")
	text := strings.Replace(s.readConfig(), "initial: 1s, max: 2s", "initial: 5m, max: 1h", 1)
	text = strings.Replace(text, "reply_timeout: 5s", "reply_timeout: 1s", 1)
	s.writeConfig(strings.Replace(text, "mail: {", `mail: {allow_recipients: ["@example.net", "nobody@*"], `, 1))
	s.start().ready().stop()
	s.exec(`UPDATE nudged.installation SET adopted_at = now() - interval '1 year'`)
	all := situations()
	for id, c := range all {
		if c.address == "" {
			c.address = id + "@example.net"
		}
		if c.age == "" {
			c.age = "3 days 1 minute"
		}
		s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ($1, 'a', 'pending', $2, 'T')`, id, c.address)
		if c.set != "" {
			s.exec(`UPDATE nudged.requests SET `+c.set+` WHERE id = $1`, id)
		}
		if id == "no-link" {
			continue
		}
		s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ($1, 'https://example.com/u', now() - $2::text::interval)`, id, c.age)
		if c.link != "" {
			s.exec(`UPDATE nudged.links SET `+c.link+` WHERE request_id = $1`, id)
		}
	}
	s.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, recipient, message_id, handed_off_at, finished_at)
		SELECT request_id, created_at, '3d', created_at + interval '3 days', 'sent', 'max-reached@example.net', 'm', created_at + interval '3 days', created_at + interval '3 days'
		FROM nudged.links WHERE request_id = 'max-reached'`)
	s.want("is paused", "pause", "paused", "--why", "on holiday")
	s.want("is suppressed", "suppress", "Suppressed@example.net", "--why", "asked by phone")
	s.start().ready()
	s.waitRows("unknown/reply_lost", 1)
	s.waitRows("deferred/greylisted", 1)
	s.exec(`UPDATE nudged.reminders SET retry_at = retry_at + interval '1 minute' WHERE state = 'deferred'`) // jitter may draw a moment
	s.waitRows("sent/", 4)
	s.wait("the refused address to be suppressed", func() bool {
		var n int
		err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.suppressions`).Scan(&n)
		return err == nil && n == 2
	})
	s.waitPlanned()

	for id, c := range all {
		t.Run(id, func(t *testing.T) {
			s := *s
			s.t = t
			text, answer := s.explain(id)
			first, _, _ := strings.Cut(text, "\n")
			if first != answer.Answer {
				t.Errorf("the text begins %q, the JSON answers %q", first, answer.Answer)
			}
			actor := ""
			for _, e := range answer.Events {
				if e.Actor != "nudged" {
					actor = e.Actor
				}
			}
			if got := timeless(strings.ReplaceAll(answer.Answer, "("+actor+":", "(ACTOR:")); got != c.answer {
				t.Errorf("answer %q\nwant   %q", got, c.answer)
			}
			for _, slot := range slices.Concat(answer.Slots, answer.Next) {
				if local, err := time.Parse(time.RFC3339, slot.DueLocal); err != nil || !local.Equal(slot.Due.Truncate(time.Second)) {
					t.Errorf("slot %s is due %s, locally %s", slot.Slot, slot.Due, slot.DueLocal)
				}
			}
			if c.slot == "" {
				if len(answer.Slots)+len(answer.Next) != 0 {
					t.Errorf("got slots %+v, want none", answer)
				}
				return
			}
			i := slices.IndexFunc(answer.Slots, func(s toldSlot) bool { return s.Slot == c.slot })
			list := answer.Slots
			if c.fate == "to_come" {
				list, i = answer.Next, slices.IndexFunc(answer.Next, func(s toldSlot) bool { return s.Slot == c.slot })
			}
			if i < 0 {
				t.Fatalf("there is no slot %s: %s", c.slot, text)
			}
			slot := list[i]
			if got := strings.TrimSpace(slot.Fate + " " + slot.Reason); got != c.fate {
				t.Errorf("slot %s has the fate %s, want %s", c.slot, got, c.fate)
			}
			if !strings.HasPrefix(slot.Rule, c.rule) {
				t.Errorf("rule %q, want %q", slot.Rule, c.rule)
			}
			if facts := timeless(slot.facts()); !strings.Contains(facts, strings.ReplaceAll(c.evidence, "ACTOR", actor)) {
				t.Errorf("evidence\n%s\nlacks\n%s", facts, c.evidence)
			}
			if c.fate != "to_come" && !strings.Contains(text, slot.Rule) {
				t.Errorf("the text lacks the rule %q:\n%s", slot.Rule, text)
			}
			for _, e := range slot.Evidence {
				if !strings.Contains(text, e.What) || !strings.Contains(text, e.Who) {
					t.Errorf("the text lacks the evidence %q:\n%s", e.What, text)
				}
			}
		})
	}
	t.Run("what it was told by", func(t *testing.T) { s.explainOnTime(t) })
	t.Run("of a recipient", func(t *testing.T) { s.explainRecipients(t) })
}

// explainOnTime looks closer at one request.
func (s *site) explainOnTime(t *testing.T) {
	text, answer := s.explain("on-time")
	if answer.Zone != "Asia/Tokyo" || answer.Language != "fr" || len(answer.Next) != 5 || len(answer.Warnings) != 0 {
		t.Errorf("got %+v", answer)
	}
	if len(answer.Stops) != 4 || !strings.Contains(answer.Stops[0], `(it is "pending")`) {
		t.Errorf("it stops by %q", answer.Stops)
	}
	for _, want := range []string{
		"Request:    on-time, pending, for on-time@example.net, cadence default\n", "Language:   fr, for the locale fr-CA\n",
		" +09:00 (2", " UTC)", "\nWhat comes next\n", "\nWhat would stop it\n", "Rules:      " + s.config + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	text, _ = s.explain("unknown")
	for _, want := range []string{"nudged resolve unknown 3d --sent \\\n", "nudged resolve unknown 3d --not-sent \\\n", "If it is there:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}

	// The configuration is another one than that of the daemon, or is not named.
	out, _, _ := s.command("explain", "to-come", "--config.file=")
	if !strings.Contains(out, "Attention: No configuration file was given") || !strings.Contains(out, "Rules:      built-in configuration\n") {
		t.Errorf("without a file:\n%s", out)
	}
	other := s.config
	text = s.readConfig()
	defer func() { s.config = other }()
	s.config += ".other"
	s.writeConfig(strings.Replace(text, "environment: test", "environment: staging", 1))
	out, _, _ = s.command("explain", "to-come")
	for _, want := range []string{
		"Attention: The daemon last planned with another configuration",
		"Attention: This database is adopted for the environment \"test\" and the configuration says \"staging\": nothing is sent; the database url or the environment of the configuration is wrong,",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("with another file: the text lacks %q:\n%s", want, out)
		}
	}
	out, complaint, status := s.command("plan", "to-come")
	if status != 0 || strings.Contains(out, "nudged: ") || strings.Count(complaint, "\n") != 2 ||
		!strings.HasPrefix(complaint, "nudged: The daemon last planned with another configuration") {
		t.Errorf("plan with another file: status %d, %q\n%s", status, complaint, out)
	}
}

// explainRecipients asks by address.
func (s *site) explainRecipients(t *testing.T) {
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('second', 'a', 'pending', 'LATE@Example.net', 'T'), ('third', 'a', 'completed', 'late@example.net', 'T')`)
	s.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('second', 'https://example.com/u', now() - interval '1 hour')`)
	s.exec(`UPDATE nudged.requests SET recipient_email = 'moved@example.net' WHERE id = 'late'`)
	text, _, status := s.command("explain", "--recipient", " Late@example.NET")
	first, _, _ := strings.Cut(text, "\n")
	want := " Late@example.NET: 3 requests, 1 mail, the last TIME; slot 3d of request second comes next, due TIME."
	if status != 0 || timeless(first) != want {
		t.Errorf("status %d, %q, want %q", status, timeless(first), want)
	}
	at := func(part string) int { return strings.Index(text, part) }
	if !(at("request late  slot 3d  went out late") < at("\nRequest:    second,") && at("\nRequest:    second,") < at("\nRequest:    late,") && at("\nRequest:    late,") < at("\nRequest:    third,")) {
		t.Errorf("the order is wrong:\n%s", text)
	}
	out, _, _ := s.command("explain", "--recipient", "late@example.net", "--output", "json", "--most", "2")
	var answer struct {
		Answer   string
		Found    int `json:"requests_found"`
		Requests []told
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	ids := fmt.Sprint(answer.Requests[0].RequestID, answer.Requests[1].RequestID)
	if answer.Found != 3 || len(answer.Requests) != 2 || ids != "secondlate" || !strings.HasSuffix(answer.Answer, "; these are the 2 requests with the newest links.") {
		t.Errorf("got %d of %d: %s, %s", len(answer.Requests), answer.Found, ids, answer.Answer)
	}
	s.refuse(1, `no request has the address "none@example.net", and no mail of the ledger went to it`, "explain", "--recipient", "none@example.net")
	s.refuse(2, "explain needs a request id, or --recipient", "explain")
	s.refuse(2, "explain needs a request id, or --recipient", "explain", "")
	s.refuse(2, "--recipient: must not be empty", "explain", "--recipient", "")
	s.refuse(2, "plan needs a request id", "plan", "")
	s.refuse(2, "not both", "explain", "late", "--recipient", "late@example.net")
	s.refuse(2, "--count: want a whole number", "explain", "late", "--count", "0")
	s.refuse(2, "--most: want a whole number", "explain", "--recipient", "late@example.net", "--most", "0")
	s.refuse(1, "there is no request", "explain", "\xff")
	s.refuse(1, `there is no request "nobody"`, "explain", "nobody")
}
