package mailer_test

import (
	"io"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"nudged/scheduler"
)

// checkMail looks at what every mail in every language must have, in each of its parts.
func checkMail(t *testing.T, task scheduler.Task, language string, got parsed) {
	t.Helper()
	to, err := got.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Name != task.Request.RecipientName || strings.ContainsFunc(to[0].Address, func(r rune) bool { return r > '~' }) {
		t.Errorf("To reads back as %v, %v", to, err)
	}
	if replyTo, err := mail.ParseAddress(got.Get("Reply-To")); err != nil || replyTo.Name != task.Request.SenderName {
		t.Errorf("Reply-To reads back as %v, %v", replyTo, err)
	}
	subject := got.subject(t)
	page := checkHTML(t, got.html)
	if page.lang != language {
		t.Errorf("the HTML is in %q, want %q", page.lang, language)
	}
	if !slices.Equal(page.links, []string{task.Link.URL, task.Link.URL}) || !slices.Contains(strings.Split(got.text, "\n"), task.Link.URL) {
		t.Errorf("the link is not there as button and as text: %q", page.links)
	}
	for part, text := range map[string]string{"subject": subject, "text": got.text, "HTML": page.text} {
		if !strings.Contains(text, task.Request.SenderName) || !strings.Contains(text, task.Request.Title) {
			t.Errorf("the %s does not say who asks for what: %q", part, text)
		}
		for _, sign := range []string{"<no value>", "&#", "&amp;", "&lt;", "%!", "{{", "}}", "  "} {
			if part != "HTML" && strings.Contains(strings.ReplaceAll(text, "\n  ", ""), sign) {
				t.Errorf("the %s has %q: %q", part, sign, text)
			}
		}
	}
	for _, d := range task.Documents {
		words := []string{d.Title, d.Description}
		if d.State == scheduler.DocumentRejected {
			words = append(words, d.RejectionReason)
		}
		for _, word := range append(words, task.Request.RecipientName, "2026") {
			if !strings.Contains(got.text, word) || !strings.Contains(page.text, word) {
				t.Errorf("%q is lacking in the text or in the HTML", word)
			}
		}
	}
}

// page is what a reader sees of HTML, and where it leads.
type page struct {
	lang, dir, text string
	links           []string
}

// checkHTML checks that HTML is well-formed: tags are balanced, attributes and ids stand once, and
// what a screen reader needs is there.
func checkHTML(t *testing.T, source string) page {
	t.Helper()
	if !strings.HasPrefix(source, "<!DOCTYPE html>\n") {
		t.Errorf("no doctype in front: %.40q", source)
	}
	if _, err := html.Parse(strings.NewReader(source)); err != nil {
		t.Error(err)
	}
	var (
		p    page
		open []string
		text strings.Builder
		ids  = map[string]bool{}
	)
	void := []string{"meta", "br", "img", "hr", "link", "input"}
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if tokens.Err() != io.EOF {
				t.Error(tokens.Err())
			}
			break
		}
		token := tokens.Token()
		switch kind {
		case html.TextToken:
			if len(open) == 0 || !slices.Contains([]string{"style", "title"}, open[len(open)-1]) {
				text.WriteString(token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> closes %v", token.Data, open)
			}
			open = open[:len(open)-1]
		case html.SelfClosingTagToken:
			t.Errorf("<%s/> closes itself", token.Data)
		case html.StartTagToken:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				if _, twice := attributes[a.Key]; twice {
					t.Errorf("<%s> has %s twice", token.Data, a.Key)
				}
				attributes[a.Key] = a.Val
			}
			if id, ok := attributes["id"]; ok {
				if ids[id] {
					t.Errorf("id %q is there twice", id)
				}
				ids[id] = true
			}
			p.visit(t, token.Data, attributes)
			if !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("%v stay open", open)
	}
	p.text = text.String()
	return p
}

func (p *page) visit(t *testing.T, name string, attributes map[string]string) {
	t.Helper()
	switch name {
	case "html":
		p.lang, p.dir = attributes["lang"], attributes["dir"]
		if p.lang == "" || p.dir == "" {
			t.Error("<html> lacks lang or dir")
		}
	case "img":
		if _, ok := attributes["alt"]; !ok {
			t.Error("<img> without alt")
		}
	case "table":
		if attributes["role"] != "presentation" {
			t.Error("a table for layout does not say so")
		}
	case "a":
		p.links = append(p.links, attributes["href"])
	case "script", "iframe", "form", "object", "link":
		t.Errorf("<%s> is nothing for a mail", name)
	}
	for key := range attributes {
		if strings.HasPrefix(key, "on") {
			t.Errorf("<%s> has %s", name, key)
		}
	}
}
