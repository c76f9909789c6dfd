package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"nudged/cadence"
)

var update = flag.Bool("update", false, "write the .want files of testdata/bad anew")

// oneMistake is the shape of every line that a user gets to read.
var oneMistake = regexp.MustCompile(`^[^:\n]+:\d+: [^\n]+$`)

// TestBadFiles loads one bad file a rule and compares the exact text.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Load(file, Overrides{})
			if _, ok := errors.AsType[Mistakes](err); !ok {
				t.Fatalf("error %v, want mistakes", err)
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !oneMistake.MatchString(line) || strings.Contains(line, "hunter2") {
					t.Errorf("unfit line %q", line)
				}
			}
			golden := strings.TrimSuffix(file, ".yml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if diff := cmp.Diff(string(want), err.Error()+"\n"); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryMistakeInOneRun(t *testing.T) {
	_, err := Load("testdata/bad/five_mistakes.yml", Overrides{})
	if mistakes, _ := errors.AsType[Mistakes](err); len(mistakes) != 5 {
		t.Errorf("%d mistakes, want 5:\n%v", len(mistakes), err)
	}
}

// TestRejectedCadences wraps every definition that must be refused as a configuration.
func TestRejectedCadences(t *testing.T) {
	data, err := os.ReadFile("testdata/reject.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		ID      string
		Cadence map[string]any
	}
	if err := json.Unmarshal(data, &rows); err != nil || len(rows) != 62 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	// What a row is refused for, where it is not its only key: key and value.
	wants := map[string][2]string{
		"S01": {"after", "[]"}, "S02": {"after[0]", "0d"}, "S03": {"after[1]", "3d"}, "S04": {"after[1]", "3d"},
		"S05": {"after[0]", "3x"}, "S06": {"after[0]", "3"}, "S07": {"after[0]", "-3d"}, "S08": {"after[0]", "+3d"},
		"S09": {"after[0]", "1.5d"}, "S10": {"then_every", "0d"}, "S11": {"then_every", "7h"}, "S12": {"then_every", "7d"},
		"S13": {"at", "24:00"}, "S14": {"at", "9:00"}, "S15": {"at", "09:60"}, "S16": {"days", "[]"},
		"S17": {"days[0]", "monday"}, "S18": {"holidays[0]", "2026-02-30"}, "S19": {"then_every", "-7d"},
		"S20": {"after[0]", "99999999999999999999d"}, "S21": {"cron", "0 9 * * *"}, "S22": {"max", "0"}, "S23": {"max", "-1"},
		"S24": {"colour"}, "S25": {"", ""},
	}
	for _, row := range rows {
		t.Run(row.ID, func(t *testing.T) {
			definition, err := json.Marshal(row.Cadence)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("cadences:\n  default: {after: [3d]}\n  refused: %s\n", definition)
			_, err = Parse("nudged.yml", []byte(text), Overrides{})
			if err == nil {
				t.Fatal("accepted")
			}
			want, ok := wants[row.ID]
			if !ok {
				want = [2]string{"cron", row.Cadence["cron"].(string)}
			}
			path := "cadences.refused"
			if want[0] != "" {
				path += "." + want[0]
			}
			line := err.Error()
			if strings.Contains(line, "\n") || !strings.HasPrefix(line, "nudged.yml:3: "+path+": ") ||
				want[0] != "colour" && !strings.HasSuffix(line, fmt.Sprintf(" (got %q)", want[1])) {
				t.Errorf("got %q, want one line about %s and %q", line, path, want[1])
			}
		})
	}
}

func TestExample(t *testing.T) {
	c, err := Load("testdata/good/example.yml", Overrides{}, NeedDatabase, NeedMail)
	if err != nil {
		t.Fatal(err)
	}
	want := standard()
	want.File, want.Hash = "testdata/good/example.yml", c.Hash
	want.Database.URL = NewSecret("postgres://nudged@localhost/app")
	want.SMTP.Host, want.SMTP.Username, want.SMTP.Password = "smtp.example.com", "nudged", NewSecret("hunter2-smtp")
	want.Mail.From = mail.Address{Name: "Example", Address: "reminders@example.com"}
	want.Mail.MessageIDDomain = "example.com"
	compare(t, want, c)
}

