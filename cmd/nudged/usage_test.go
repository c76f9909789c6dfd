package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// refused runs a subcommand that must end with this status and exactly this on standard error.
func (s *site) refused(status int, want string, args ...string) {
	s.t.Helper()
	out, stderr, got := s.command(args...)
	if got != status || stderr != want+"\n" || out != "" {
		s.t.Errorf("%s: status %d, %s%s; want status %d and\n%s", strings.Join(args, " "), got, out, stderr, status, want)
	}
}

// One run names what is wrong, what is missing, and what is wrong with the templates.
func TestEveryKindOfMistakeInOneRun(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	templates := filepath.Join(s.dir, "templates")
	if err := os.MkdirAll(filepath.Join(templates, "fr"), 0o700); err != nil {
		t.Fatal(err)
	}
	body := filepath.Join(templates, "fr/body.txt")
	if err := os.WriteFile(body, []byte("\n{{.Titel}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.writeConfig("\ufeffpoll: {every: 30}\r\nmail: {templates: templates}\r\n")
	missing := s.config + `:1: poll.every: no unit, want a duration such as 90s, 5m, 48h, 7d or 2w, or a cron expression of five fields (got "30")
` + s.config + `:1: smtp.host: needed here: want the name of the relay (got "")
` + s.config + `:2: mail.from: needed here: want the address that mail comes from (got "")`
	s.refused(2, missing+"\n"+body+`:2: mail.templates: executing "fr/body.txt" at <.Titel>: can't evaluate field Titel in type mailer.TemplateData`, "check-config")
	s.refused(2, missing, "run", "--web.listen-address=127.0.0.1:0")
}

// A pipe in the place of a file holds nobody up.
func TestPipesAreRefused(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	good, pipe := s.config, filepath.Join(s.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s.refused(2, `nudged: --web.config.file: file cannot be read: not a regular file (got "`+pipe+`")`, "run", "--web.listen-address=127.0.0.1:0", "--web.config.file="+pipe)
	s.refused(2, `nudged: --web.config.file: file cannot be read: no such file or directory (got "none")`, "run", "--web.config.file=none")
	s.config = pipe
	for _, args := range [][]string{
		{"check-config"}, {"explain", "r"}, {"migrate"}, {"run", "--web.listen-address=127.0.0.1:0"}, {"run", "--shadow"},
		{"plan", "--anchor=2026-05-01T10:00:00Z"},
	} {
		s.refused(2, pipe+": file cannot be read: not a regular file", args...)
	}
	s.config = good
	s.refused(2, "/dev/zero: file cannot be read: not a regular file", "plan", "--diff=/dev/zero")

	templates := filepath.Join(s.dir, "templates")
	if err := os.Mkdir(templates, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(templates, "body.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(templates, "body.html"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	s.writeConfig(strings.Replace(s.readConfig(), "mail: {", "mail: {templates: templates, ", 1))
	s.refused(2, templates+`/body.html:1: mail.templates: cannot be read: file is larger than 1 MiB
`+templates+`/body.txt:1: mail.templates: cannot be read: not a regular file`, "check-config")
	s.start().ready().stop()
}

// What a flag says is used or refused, never ignored.
func TestFlagsThatSayNothing(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	const anchor = "--anchor=2026-05-01T10:00:00Z"
	const usage = " (see nudged --help)"
	for _, out := range []string{"9999-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"} {
		s.refused(2, fmt.Sprintf("nudged: --anchor: want a time of the years 1970 to 9998 (got %q)", out), "plan", "--anchor", out)
	}
	s.want("3d", "plan", "--anchor", "1970-01-01T00:00:00Z")
	s.want("3d", "plan", "--anchor", "9998-12-01T00:00:00Z")
	for _, n := range []string{"-1", "0", "10001", "many"} {
		want := fmt.Sprintf("nudged: --count: want a whole number from 1 to 10000 (got %q)%s", n, usage)
		s.refused(2, want, "plan", anchor, "--count", n)
		s.refused(2, want, "plan", anchor, "--count="+n)
	}
	for _, flag := range []string{"cadence", "anchor", "zone", "expires", "deadline", "diff"} {
		s.refused(2, "nudged: --"+flag+`: must not be empty (got ""): leave the flag away, or give it a value`+usage, "plan", "--"+flag, "")
	}
	s.refused(2, `nudged: --until: must not be empty (got ""): leave the flag away, or give it a value`+usage, "pause", "r", "--until", "", "--why", "x")
	s.refused(2, `nudged: --why: must not be empty (got " "): leave the flag away, or give it a value`+usage, "pause", "r", "--why", " ")
	for flag, value := range map[string]string{"cadence": "default", "anchor": "2026-05-01T10:00:00Z", "zone": "Europe/Paris", "expires": "2026-06-01T10:00:00Z", "deadline": "2026-05-20"} {
		s.refused(2, fmt.Sprintf("nudged: --%s: does not go with a request id, whose row and link have their own (got %q)", flag, value), "plan", "r", "--"+flag, value)
		s.refused(2, fmt.Sprintf("nudged: --%s: does not go with --diff, which shows every open request as it is (got %q)", flag, value), "plan", "--diff", s.config, "--"+flag, value)
	}
	s.refused(2, `nudged: --count: does not go with --diff, which shows every open request as it is (got "5")`, "plan", "--diff", s.config, "--count", "5")
	s.refused(2, "nudged: plan takes a request id or --diff, not both", "plan", "r", "--diff", s.config)
}

// A pause that is over, and the end of what never began.
func TestNothingToDo(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(1)
	s.refused(2, `nudged: --until: want a time to come, and this one is over (got "2020-01-01")`, "pause", "r-1", "--until=2020-01-01", "--why=x")
	s.refused(2, `nudged: --until: want a time to come, and this one is over (got "2020-01-01T10:00:00Z")`, "pause", "r-1", "--until=2020-01-01T10:00:00Z", "--why=x")
	said := func(want string, args ...string) {
		t.Helper()
		if out, stderr, status := s.command(args...); status != 0 || out != want+"\n" || stderr != "" {
			t.Errorf("%s: status %d, %s%s; want %s", strings.Join(args, " "), status, out, stderr, want)
		}
	}
	said("request r-1 was not paused: there was nothing to do", "resume", "r-1")
	s.exec(`UPDATE nudged.requests SET paused_until = now() - interval '1 minute' WHERE id = 'r-1'`)
	said("request r-1 was not paused: there was nothing to do", "resume", "r-1")
	said("the address was not suppressed: there was nothing to do", "unsuppress", "r1@example.net")
	var events int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.events`).Scan(&events); err != nil || events != 0 {
		t.Errorf("%d events tell of nothing (%v)", events, err)
	}
	said("request r-1 is paused until resumed", "pause", "r-1", "--until=9999-12-31T23:59:59Z", "--why=x")
	said("request r-1 is resumed: slots that fall due from now on go out", "resume", "r-1")
	said("request r-1 was not paused: there was nothing to do", "resume", "r-1")
	said("the address is suppressed", "suppress", "r1@example.net", "--why=x")
	said("the address was suppressed already: there was nothing to do", "suppress", "r1@example.net", "--why=x")
	said("the address may be mailed again", "unsuppress", "r1@example.net")
	s.refused(1, "nudged: request nobody: there is none", "resume", "nobody")
}

// To adopt what is in service would drop what is due: only force does that.
func TestAdoptLeavesWhatIsInService(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.start().ready().stop()
	s.due(1)
	s.refused(1, `nudged: nothing is changed: the database is in service for the environment "test" already, and to adopt it anew would drop what is due; `+
		`if it is a copy of the server's files, such as a snapshot, say --force`, "adopt", "--why=to be sure")
	s.start().ready()
	s.waitRows("sent/", 1)
	s.want(`the database is adopted for the environment "test": slots due until now are not sent, later ones are`, "adopt", "--force", "--why=a snapshot")
}

// Addresses that cannot be listened on are the user's mistake; one that is taken is not.
func TestListenAddresses(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	for _, address := range []string{"nope", ":99999", "127.0.0.1", "127.0.0.1:-1", "127.0.0.1:no-such-port", "::1:9847", ""} {
		want := fmt.Sprintf("nudged: --web.listen-address: want HOST:PORT such as 127.0.0.1:9847, or :9847 for every address (got %q)", address)
		s.refused(2, want, "run", "--web.listen-address="+address)
		s.refused(2, want, "run", "--dev", "--web.listen-address="+address)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.refuseRun("nudged: listen for the web: listen tcp "+taken.Addr().String()+": bind: address already in use", "--web.listen-address="+taken.Addr().String())
}

// A mistake of the web configuration shows only where that is used, and is the user's all the same.
func TestMistakesThatShowLate(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	web := filepath.Join(s.dir, "web.yml")
	if err := os.WriteFile(web, []byte("tls_server_confg: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.refuse(2, "field tls_server_confg not found", "run", "--web.listen-address=127.0.0.1:0", "--web.config.file="+web)
}

// --dev tells the port that it has, not the one that was asked for.
func TestDevTellsItsRealAddress(t *testing.T) {
	dir, err := os.MkdirTemp("", "nudged-dev-") // for another account to reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	// How to reach the server of whoever tries it says nothing about this one.
	t.Setenv("PGSSLMODE", "require")
	t.Setenv("PGSERVICE", "elsewhere")
	s := &site{t: t, binary: os.Getenv("NUDGED_TEST_BINARY")}
	p := s.start("--dev", "--dev.dir="+dir)
	told := regexp.MustCompile(`(?m)^  status     http://(127\.0\.0\.1:[0-9]+)/$`)
	var address string
	for deadline := time.Now().Add(patience); address == ""; time.Sleep(20 * time.Millisecond) {
		if m := told.FindStringSubmatch(p.log.String()); m != nil {
			address = m[1]
		} else if time.Now().After(deadline) {
			t.Fatalf("no address is told:\n%s", p.log)
		}
	}
	log := p.log.String()
	if strings.HasSuffix(address, ":0") || !strings.Contains(log, "  metrics    http://"+address+"/metrics\n") || !strings.Contains(log, `msg="Listening on" address=`+address+"\n") {
		t.Errorf("%s is told as the address", address)
	}
	t.Setenv("PGSERVICE", "") // now for what people type: the URL that is told does without TLS
	database := regexp.MustCompile(`(?m)^  database   '(.+)'$`).FindStringSubmatch(log)
	if database == nil {
		t.Fatalf("no database is told:\n%s", log)
	}
	s.want("Slot 3d", "explain", "sample-due-1", "--database.url="+database[1])
	p.stop()
}

// A request with a mail of megabytes fails alone.
func TestMailOfMegabytes(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(3)
	s.exec(`UPDATE nudged.requests SET message = repeat('all of it again ', 2000000) WHERE id = 'r-2'`)
	s.start().ready()
	s.waitRows("sent/", 2)
	s.waitRows("failed/template_error", 1)
	s.want("the mail could not be written; the mail is larger than 1 MiB", "explain", "r-2")
	if n := s.acceptedOnce(); n != 2 {
		t.Errorf("%d mails, want those of the others", n)
	}
	s.refused(1, "nudged: the mail of slot 3d cannot be written: template_error: the mail is larger than 1 MiB", "render", "r-2", "--slot=3d")
}

// A stop is told when it begins, with the signal, and when it is over, with what is left.
func TestStopIsTold(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	p := s.start().ready()
	p.stop()
	s.checkStop(p, "terminated", 0, 0)
	p = s.start("--shadow")
	s.wait("the shadow", func() bool { return strings.Contains(p.log.String(), "nudged shadows") })
	p.stop()
	if n := strings.Count(p.log.String(), `msg="nudged has stopped" signal=terminated`+"\n"); n != 1 {
		t.Errorf("the shadow tells its stop %d times", n)
	}
}

func (s *site) checkStop(p *process, signal string, inFlight, notRecorded int) {
	s.t.Helper()
	begins := regexp.MustCompile(`msg="nudged is stopping: what was handed off ends and is recorded" signal=` + signal + ` in_flight=[0-9]+\n`)
	over := regexp.MustCompile(fmt.Sprintf(`msg="nudged has stopped" duration=[0-9.]+[µm]?s in_flight=%d not_recorded=%d\n$`, inFlight, notRecorded))
	if log := p.log.String(); len(begins.FindAllString(log, -1)) != 1 || len(over.FindAllString(log, -1)) != 1 {
		s.t.Errorf("the stop is not told as it was:\n%s", log)
	}
}

// A database that is away is told of once a line.
func TestDatabaseAwayIsToldOnce(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.url = "postgres://nobody@127.0.0.1:1/none"
	const cause = "failed to connect to `user=nobody database=none`: 127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused"
	s.refused(1, "nudged: read the schema version: "+cause, "explain", "r")
	s.refused(1, "nudged: connect to the database: "+cause, "migrate")
	p := s.start()
	s.wait("the log line", func() bool { return strings.Contains(p.log.String(), "nothing is sent yet") })
	p.stop()
	if n := strings.Count(p.log.String(), "connection refused"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// What a row asks for and cannot have is told by explain with its value, and counted without it.
func TestRowsWithMistakesAreShown(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.due(5)
	for id, change := range map[string]string{
		"r-1": `nudged.requests SET locale = 'fran_ais!' WHERE id`, "r-2": `nudged.requests SET reply_to = 'marta-at-home' WHERE id`,
		"r-3": `nudged.requests SET time_zone = 'Mars/Olympus' WHERE id`, "r-4": `nudged.links SET created_at = 'infinity' WHERE request_id`,
		"r-5": `nudged.links SET created_at = '-infinity' WHERE request_id`,
	} {
		s.exec(`UPDATE `+change+` = $1`, id)
	}
	p := s.start().ready()
	s.waitRows("sent/", 3)
	for id, want := range map[string]string{
		"r-1": `"fran_ais!" is not the tag of a language`, "r-2": `"marta-at-home" is not an address that answers can go to`,
		"r-3": `there is no time zone "Mars/Olympus"; the default zone UTC is used instead`,
		"r-4": "Nothing is sent: links.created_at is outside of the years 1970 to 9998 (it is infinity).",
		"r-5": "Nothing is sent: links.created_at is outside of the years 1970 to 9998 (it is -infinity).",
	} {
		s.want(want, "explain", id)
	}
	s.refused(1, "nudged: request r-4 has no plan: links.created_at is outside of the years 1970 to 9998 (it is infinity)", "plan", "r-4")
	s.refused(1, "nudged: links.created_at is outside of the years 1970 to 9998 (it is infinity)", "render", "r-4")
	s.wait("the gauges", func() bool {
		_, metrics := p.get("/metrics")
		counted := true
		for reason, n := range map[string]int{"unknown_locale": 1, "invalid_reply_to": 1, "unknown_zone": 1, "anchor_out_of_range": 2, "unknown_cadence": 0} {
			counted = counted && strings.Contains(metrics, fmt.Sprintf("nudged_requests_misconfigured{reason=%q} %d\n", reason, n))
		}
		return counted && !strings.Contains(metrics, "marta") && !strings.Contains(metrics, "fran_ais")
	})
	if log := p.log.String(); strings.Contains(log, "marta") || strings.Contains(log, "fran_ais") {
		t.Errorf("the log tells a value:\n%s", log)
	}
	if rows := s.rows(); len(rows) != 1 {
		t.Errorf("the ledger has %v, want nothing of the others", rows)
	}
}
