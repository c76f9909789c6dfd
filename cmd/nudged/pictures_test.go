package main_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"nudged/internal/smtptest"
)

var pictures = flag.String("pictures", "", "folder to write the pictures of the documentation to")

// office is a small office in the middle of a working day.
var office = []string{
	`INSERT INTO nudged.requests (id, account_id, status, recipient_email, recipient_name, title, message, time_zone, sender_name, reply_to, deadline)
	 VALUES ('tax-2026-0042', 'ledger-co', 'pending', 'nora@client.example', 'Nora Lindqvist', 'Year-end papers',
	         E'I can start as soon as these are here.\nMany thanks!', 'Europe/Stockholm', 'Grace of Ledger & Co', 'grace@ledger.example', current_date + 20),
	        ('tax-2026-0077', 'ledger-co', 'pending', 'omar@client.example', 'Omar', 'Lease', NULL, 'Europe/Stokholm', 'Grace of Ledger & Co', NULL, NULL)`,
	`INSERT INTO nudged.links (request_id, url, created_at, expires_at)
	 SELECT id, 'https://uploads.ledger.example/' || md5(id), date_trunc('hour', now()) - interval '16 days', now() + interval '45 days' FROM nudged.requests`,
	`INSERT INTO nudged.documents (request_id, position, title, description, required, state, rejection_reason)
	 VALUES ('tax-2026-0042', 1, 'Bank statement', 'As of 31 December.', true, 'rejected', 'Page 2 is missing.'),
	        ('tax-2026-0042', 2, 'Salary statements', 'All twelve months.', true, 'missing', NULL),
	        ('tax-2026-0042', 3, 'Donation receipts', NULL, false, 'missing', NULL)`,
	`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, claimed_by, recipient, message_id, smtp_code, smtp_reply, handed_off_at, finished_at)
	 SELECT l.request_id, l.created_at, slot, l.created_at + due, state, reason, attempt, worker, 'nora@client.example', message_id, code, reply,
	        CASE WHEN worker IS NOT NULL THEN l.created_at + due + interval '2 seconds' END, l.created_at + due + took
	 FROM nudged.links l, (VALUES
	     ('3d', interval '3 days', 'sent', NULL, 2, 'mail-1/4711', left(md5('a'), 16) || '@ledger.example', 250, '2.0.0 Ok: queued as 4F1A2B3C4D', interval '3 seconds'),
	     ('7d', interval '7 days', 'skipped', 'paused', 0, NULL, NULL, NULL, NULL, interval '1 second'),
	     ('14d', interval '14 days', 'unknown', 'reply_lost', 1, 'mail-1/4711', left(md5('b'), 16) || '@ledger.example', NULL, 'no answer within 10m0s', interval '602 seconds')
	   ) AS r (slot, due, state, reason, attempt, worker, message_id, code, reply, took)
	 WHERE l.request_id = 'tax-2026-0042'`,
	`INSERT INTO nudged.events (created_at, actor, action, request_id, why)
	 VALUES (now() - interval '10 days', 'grace@office-1', 'pause', 'tax-2026-0042', 'away until Monday, says nora@client.example'),
	        (now() - interval '8 days', 'grace@office-1', 'resume', 'tax-2026-0042', 'back again')`,
	`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, handed_off_at, finished_at)
	 SELECT 'tax-2026-' || lpad((i * 37 % 400)::text, 4, '0'), now() - interval '7 days', '7d', now() - i * interval '7 minutes',
	        CASE WHEN i IN (3, 8) THEN 'failed' ELSE 'sent' END, CASE i WHEN 3 THEN 'recipient_refused' WHEN 8 THEN 'retries_exhausted' END, 1,
	        now() - i * interval '7 minutes', now() - i * interval '7 minutes' + interval '2 seconds'
	 FROM generate_series(1, 12) i`,
	`INSERT INTO nudged.schedules (request_id, wake_at) SELECT 'other-' || i, now() + i * i * interval '5 seconds' FROM generate_series(1, 340) i`,
}

// TestPictures takes the pictures of docs/screenshots: go test ./cmd/nudged -run Pictures -pictures DIR.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("it draws the pictures of the documentation when it is given a folder with -pictures")
	}
	b := startBrowser(t)
	s := newSite(t, smtptest.Config{})
	text := s.readConfig()
	s.config = filepath.Join(os.TempDir(), "nudged.yml") // the commands in the pictures name it
	s.writeConfig(text + "cadences: {default: {after: [3d, 7d, 14d], then_every: 7d}}\n")
	t.Cleanup(func() { os.Remove(s.config) })
	for _, sql := range office {
		s.exec(sql)
	}
	p := s.start().ready()
	s.waitPlanned()
	b.open(p.web+"/", 1280)
	b.shoot("overview-1280", 1700)
	b.open(p.web+"/", 360)
	b.shoot("overview-360", 1500)
	b.open(p.web+"/requests/tax-2026-0042", 1280)
	b.shoot("request-1280", 1500)
	b.dark(true)
	b.open(p.web+"/requests/tax-2026-0042", 360)
	b.shoot("request-dark-360", 1500)
}
