package mailer_test

import (
	"strings"
	"testing"

	"nudged/scheduler"
)

func TestAddresses(t *testing.T) {
	m := composer(t)
	good := map[string]string{
		"ana@example.net":                     "ana@example.net",
		" ana@example.net ":                   "ana@example.net",
		"ana+tax@example.net":                 "ana+tax@example.net",
		"ana@localhost":                       "ana@localhost",
		"Ana@Example.NET":                     "Ana@Example.NET",
		"ana@b\u00fccher.example":             "ana@xn--bcher-kva.example",
		"ana@B\u00dcCHER.example":             "ana@xn--bcher-kva.example",
		"\u30e6\u30fc\u30b6\u30fc@example.jp": "\u30e6\u30fc\u30b6\u30fc@example.jp",
		`"ana b"@example.net`:                 "ana b@example.net",
	}
	for text, want := range good {
		task := task()
		task.Request.RecipientEmail = text
		msg, err := m.Compose(task)
		if err != nil || msg.To != want || msg.UTF8 != (want[0] >= 0x80) {
			t.Errorf("%q: got %q, UTF8 %t, %v, want %q", text, msg.To, msg.UTF8, err, want)
		}
	}
	bad := []string{
		// Suppressed by its text, each of these would be another address than ana@example.net.
		"<ana@example.net>", "\tana@example.net", "ana@example.net\u00a0", `"ana"@example.net`, "ana@example.net (Ana)", "ana @example.net",
		"", "@", "ana", "ana@", "@example.net", "ana@example.net, bo@example.net", "ana@example.net;bo@example.net",
		"Ana <ana@example.net>", "ana@example.net\r\nBcc: evil@example.net", "\"ana\r\n\"@example.net", "ana@exa mple.net",
		"friends: ana@example.net;", "ana@\u00fc..example", "ana@example\u3002net@", strings.Repeat("a", 65) + "@example.net",
		"ana@" + strings.Repeat("a.", 130) + "net",
	}
	for _, text := range bad {
		task := task()
		task.Request.RecipientEmail = text
		if err := refuses(t, m, task, scheduler.ReasonInvalidAddress); err != nil && len(text) > 3 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the address: %v", err)
		}
	}
}

func TestReplyTo(t *testing.T) {
	m := composer(t)
	for text, want := range map[string]string{
		"marta@example.org":               `"Marta Ruiz" <marta@example.org>`,
		"Office <marta@example.org>":      `"Office" <marta@example.org>`,
		"marta@b\u00fccher.example":       `"Marta Ruiz" <marta@xn--bcher-kva.example>`,
		"":                                "",
		"not an address":                  "",
		"a@example.org, b@example.org":    "",
		"m\u00e4rta@example.org":          "", // would need SMTPUTF8
		"marta@example.org\r\nBcc: a@b.c": "",
	} {
		task := task()
		task.Request.ReplyTo = text
		if _, got := compose(t, m, task); got.Get("Reply-To") != want {
			t.Errorf("%q: got Reply-To %q, want %q", text, got.Get("Reply-To"), want)
		}
	}
}

func TestLinks(t *testing.T) {
	m := composer(t)
	for _, link := range []string{"", "example.com/u", "/u", "https://", "javascript:alert(1)", "ftp://example.com/u", "http://exa mple.com/\x00", "https://%zz"} {
		task := task()
		task.Link.URL = link
		if err := refuses(t, m, task, scheduler.ReasonTemplateError); err != nil && link != "" && strings.Contains(err.Error(), link) {
			t.Errorf("the error repeats the link: %v", err)
		}
	}
}