func TestEveryKey(t *testing.T) {
	c, err := Load("testdata/good/full.yml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	paris, err := cadence.LoadZone("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		File:        "testdata/good/full.yml",
		Hash:        c.Hash,
		Environment: "staging",
		Database:    Database{URL: NewSecret("postgres://nudged:hunter2-db@db.example.com/app")},
		Poll:        Poll{Tick: Tick{Cron: "*/5 * * * *"}, Batch: 10, Lease: 2 * time.Second},
		SMTP: SMTP{
			Host: "::1", Port: 465, TLS: TLSImplicit, RootCAs: c.SMTP.RootCAs,
			Username: "nudged", Password: NewSecret("hunter2-smtp"), Connections: 2, Rate: 0.5,
			DialTimeout: time.Second, CommandTimeout: 2 * time.Second, ReplyTimeout: 193 * time.Hour,
			IdempotencyHeader: "Resend-Idempotency-Key", IdempotencyWindow: 168 * time.Hour, DSN: true,
		},
		Mail: Mail{
			From:          mail.Address{Name: "Zoë", Address: "zoe@bücher.example"},
			BounceAddress: "bounces@example.com", MessageIDDomain: "xn--bcher-kva.example",
			Unsubscribe: "https://example.com/stop?id={request_id}", Templates: "testdata/good/templates",
			Recipients: c.Mail.Recipients,
		},
		Defaults: Defaults{Cadence: "weekday_mornings", TimeZone: paris, Locale: "fr-CA"},
		Limits: Limits{MaxLateness: 48 * time.Hour, RetryFor: 36 * time.Hour,
			RetryBackoff: Backoff{Initial: 500 * time.Millisecond, Max: 90 * time.Second}},
		Retention: 52 * 7 * 24 * time.Hour,
	}
	compare(t, want, c)
	if c.SMTP.RootCAs == nil {
		t.Error("no certificates")
	}
	for _, name := range []string{"default", "plain", "weekday_mornings"} {
		if c.Cadences[name] == nil {
			t.Errorf("no cadence %s", name)
		}
	}
}

