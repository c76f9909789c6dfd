package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
		"S24": {"colour", "red"}, "S25": {"", ""},
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
				!strings.HasSuffix(line, fmt.Sprintf(" (got %q)", want[1])) {
				t.Errorf("got %q, want one line about %s and %q", line, path, want[1])
			}
		})
	}
}

func TestExample(t *testing.T) {
	c, err := Load("testdata/good/example.yml", Overrides{})
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
	if err := c.Require(NeedDatabase, NeedMail); err != nil {
		t.Error(err)
	}
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

// compare leaves out what cannot be compared by value: cadences, certificates, patterns, places.
func compare(t *testing.T, want, got *Config) {
	t.Helper()
	a, b := *want, *got
	a.Cadences, b.Cadences, a.places, b.places = nil, nil, places{}, places{}
	a.Mail.Recipients, b.Mail.Recipients, a.SMTP.RootCAs, b.SMTP.RootCAs = Recipients{}, Recipients{}, nil, nil
	zones := cmp.Comparer(func(x, y *time.Location) bool { return x == y })
	if diff := cmp.Diff(a, b, zones, cmp.AllowUnexported(Config{}, Secret{}, Recipients{}, places{})); diff != "" {
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

func TestRequire(t *testing.T) {
	err := Default().Require(NeedDatabase, NeedMail)
	want := `database.url: needed here: set it, database.url_file, --database.url or NUDGED_DATABASE_URL (got "")
smtp.host: needed here: want the name of the relay (got "")
mail.from: needed here: want the address that mail comes from (got "")`
	if _, ok := errors.AsType[Mistakes](err); !ok || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	c, err := Parse("nudged.yml", []byte("environment: test\nsmtp:\n  port: 25\nmail:\n"), Overrides{DatabaseURL: "postgres:///app"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Require(NeedDatabase); err != nil {
		t.Error(err)
	}
	want = `nudged.yml:2: smtp.host: needed here: want the name of the relay (got "")
nudged.yml:4: mail.from: needed here: want the address that mail comes from (got "")`
	if err := c.Require(NeedDatabase, NeedMail); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
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
	_, err := Load("", Overrides{DatabaseURL: "mysql://hunter2@localhost"})
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
