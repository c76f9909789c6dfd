package deploytest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"nudged/internal/smtptest"
)

// block finds the fenced blocks of a document: language and content.
var block = regexp.MustCompile("(?ms)^ *```([a-z]+)\n(.*?)^ *```$")

// blocks returns the lines of all blocks of a language.
func blocks(text, language string) (lines []string) {
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			lines = append(lines, strings.Split(strings.TrimSpace(m[2]), "\n")...)
		}
	}
	return lines
}

// operators are the documents whose commands people run in a hurry.
func operators() []string { return []string{"docs/runbook.md", "docs/operations.md"} }

// Every command of a console block is run, in the order of the document, on an installation where two
// outcomes are unknown (req-1, req-2) and one more for the loop over all, and ends well.
func TestCommandsOfTheDocuments(t *testing.T) {
	for _, tool := range []struct{ name, pkg string }{{"psql", "postgresql-client"}, {"curl", "curl"}, {"jq", "jq"}} {
		debian(t, tool.name, tool.pkg)
	}
	for _, name := range operators() {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := newSite(t, "")
			s.due("req", 8, time.Minute)
			s.smtp.SetScript(smtptest.OnDot(func(m smtptest.Message) smtptest.Action {
				if slices.Contains([]string{"req1@example.net", "req2@example.net", "req5@example.net"}, m.To[0]) {
					return smtptest.Hangup()
				}
				return smtptest.Action{}
			}))
			d := s.start().ready()
			s.waitReminders("unknown", 3)
			s.waitReminders("sent", 5)
			s.smtp.SetScript(nil)
			s.exec(`INSERT INTO nudged.suppressions (address, reason) VALUES ('ann@example.com', '550')`)

			s.grantsFile(name)

			commands := 0
			for _, line := range blocks(read(t, name), "console") {
				command, is := strings.CutPrefix(strings.TrimSpace(line), "$ ")
				if !is {
					continue
				}
				commands++
				if got := s.shell(d, command); got.status != 0 {
					t.Errorf("$ %s\nends with %d:\n%s%s", command, got.status, got.stdout, got.stderr)
				}
			}
			t.Logf("%d commands ended well", commands)
			if name == "docs/operations.md" {
				d.end(os.Interrupt)
				s.worksAsRestrictedRole()
			}
			if n := s.reminders("unknown"); name == "docs/runbook.md" && n != 0 {
				t.Errorf("%d outcomes are unknown after what the runbook tells to do", n)
			}
		})
	}
}

// grantsFile writes the statements of a document that a command of it reads, and sees to it that the
// roles and the database that its commands create go again.
func (s *site) grantsFile(name string) {
	s.t.Helper()
	statements := strings.Join(blocks(read(s.t, name), "sql"), "\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.config), "grants.sql"), []byte(statements), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.exec(`DROP DATABASE IF EXISTS nudged_restored WITH (FORCE)`)
		for _, role := range []string{"nudged", "app"} {
			s.exec(`DO $$ BEGIN IF to_regrole('` + role + `') IS NOT NULL THEN DROP OWNED BY ` + role + `; DROP ROLE ` + role + `; END IF; END $$`)
		}
	})
}

// worksAsRestrictedRole holds the grants against all that the daemon, a person and the application do.
func (s *site) worksAsRestrictedRole() {
	s.t.Helper()
	owner := *s
	s.url = strings.Replace(s.url, "//postgres@", "//nudged@", 1)
	d := s.start().ready()
	sent := s.reminders("sent")
	owner.exec(`SET ROLE app;
		INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('new', 'a', 'pending', 'new@example.net', 'T');
		INSERT INTO nudged.links (request_id, url, created_at) VALUES ('new', 'https://example.com/u', now() - interval '3 days 1 minute');
		UPDATE nudged.requests SET title = 'Tax return' WHERE id = 'new';
		RESET ROLE`)
	s.waitReminders("sent", sent+1)
	for _, command := range []string{
		`nudged pause new --why "on holiday"`, `nudged resume new`, `nudged explain new`,
		`nudged suppress ann@example.com --why "asked us"`, `nudged unsuppress ann@example.com`,
		`nudged resolve req-1 3d --sent --why "it arrived"`, `nudged adopt --force --why "we mean it"`,
		`nudged migrate --status`, `nudged plan req-3`,
	} {
		if got := s.shell(d, command); got.status != 0 {
			s.t.Errorf("$ %s\nends with %d as the restricted role:\n%s", command, got.status, got.stderr)
		}
	}
	owner.exec(`SET ROLE app; DELETE FROM nudged.links WHERE request_id = 'new'; DELETE FROM nudged.requests WHERE id = 'new'; RESET ROLE`)
	wait(s.t, "the schedule of a deleted request to go", func() bool {
		var there bool
		err := owner.db.QueryRow(context.Background(), `SELECT EXISTS (SELECT 1 FROM nudged.schedules WHERE request_id = 'new')`).Scan(&there)
		return err == nil && !there
	})
	d.end(os.Interrupt)
	if strings.Contains(d.log.String(), "permission denied") {
		s.t.Error("the restricted role lacks a right")
	}
}

// shell runs a command of a document as an operator would, on the port of this daemon.
func (s *site) shell(d *daemon, command string) finished {
	s.t.Helper()
	env := append(s.environment(), fmt.Sprintf("PATH=%s:%s", filepath.Dir(program), os.Getenv("PATH")), "PAGER=cat")
	return execute(s.t, filepath.Dir(s.config), env, "sh", "-c", strings.ReplaceAll(command, "127.0.0.1:9847", d.address))
}

// The queries of the documents parse and name metrics that are there.
func TestQueriesOfTheDocuments(t *testing.T) {
	kinds := exposed(t)
	for _, name := range operators() {
		for _, line := range blocks(read(t, name), "promql") {
			expr, err := promQL().ParseExpr(line)
			if err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
				continue
			}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if selector, ok := node.(*parser.VectorSelector); ok && kinds[familyOf(selector.Name, kinds)] == "" {
					t.Errorf("%s: no daemon exposes %s", name, selector.Name)
				}
				return nil
			})
		}
	}
}

// Other shell blocks need machines that are not here, but the commands of nudged in them exist.
func TestSubcommandsOfTheDocuments(t *testing.T) {
	help := execute(t, "", nil, program, "--help").stdout
	for _, name := range operators() {
		for _, m := range regexp.MustCompile("\\bnudged ([a-z][a-z-]+)[` ]").FindAllStringSubmatch(strings.Join(blocks(read(t, name), "sh"), "\n"), -1) {
			if !strings.Contains(help, "\n  "+m[1]+" ") {
				t.Errorf("%s: there is no command %s", name, m[0])
			}
		}
	}
}

// The runbook says of each alert what it means, what it does, what to look at and what to do.
func TestRunbookIsComplete(t *testing.T) {
	_, alerts := rules(t)
	sections := map[string]string{}
	for _, section := range strings.Split(read(t, "docs/runbook.md"), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	for _, alert := range alerts {
		for _, part := range []string{"**Meaning.**", "**Impact.**", "**Look at", "**Do"} {
			if !strings.Contains(sections[alert.Alert], part) {
				t.Errorf("%s: the runbook has no %s", alert.Alert, part)
			}
		}
		delete(sections, alert.Alert)
	}
	for title := range sections {
		t.Errorf("there is no alert %s", title)
	}
}
