package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A row that a view fails for is named by whoever meets it, and nobody else's is kept back.
func TestUnreadableRow(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.exec(`ALTER TABLE nudged.links RENAME TO app_links`)
	s.exec(`CREATE VIEW nudged.links AS SELECT request_id, CASE request_id WHEN 'r-1' THEN url::uuid::text ELSE url END AS url,
		created_at, expires_at, revoked_at FROM nudged.app_links`)
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title)
		SELECT 'r-' || i, 'a', 'pending', 'r' || i || '@example.net', 'T' FROM generate_series(1, 3) i`)
	s.exec(`INSERT INTO nudged.app_links (request_id, url, created_at)
		SELECT id, 'https://example.com/secret/' || id, now() - interval '3 days 1 minute' FROM nudged.requests`)
	s.exec(`SELECT nudged.touch(id) FROM nudged.requests`)

	shadow := s.start("--shadow")
	s.wait("the shadow", func() bool {
		log := shadow.log.String()
		return strings.Count(log, `msg="would send"`) == 2 && strings.Contains(log, `request \"r-1\" cannot be read`)
	})
	shadow.stop()
	other := filepath.Join(s.dir, "other.yml")
	if err := os.WriteFile(other, []byte(s.readConfig()+"cadences: {default: {after: [9d]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := s.command("plan", "--diff="+other)
	if status != 1 || !strings.Contains(stdout, "2 of 2 open requests") || !strings.Contains(stderr, `request "r-1" cannot be read: `) {
		t.Errorf("plan --diff: status %d\n%s%s", status, stdout, stderr)
	}

	p := s.start().ready()
	s.waitRows("sent/", 2)
	s.wait("the gauge", func() bool { return p.metric(`nudged_requests_misconfigured{reason="unreadable_row"}`) == "1" })
	p.stop()
	for name, text := range map[string]string{"shadow": shadow.log.String(), "daemon": p.log.String(), "plan": stderr} {
		if strings.Contains(text, "secret") {
			t.Errorf("the link is told by %s:\n%s", name, text)
		}
	}
	if log := p.log.String(); strings.Count(log, `msg="a request cannot be read; `) != 1 || !strings.Contains(log, "request_id=r-1") {
		t.Errorf("the log does not name the request once:\n%s", log)
	}
}
