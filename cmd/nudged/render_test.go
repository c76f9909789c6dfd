package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// What render shows is what the daemon then sends, byte for byte, and showing it changes nothing.
func TestRenderShowsTheVeryMail(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	zone := "Asia/Tokyo" // where no midnight is near, which would change the days left between the two
	if time.Now().UTC().Hour() >= 12 {
		zone = "America/Denver"
	}
	s.exec(`UPDATE nudged.requests SET locale = 'fr', deadline = current_date + 5, time_zone = $1, recipient_name = 'Zoé'`, zone)
	s.exec(`INSERT INTO nudged.documents (request_id, position, title, state, rejection_reason)
	        VALUES ('r-1', 1, 'Passeport', 'missing', NULL), ('r-1', 2, 'Bulletin', 'rejected', 'illisible')`)
	shown, stderr, status := s.command("render", "r-1")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if rows := s.rows(); len(rows) != 0 || len(s.smtp.Bodies()) != 0 {
		t.Errorf("render left %v and sent %d mails", rows, len(s.smtp.Bodies()))
	}
	if named, _, _ := s.command("render", "r-1", "--slot", "3d"); named != shown {
		t.Error("the slot by its name is another mail")
	}
	s.want("Bulletin\n  Motif", "render", "r-1", "--format", "text")
	s.want("<html lang=\"fr\" dir=\"ltr\">", "render", "r-1", "--format", "html")
	if out, _, _ := s.command("render", "r-1", "--format", "text"); !strings.HasPrefix(out, "Bonjour Zoé,\n") || strings.Contains(out, "\r") {
		t.Errorf("got %q", out)
	}

	p := s.start().ready()
	s.waitRows("sent/", 1)
	p.stop()
	if sent := string(s.smtp.Accepted()[0].Data); sent != shown {
		t.Errorf("sent was\n%s\nshown was\n%s", sent, shown)
	}
	if again, _, _ := s.command("render", "r-1", "--slot", "3d"); again != shown {
		t.Error("the slot that was sent is another mail now")
	}
	next, _, _ := s.command("render", "r-1")
	if next == shown || !strings.Contains(next, "References: ") {
		t.Errorf("the next slot is\n%s", next)
	}
	if seventh, _, _ := s.command("render", "r-1", "--slot", "7d"); seventh != next {
		t.Error("the next slot is not 7d")
	}

	s.refuse(1, `there is no request "r-2"`, "render", "r-2")
	s.refuse(1, `the cadence has no slot "8d"`, "render", "r-1", "--slot", "8d")
	s.refuse(2, "--format", "render", "r-1", "--format", "pdf")
	s.exec(`UPDATE nudged.requests SET status = 'completed'`)
	s.refuse(1, "no slot of the request is to come", "render", "r-1")
	s.exec(`UPDATE nudged.requests SET recipient_email = '@'`)
	s.refuse(1, "invalid_address", "render", "r-1", "--slot", "7d")
}

// check-config names file and line of what is wrong with a template; the daemon starts all the same.
func TestBadTemplate(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	templates := filepath.Join(s.dir, "templates")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(templates, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fr/body.txt", "Bonjour,\n{{.Titel}}\n")
	s.writeConfig(strings.Replace(s.readConfig(), "reminders@example.com>\"", "reminders@example.com>\", templates: templates", 1))
	s.refuse(2, filepath.Join(templates, "fr/body.txt")+":2: mail.templates: ", "check-config")
	s.refuse(2, "can't evaluate field Titel", "check-config")
	write("de/subject.txt", "{{")
	_, stderr, status := s.command("check-config")
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); status != 2 || len(lines) != 2 || !strings.HasPrefix(lines[0], filepath.Join(templates, "de/subject.txt")+":1: ") {
		t.Errorf("status %d: %s", status, stderr)
	}

	s.due(3)
	s.exec(`UPDATE nudged.requests SET locale = CASE id WHEN 'r-1' THEN 'fr' WHEN 'r-2' THEN 'de' END`)
	p := s.start().ready()
	s.waitRows("sent/", 2)
	s.waitRows("failed/template_error", 1)
	if !strings.Contains(p.log.String(), "de/subject.txt:1: ") {
		t.Errorf("the log does not tell: %s", p.log)
	}
	p.stop()
	s.want("fr/body.txt:2:", "explain", "r-1")

	write("fr/body.txt", "Bonjour,\n{{.Title}}\n")
	write("de/subject.txt", "{{.SenderName}}")
	s.want(": ok (", "check-config")
}
