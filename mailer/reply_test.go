package mailer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"5.1.1 <ana@example.net>: no":        "5.1.1 <address>: no",
		"ana@example.net unknown":            "<address> unknown",
		"rcpt=ana@example.net, bo@b.c.":      "<address>, <address>",
		`"ana b"@example.net is not here`:    "<address> is not here",
		"no\nsuch\r\nuser\tana@b":            "no such user <address>",
		"(ana+x@example.net)":                "(<address>)",
		"@":                                  "<address>",
		"a@b@c d":                            "<address> d",
		`"@x`:                                "<address>",
		"j\u00f6rg@b\u00fccher.example gone": "<address> gone",
		"2.0.0 Ok: queued as 4ZxY":           "2.0.0 Ok: queued as 4ZxY",
		"a\x00b\xff":                         "a b\ufffd",
	} {
		if got := words(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := words(strings.Repeat("\u00e9", 400)); len(got) > maxWords || !utf8.ValidString(got) || len(got) < maxWords-3 {
		t.Errorf("got %d bytes, valid %t", len(got), utf8.ValidString(got))
	}
}

// FuzzWords: no address, no second line, no broken character and no long text comes through.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{`"a"@b`, "<a@b>", "a@b@c", `x "a" "@`, "<a@b", "@@@", "\"\"@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := words(text)
		if strings.ContainsAny(got, "@\r\n\x00") || !utf8.ValidString(got) || len(got) > maxWords {
			t.Errorf("%q: got %q", text, got)
		}
	})
}

func TestEnhanced(t *testing.T) {
	for text, want := range map[string]string{
		"5.1.1 no": "5.1.1", "5.1.10 null MX": "5.1.10", "5.1.1": "5.1.1",
		"": "", "no such user": "", "4.1.1 other class": "", "5.1 no": "", "5.1.1.1 no": "", "5.1.x no": "", "5..1 no": "", "5.1.1000 no": "",
	} {
		if got := (reply{550, text}).enhanced(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for code, want := range map[string]bool{
		"5.1.1": true, "5.1.2": true, "5.1.3": true, "5.1.6": true, "5.1.10": true, "5.2.1": true,
		"5.2.2": false, "5.7.1": false, "5.0.0": false, "5.1.8": false, "5.1.0": false,
	} {
		if got := (reply{550, code + " no"}).noSuchAddress(); got != want {
			t.Errorf("%s: suppress %t, want %t", code, got, want)
		}
	}
}
