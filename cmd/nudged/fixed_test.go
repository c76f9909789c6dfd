package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nudged/internal/config"
)

// changed has another value for every key of docs/configuration.md, as JSON.
const changed = `{
	"environment": "other", "retention": "200d",
	"database.url": "host=/run/two dbname=app", "database.url_file": "url.two",
	"poll.every": "*/5 * * * *", "poll.batch": 10, "poll.lease": "1m",
	"smtp.host": "two.example.com", "smtp.port": 26, "smtp.tls": "implicit", "smtp.ca_file": "ca.two",
	"smtp.username": "two", "smtp.password_file": "password.two", "smtp.connections": 3, "smtp.rate": 7,
	"smtp.dial_timeout": "2s", "smtp.command_timeout": "2s", "smtp.reply_timeout": "2s",
	"smtp.idempotency_header": "X-Two", "smtp.idempotency_window": "2h", "smtp.dsn": true,
	"mail.from": "two@example.com", "mail.bounce_address": "two@example.com", "mail.message_id_domain": "two.example.com",
	"mail.unsubscribe": "https://two.example.com/", "mail.thread": false, "mail.templates": ".", "mail.allow_recipients": ["@two.example.com"],
	"defaults.cadence": "two", "defaults.time_zone": "Europe/Paris", "defaults.locale": "fr",
	"limits.max_lateness": "2h", "limits.min_gap": "2h", "limits.retry_for": "2h", "limits.retry_backoff.initial": "2s", "limits.retry_backoff.max": "2h",
	"cadences.NAME.after": ["2d"], "cadences.NAME.then_every": "2d", "cadences.NAME.max": 2, "cadences.NAME.at": "10:00",
	"cadences.NAME.days": ["mon"], "cadences.NAME.holidays": ["2026-12-25"], "cadences.NAME.before_deadline": ["2d"],
	"cadences.NAME.first_mail": true, "cadences.NAME.cron": "0 9 * * *"
}`

// base is what the keys are changed in.
const base = `{
	"database": {"url_file": "url.one"},
	"smtp": {"host": "one.example.com", "username": "one", "password_file": "password.one", "idempotency_header": "X-One"},
	"mail": {"from": "one@example.com"}, "defaults": {"cadence": "NAME"},
	"cadences": {"NAME": {"after": ["1d"]}, "two": {"after": ["3d"]}}
}`

// Every key of the configuration is taken by a reload or told to take effect at the next start.
func TestEveryKeyIsReloadedOrTold(t *testing.T) {
	dir := keyFolder(t)
	started := loadJSON(t, dir, base)
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(changed), &values); err != nil {
		t.Fatal(err)
	}
	if documented := documentedKeys(t); !slices.Equal(documented, slices.Sorted(maps.Keys(values))) {
		t.Fatalf("docs/configuration.md has the keys %v", documented)
	}
	for key, value := range values {
		now := loadJSON(t, dir, with(t, key, value))
		told := key
		if strings.HasPrefix(key, "database.") {
			told = "database"
		}
		keys := fixed(started, now)
		reloaded := !reflect.DeepEqual(inForce(started, started), inForce(started, now))
		if reloaded == slices.Contains(keys, told) || reloaded && len(keys) > 0 {
			t.Errorf("%s: reloaded %t, and told of are %v", key, reloaded, keys)
		}
	}
	if keys := fixed(started, loadJSON(t, dir, base)); len(keys) != 0 {
		t.Errorf("told of without a change: %v", keys)
	}
}

// inForce is what a reload puts in place, without what cannot be compared or differs with every file.
func inForce(started, now *config.Config) []any {
	policy := (&daemon{started: started}).policyInForce(now)
	policy.Fingerprint, policy.Usable, policy.Allowed = 0, nil, nil
	return []any{*policy, now.Defaults.Locale}
}

func keyFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	certificate, err := os.ReadFile("../../internal/config/testdata/good/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"url.one": "host=/run/one dbname=app", "url.two": "host=/run/two dbname=app",
		"password.one": "one", "password.two": "two", "ca.two": string(certificate),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func loadJSON(t *testing.T, dir, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(filepath.Join(dir, "nudged.yml"), []byte(text), config.Overrides{}, config.NeedDatabase, config.NeedMail)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return cfg
}

// with is the base with another value for a key, and without what does not go together with that.
func with(t *testing.T, key string, value json.RawMessage) string {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal([]byte(base), &whole); err != nil {
		t.Fatal(err)
	}
	path := strings.Split(key, ".")
	section := whole
	for _, name := range path[:len(path)-1] {
		inner, ok := section[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			section[name] = inner
		}
		section = inner
	}
	switch key {
	case "database.url":
		delete(section, "url_file")
	case "cadences.NAME.cron":
		delete(section, "after")
	}
	section[path[len(path)-1]] = value
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func documentedKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.A-Z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, row[1])
	}
	slices.Sort(keys)
	return keys
}