// compare leaves out what cannot be compared by value: cadences, certificates, patterns.
func compare(t *testing.T, want, got *Config) {
	t.Helper()
	a, b := *want, *got
	a.Cadences, b.Cadences = nil, nil
	a.Mail.Recipients, b.Mail.Recipients, a.SMTP.RootCAs, b.SMTP.RootCAs = Recipients{}, Recipients{}, nil, nil
	zones := cmp.Comparer(func(x, y *time.Location) bool { return x == y })
	if diff := cmp.Diff(a, b, zones, cmp.AllowUnexported(Config{}, Secret{}, Recipients{})); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestDefault(t *testing.T) {
	c := Default()
	want := standard()
	want.Hash = c.Hash
	compare(t, want, c)
	if c.Cadences["default"] == nil || len(c.Cadences) != 1 {
		t.Errorf("cadences %v, want the built-in one", c.Cadences)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "cadences:\nsmtp:\n", "{}", "\ufeff{}"} {
		c, err := Parse("nudged.yml", []byte(text), Overrides{})
		if err != nil || c.Cadences["default"] == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNeeds(t *testing.T) {
	const database = `database.url: needed here: set it, database.url_file, --database.url or NUDGED_DATABASE_URL (got "")`
	for name, tt := range map[string]struct {
		text  string
		needs []Need
		want  string
	}{
		"nothing is there": {needs: []Need{NeedDatabase, NeedMail}, want: `nudged.yml:1: ` + database + `
nudged.yml:1: smtp.host: needed here: want the name of the relay (got "")
nudged.yml:1: mail.from: needed here: want the address that mail comes from (got "")`},
		"nothing is needed": {},
		"at the section": {text: "environment: test\nsmtp:\n  port: 25\nmail:\n", needs: []Need{NeedMail},
			want: `nudged.yml:2: smtp.host: needed here: want the name of the relay (got "")
nudged.yml:4: mail.from: needed here: want the address that mail comes from (got "")`},
		"beside other mistakes": {text: "poll: {every: 30}\nsmtp: {tls: maybe}\nmail: {form: a@example.com}\n", needs: []Need{NeedDatabase, NeedMail},
			want: `nudged.yml:1: poll.every: no unit, want a duration such as 90s, 5m, 48h, 7d or 2w, or a cron expression of five fields (got "30")
nudged.yml:1: ` + database + `
nudged.yml:2: smtp.tls: want one of mandatory, opportunistic, implicit, none (got "maybe")
nudged.yml:2: smtp.host: needed here: want the name of the relay (got "")
nudged.yml:3: mail.form: unknown key, want one of from, bounce_address, message_id_domain, unsubscribe, thread, templates, allow_recipients
nudged.yml:3: mail.from: needed here: want the address that mail comes from (got "")`},
		"wrong is not absent": {text: "database: {url_file: none}\nsmtp: [1]\nmail: {from: nobody}\n", needs: []Need{NeedDatabase, NeedMail},
			want: `nudged.yml:1: database.url_file: file cannot be read: no such file or directory (got "none")
nudged.yml:2: smtp: want a section with keys (got a list)
nudged.yml:3: mail.from: want one address, ASCII in front of the @, such as "Example <reminders@example.com>" (got "nobody")`},
		"not YAML": {text: "smtp: {host: a\n", needs: []Need{NeedMail}, want: `nudged.yml:1: not valid YAML: could not find flow mapping end token '}'`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("nudged.yml", []byte(tt.text), Overrides{}, tt.needs...)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Load("", Overrides{}, NeedDatabase); err == nil || err.Error() != database {
		t.Errorf("without a file: %v", err)
	}
	if _, err := Load("", Overrides{DatabaseURL: "postgres:///app"}, NeedDatabase); err != nil {
		t.Errorf("with the flag: %v", err)
	}
}

func TestOverrides(t *testing.T) {
	o := Overrides{DatabaseURL: "host=/run/postgresql dbname=app"}
	for _, text := range []string{"", "database: {url: postgres://other/app}", "database: {url_file: no-such-file}"} {
		c, err := Parse("nudged.yml", []byte(text), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Database.URL.Reveal(); got != o.DatabaseURL {
			t.Errorf("%q: URL %q", text, got)
		}
	}
	_, err := Load("", Overrides{DatabaseURL: "mysql://hunter2@localhost", DatabaseURLFrom: "--database.url"})
	want := `--database.url: want postgres://user@host/database, or keywords such as host=/run/postgresql dbname=app (got "<secret>")`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none.yml"): "none.yml: file cannot be read: no such file or directory",
		dir:                            ": file cannot be read: is a directory",
		large:                          "large.yml: file is larger than 1 MiB",
	} {
		if _, err := Load(file, Overrides{}); err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want …%s", err, want)
		}
	}
}

// Pipes, devices and the like are refused wherever the configuration names a file; nothing waits
// for them. Links are followed.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link.yml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real.yml"), []byte("environment: linked"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yml", link); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(link, Overrides{}); err != nil || c.Environment != "linked" {
		t.Errorf("through a link: %v", err)
	}
	const irregular = "file cannot be read: not a regular file"
	for _, path := range []string{pipe, "/dev/zero"} {
		if _, err := Load(path, Overrides{}); err == nil || err.Error() != path+": "+irregular {
			t.Errorf("got %v, want %s: %s", err, path, irregular)
		}
		if err := CheckFile(path); err == nil || err.Error() != irregular {
			t.Errorf("got %v, want %s", err, irregular)
		}
		for key, text := range map[string]string{
			"database.url_file":         "database: {url_file: %s}",
			"smtp.password_file":        "smtp: {username: a, password_file: %s}",
			"smtp.ca_file":              "smtp: {ca_file: %s}",
			"cadences.default.holidays": "cadences: {default: {after: [3d], holidays: %s}}",
		} {
			_, err := Parse("nudged.yml", fmt.Appendf(nil, text, path), Overrides{})
			if want := fmt.Sprintf("nudged.yml:1: %s: %s (got %q)", key, irregular, path); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

// A folder hands out the files that readFile takes, and says of the others what is wrong.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.WriteFile(filepath.Join(dir, "large"), make([]byte, maxFile+1), 0o600),
		os.WriteFile(filepath.Join(dir, "small"), []byte("text"), 0o600),
		os.Symlink("small", filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	files := Folder(dir)
	if entries, err := fs.ReadDir(files, "."); err != nil || len(entries) != 4 {
		t.Errorf("entries %v, %v", entries, err)
	}
	if text, err := fs.ReadFile(files, "link"); err != nil || string(text) != "text" {
		t.Errorf("through a link: %q, %v", text, err)
	}
	for name, want := range map[string]string{"pipe": "not a regular file", "large": "file is larger than 1 MiB"} {
		_, err := fs.ReadFile(files, name)
		if failure, ok := errors.AsType[*fs.PathError](err); !ok || failure.Err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if _, err := fs.Stat(files, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files of editors on Windows: line ends of two characters, and a byte order mark in front.
func TestLineEndsAndByteOrderMark(t *testing.T) {
	want, err := Load("testdata/good/full.yml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, mark := range []string{"", "\ufeff"} {
		for _, name := range []string{"ca.pem", "database-url", "full.yml", "holidays.txt", "smtp-password"} {
			text, err := os.ReadFile(filepath.Join("testdata/good", name))
			if err != nil {
				t.Fatal(err)
			}
			write(name, mark+strings.ReplaceAll(string(text), "\n", "\r\n"))
		}
		if err := os.MkdirAll(filepath.Join(dir, "templates"), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := Load(filepath.Join(dir, "full.yml"), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		got.File, got.Hash, got.Mail.Templates = want.File, want.Hash, want.Mail.Templates
		compare(t, want, got)
	}
	_, err = Load(write("wrong.yml", "\ufeffpoll:\r\n  every: 30s\r\n  batch: 0\r\n"), Overrides{})
	if line := dir + `/wrong.yml:3: poll.batch: want a whole number from 1 to 10000 (got "0")`; err == nil || err.Error() != line {
		t.Errorf("got %v, want %s", err, line)
	}
}

func TestHash(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		t.Helper()
		c, err := Load(filepath.Join(dir, "nudged.yml"), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash
	}
	write("nudged.yml", "smtp: {username: a, password_file: p}\ncadences: {default: {after: [3d], holidays: "+filepath.Join(dir, "h")+"}}")
	write("p", "one")
	write("h", "2026-05-01")
	first := hash()
	if !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(first) || hash() != first {
		t.Errorf("hash %q does not stay", first)
	}
	write("p", "two")
	if hash() != first {
		t.Error("hash depends on a secret")
	}
	write("h", "2026-05-08")
	if hash() == first {
		t.Error("hash does not depend on the holidays")
	}
}

// TestSchedule takes the text to cron itself.
func TestSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"30s": "@every 30s", "500ms": "@every 1s", "1d": "@every 24h0m0s", "*/5 * * * *": "*/5 * * * *", "0 9 * * MON-FRI": "0 9 * * MON-FRI",
	} {
		tick, err := tick(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tick.Schedule(); got != want {
			t.Errorf("%s: schedule %q, want %q", text, got, want)
		}
		if _, err := cron.New().AddFunc(tick.Schedule(), func() {}); err != nil {
			t.Error(err)
		}
	}
}

// TestDocumentation holds docs/configuration.md against the schema: a row for each key, no other
// row, and the defaults that really hold.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, defaults []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.A-Z]+)` \\| (.*?) \\|").FindAllStringSubmatch(string(data), -1) {
		documented = append(documented, row[1])
		if value := strings.Trim(row[2], "`"); len(value) == len(row[2])-2 && !strings.HasPrefix(row[1], "cadences.") {
			defaults = append(defaults, strings.ReplaceAll(row[1], ".", ": {")+": "+value+strings.Repeat("}", strings.Count(row[1], ".")))
		}
	}
	keys := schemaKeys(t)
	if diff := cmp.Diff(keys, documented); diff != "" || len(keys) != 45 {
		t.Errorf("%d keys (-schema +docs/configuration.md):\n%s", len(keys), diff)
	}
	if len(defaults) != 23 {
		t.Errorf("%d documented defaults: %v", len(defaults), defaults)
	}
	for _, text := range defaults {
		c, err := Parse("", []byte(text), Overrides{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want := standard()
		want.Hash = c.Hash
		compare(t, want, c)
	}
}

// schemaKeys provokes the list of known keys in every section and returns their paths.
func schemaKeys(t *testing.T) []string {
	t.Helper()
	sections := []string{"", "database", "poll", "smtp", "mail", "defaults", "limits", "limits.retry_backoff", "cadences.NAME"}
	var keys []string
	for _, section := range sections {
		text := "nothing: 1"
		for _, name := range slices.Backward(strings.FieldsFunc(section, func(r rune) bool { return r == '.' })) {
			text = name + ": {" + text + "}"
		}
		_, err := Parse("nudged.yml", []byte(text), Overrides{})
		mistakes, _ := errors.AsType[Mistakes](err)
		at := slices.IndexFunc(mistakes, func(m Mistake) bool { return m.Key == join(section, "nothing") })
		if at < 0 {
			t.Fatalf("section %q takes an unknown key: %v", section, err)
		}
		known, _ := strings.CutPrefix(mistakes[at].Reason, "unknown key, want one of ")
		for key := range strings.SplitSeq(known, ", ") {
			path := strings.TrimPrefix(section+"."+key, ".")
			if !slices.Contains(sections, path) && path != "cadences" {
				keys = append(keys, path)
			}
		}
	}
	return keys
}
