package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAgo(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "now", 999 * time.Millisecond: "now", time.Second: "1 second ago", 119 * time.Second: "119 seconds ago",
		2 * time.Minute: "2 minutes ago", 2*time.Hour - 1: "119 minutes ago", 2 * time.Hour: "2 hours ago", 48 * time.Hour: "2 days ago",
		-90 * time.Second: "in 90 seconds", -3 * day: "in 3 days", 2000 * day: "2,000 days ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestMask(t *testing.T) {
	m := masker{link: "https://up.example/x?a=1"}
	for text, want := range map[string]string{
		"":                                      "",
		"nothing to hide":                       "nothing to hide",
		"ann@example.com":                       "a***@example.com",
		"to <ann.b+c@example.com>, b@x.example": "to <a***@example.com>, b***@x.example",
		`"ann b"@example.com`:                   "***@example.com",
		"élodie@exämple.fr":                     "é***@exämple.fr",
		"mailto:ann@example.com?subject=x":      "mailto:a***@example.com?subject=x",
		"at 9 @ noon":                           "at 9 @ noon",
		"see https://up.example/x?a=1 now":      "see " + hiddenLink + " now",
	} {
		if got := m.text(text); got != want {
			t.Errorf("text %q: got %q, want %q", text, got, want)
		}
	}
	for address, want := range map[string]string{
		"": "", "ann@example.com": "a***@example.com", "nobody": "***", "a@b@c": "a***@c", "@x": "***@x", "a b@x": "a***@x",
	} {
		if got := m.address(address); got != want {
			t.Errorf("address %q: got %q, want %q", address, got, want)
		}
	}
	if got := (masker{show: true}).text("ann@example.com"); got != "ann@example.com" {
		t.Errorf("shown: %q", got)
	}
}

func TestChart(t *testing.T) {
	day := time.Date(2026, 3, 2, 23, 30, 0, 0, time.UTC)
	paris := time.FixedZone("", 3600)
	c := newChart([]Day{{day, 0}, {day.Add(24 * time.Hour), 1}, {day.Add(48 * time.Hour), 5000}}, 5000, paris)
	if c.Summary != "At least 5,001 reminders in the next 3 days." {
		t.Errorf("summary %q", c.Summary)
	}
	var days, numbers []string
	for i, b := range c.Bars {
		days, numbers = append(days, b.Day), append(numbers, b.Number)
		if b.X < 0 || b.X+b.Width > c.Width || b.Y < 0 || b.Y+b.Height != c.Base || b.Label < 10 || b.Foot > c.Height {
			t.Errorf("bar %d leaves the chart: %+v", i, b)
		}
	}
	if diff := cmp.Diff([]string{"Tue 3", "Wed 4", "Thu 5"}, days); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "1", "5,000+"}, numbers); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if c.Bars[0].Height != 0 || c.Bars[1].Height < 2 || c.Bars[2].Height <= c.Bars[1].Height {
		t.Errorf("heights %+v", c.Bars)
	}
	if empty := newChart([]Day{{day, 0}}, 10, paris); empty.Summary != "Nothing is planned." || empty.Bars[0].Height != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
	if none := newChart(nil, 10, paris); len(none.Bars) != 0 {
		t.Errorf("of no day: %+v", none)
	}
}

func TestParseMessage(t *testing.T) {
	for name, c := range map[string]struct{ mail, subject, text, html string }{
		"plain":       {"Subject: a\r\n\r\nhello\r\n", "a", "hello\r\n", ""},
		"no subject":  {"To: x\r\n\r\nhello", "", "hello", ""},
		"encoded":     {"Subject: =?utf-8?b?w6k=?=\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<b>=C3=A9</b>", "é", "", "<b>é</b>"},
		"base64":      {"Content-Transfer-Encoding: base64\r\n\r\naGVs\r\nbG8=\r\n", "", "hello", ""},
		"bad charset": {"Subject: =?x-none?q?a?=\r\n\r\n\xff", "=?x-none?q?a?=", "\uFFFD", ""},
		"nested": {
			"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
				"--b\r\n\r\none\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>two\r\n--b--\r\n--a\r\n\r\nthree\r\n--a--\r\n", "", "one", "<p>two",
		},
	} {
		m, err := parseMessage([]byte(c.mail))
		if err != nil || m.Subject() != c.subject || m.Text != c.text || m.HTML != c.html {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, mail := range map[string]string{
		"nothing":     "",
		"no header":   "just text",
		"cut off":     "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\r\nhello",
		"no base64":   "Content-Transfer-Encoding: base64\r\n\r\n!!!!",
		"no boundary": "Content-Type: multipart/mixed\r\n\r\nhello",
	} {
		if m, err := parseMessage([]byte(mail)); err == nil {
			t.Errorf("%s: no error, but %+v", name, m)
		}
	}
	deep := "\r\nhello"
	for i := range 100 {
		deep = fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%[1]d\r\n\r\n--b%[1]d\r\n%[2]s\r\n--b%[1]d--\r\n", i, deep)
	}
	if m, err := parseMessage([]byte(deep)); err != nil || m.Text != "" {
		t.Errorf("of a hundred mails within each other %q is shown, %v", m.Text, err)
	}
	long, err := parseMessage([]byte("Subject: a\r\n\r\n" + strings.Repeat("x", 2*maxPart)))
	if err != nil || len(long.Text) != maxPart {
		t.Errorf("of a long mail %d bytes are shown, %v", len(long.Text), err)
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte("Subject: a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\r\nhello\r\n--a--\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseMessage(data); err == nil && len(m.Text)+len(m.HTML) > 6*maxPart {
			t.Errorf("%d bytes", len(m.Text)+len(m.HTML))
		}
	})
}
