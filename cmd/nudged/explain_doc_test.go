package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/smtptest"
)

// documented brings about the request that docs/explain.md shows: a mail, a pause, and an outcome that
// nobody knows.
func (s *site) documented() {
	s.t.Helper()
	for _, sql := range []string{
		`INSERT INTO nudged.installation (environment, identity, adopted_at)
			SELECT 'test', oid::text, now() - interval '1 year' FROM pg_database WHERE datname = current_database()`,
		`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title, time_zone, locale)
			VALUES ('req-7', 'acme', 'pending', 'zoe@client.example', 'Tax return 2025', 'Africa/Lagos', 'fr-CA')`,
		`INSERT INTO nudged.links (request_id, url, created_at, expires_at)
			SELECT 'req-7', 'https://ledger.example/u/7f3a', t, t + interval '60 days' FROM (SELECT date_trunc('second', now()) - interval '16 days') s (t)`,
		`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, claimed_by, recipient, message_id,
				smtp_code, smtp_reply, created_at, retry_since, handed_off_at, finished_at)
			SELECT 'req-7', l.created_at, r.slot, due, r.state, r.reason, r.attempt, CASE WHEN r.attempt > 0 THEN 'mail-1/4711' END,
				CASE WHEN r.attempt > 0 THEN 'zoe@client.example' END, CASE WHEN r.attempt > 0 THEN md5(r.slot) || md5('')::char(8) || '@ledger.example' END,
				r.code, r.reply, due, due, CASE WHEN r.attempt > 0 THEN due + interval '2 seconds' END, due + r.took
			FROM nudged.links l, (VALUES
				('3d', 3, 'sent', NULL, 1, 250, '2.0.0 Ok: queued as 4XyZ1234', interval '3 seconds'),
				('7d', 7, 'skipped', 'paused', 0, NULL, NULL, interval '1 second'),
				('14d', 14, 'unknown', 'reply_lost', 1, NULL, 'no answer to the final dot within 5m0s', interval '5 minutes')
			) AS r (slot, days, state, reason, attempt, code, reply, took), LATERAL (SELECT l.created_at + r.days * interval '1 day') d (due)`,
		`INSERT INTO nudged.events (created_at, actor, action, request_id, detail, why)
			SELECT created_at + e.days * interval '1 day', 'ann@office', e.action, 'req-7', e.detail, e.why
			FROM nudged.links, (VALUES (6, 'pause', 'until infinity', 'called, is away until Monday'), (9, 'resume', NULL, 'is back')) AS e (days, action, detail, why)`,
	} {
		s.exec(sql)
	}
}

// undated leaves out what is another one each time: instants, files, the width of columns.
func undated(text, config string) string {
	text = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?`).ReplaceAllString(text, "INSTANT")
	text = regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) INSTANT`).ReplaceAllString(text, "INSTANT")
	text = strings.ReplaceAll(text, config, "/etc/nudged/nudged.yml")
	return strings.TrimSpace(regexp.MustCompile(`(?m) +`).ReplaceAllString(text, " "))
}

// What docs/explain.md shows is what the program prints.
func TestExplanationsAreWhatTheDocumentShows(t *testing.T) {
	text, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, smtptest.Config{})
	s.documented()
	shown := 0
	for _, m := range regexp.MustCompile("(?ms)^```console\n\\$ (nudged [^\n]*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		shown++
		printed, stderr, status := s.command(strings.Fields(m[1])[1:]...)
		if path := os.Getenv("EXPLAIN_PRINTED"); path != "" {
			if err := os.WriteFile(path+"/"+strings.ReplaceAll(m[1], " ", "_"), []byte(strings.ReplaceAll(printed, s.config, "/etc/nudged/nudged.yml")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(undated(m[2], s.config), undated(printed, s.config)); diff != "" || status != 0 {
			t.Errorf("%s: status %d %s(- shown, + printed)\n%s", m[1], status, stderr, diff)
		}
	}
	if shown != 3 {
		t.Errorf("the document shows %d explanations, want 3", shown)
	}
}
