package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "2w": 336 * time.Hour, "400d": 9600 * time.Hour, "1w2d3h4m5s6ms": 219*time.Hour + 4*time.Minute + 5006*time.Millisecond,
		"0s": 0, "0d": 0, "1.5h": 90 * time.Minute, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "106751d": 106751 * day,
	} {
		if got, err := duration(0)(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "0", "3", "30", "1.5", ".", "-3d", "-1s", "+3d", "3x", "d", "w", "3 d", "3d ", "3D", "1d1w", "1d1d", "1d0", "1.5d",
		"3h7d", "2d-3h", "2d+3h", "99999999999999999999d", "106752d", "106751d24h", "15251w", "9223372036854775808ns", "5000000000ns", "5000000us", "5000000µs", "5000000μs", "1s1ns", "1e3s", "∞", "30s\n", "\n",
	} {
		if got, err := duration(0)(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestTick(t *testing.T) {
	for text, want := range map[string]Tick{
		"100ms": {Every: 100 * time.Millisecond}, "1d": {Every: day}, "* * * * *": {Cron: "* * * * *"}, "0 9 29 2 *": {Cron: "0 9 29 2 *"},
	} {
		if got, err := tick(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "99ms", "5", "@daily", "@every 1m", "TZ=UTC", "TZ=", "TZ=UTC 0 9 * *", "CRON_TZ=UTC 0 9 * * *", "x TZ= * * *",
		"* * * *", "* * * * * *", ", 9 * * *", "0 9 31 4 *", "60 * * * *", "\t* * * * *\tx", "* * * * *\n", "30s\n",
	} {
		if got, err := tick(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"smtp.example.com": "smtp.example.com", "localhost": "localhost", "127.0.0.1": "127.0.0.1", "::1": "::1", "[::1]": "::1",
		"smtp_relay": "smtp_relay", "bücher.example": "xn--bcher-kva.example",
	} {
		if got, err := host(text); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"a:25", "[::1]:25", "smtp://a", "a/b", "a b", "a\r\nb", "user@a"} {
		if got, err := host(text); err == nil {
			t.Errorf("%q is %q, want an error", text, got)
		}
	}
}

func TestDatabaseURL(t *testing.T) {
	driver := errors.New("the driver says no")
	r := reader{checks: Checks{DatabaseURL: func(url string) error {
		if strings.Contains(url, "port") {
			return driver
		}
		return nil
	}}}
	for _, text := range []string{
		"postgres://nudged@localhost/app", "postgresql:///app?host=/run/postgres", "host=/run dbname=app", "service=app", " host = a",
		"postgres://nudged@db1:5432,db2:5433/app", "host=a password=x://y",
	} {
		if got, err := r.databaseURL(text); err != nil || got.Reveal() != text {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"app", "mysql://hunter2@a/b", "mysql://hunter2@a/b?c=d", "postgres://a\nhunter2", "://", "=hunter2"} {
		if _, err := r.databaseURL(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	if _, err := r.databaseURL("postgres://a:hunter2@h:port/b"); !errors.Is(err, driver) {
		t.Errorf("got %v, want what the driver says", err)
	}
}

func TestAllowRecipient(t *testing.T) {
	patterns := []string{"boss@example.com", "@Example.org", "*@*.example.net", "qa+*@example.com", "ÉMILE@bücher.example", "a.b@example.com"}
	data, err := json.Marshal(map[string]any{"mail": map[string]any{"allow_recipients": patterns}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("nudged.yml", data, Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"boss@example.com": true, "BOSS@EXAMPLE.COM": true, "anyone@example.org": true, "x@a.example.net": true, "x@a.b.example.net": true,
		"qa+1@example.com": true, "qa+@example.com": true, "émile@BÜCHER.example": true, "a.b@example.com": true,
		"": false, "boss": false, "aboss@example.com": false, "boss@example.com.evil.test": false, "x@example.net": false,
		"x@notexample.org": false, "x@evil.test@example.org": false, "qa@example.com": false, "axb@example.com": false, "@": false,
		"x@example.org\r\nBcc: y@evil.test": false,
	} {
		if got := c.AllowRecipient(address); got != want {
			t.Errorf("%q allowed: %t, want %t", address, got, want)
		}
	}
	for _, text := range []string{"", "mail: {allow_recipients: []}", `mail: {allow_recipients: ["*"]}`} {
		c, err := Parse("nudged.yml", []byte(text), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		if !c.AllowRecipient("anyone@anywhere.test") {
			t.Errorf("%q does not allow everyone", text)
		}
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	secret := NewSecret("hunter2")
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%p", "%10s", "%!"} {
		for _, value := range []any{secret, &secret, []Secret{secret}, map[string]Secret{"a": secret}, SMTP{Password: secret}, &Config{SMTP: SMTP{Password: secret}}} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("loaded", "password", secret, "smtp", SMTP{Password: secret}, "config", &Config{SMTP: SMTP{Password: secret}})
	}
	data, err := json.Marshal(SMTP{Password: secret})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	for _, leak := range []string{"hunter2", "68756e74657232", "68756E74657232", "104 117 110"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("the secret got out as %q:\n%s", leak, &out)
		}
	}
	if secret.Reveal() != "hunter2" || secret.String() != hidden {
		t.Error("Reveal and String are the wrong way round")
	}
}

// FuzzParse holds that nothing which a user writes leads to a panic, or to a mistake of more than
// one line.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"smtp: {port: 25}", "cadences:\n  default:\n    after: [3d]\n", "a: &b 1\nc: *b", "? a\n: b\n", "%YAML 1.2\n---\n", "- - -\n",
		"poll:\n  every: |\n    * * * *\n", "<<: *x", "!!map {", "mail: {allow_recipients: ['@a']}", "\"\\x00\": 1", "a: >-\n  b\n\n", "{",
		"database: {url: 'postgres://a:b@c/d'}", "a:\n\t- b", "'", "\"\\", "a: 'b''c'", "[[[[", "- ? : ,", "x: *", "x: &", "x: !", "@", "`", "#", "...",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f.yml", []byte(text), Overrides{})
		if err == nil {
			if c.Cadences[c.Defaults.Cadence] == nil {
				t.Error("no default cadence")
			}
			return
		}
		mistakes, ok := errors.AsType[Mistakes](err)
		if !ok || len(mistakes) == 0 {
			t.Fatalf("error %#v", err)
		}
		for _, m := range mistakes {
			if line := m.String(); strings.ContainsAny(line, "\n\r") || !strings.HasPrefix(line, "f.yml:") && !strings.Contains(line, ".yml") {
				t.Errorf("unfit line %q", line)
			}
		}
	})
}
