package web

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// elements returns all elements of a page in the order of the text.
func elements(t *testing.T, body string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var list []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			list = append(list, n)
		}
	}
	return list
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func linksOf(t *testing.T, body string) []string {
	t.Helper()
	var links []string
	for _, n := range elements(t, body) {
		if href, ok := attribute(n, "href"); ok && n.Data == "a" {
			links = append(links, href)
		}
	}
	return links
}

// What data says about itself adds no element: the pages of hostile data have the very elements of
// the pages of tame data.
func TestDataAddsNoMarkup(t *testing.T) {
	shape := func(path string) []string {
		var names []string
		for _, n := range elements(t, ask(t, client(nil), "GET", "http://"+start(t, withPages())[0]+path, nil).body) {
			names = append(names, n.Data)
		}
		return names
	}
	hostileOverview, hostileRequest := shape("/"), shape("/requests/"+url.PathEscape(hurtful))
	tame := hurtful
	defer func() { hurtful = tame }()
	hurtful = "tame"
	if !slices.Equal(hostileOverview, shape("/")) || !slices.Equal(hostileRequest, shape("/requests/tame")) {
		t.Error("hostile data changes what elements there are")
	}
}

// The pages hold what a screen reader, a keyboard and a narrow screen need.
func TestPagesAreAccessible(t *testing.T) {
	base := "http://" + start(t, withPages())[0]
	for path := range allPages {
		var headings []int
		count, ids, refs, labels, fields := map[string]int{}, map[string]int{}, []string{}, []string{}, []string{}
		complain := func(format string, args ...any) { t.Errorf(path+": "+format, args...) }
		for _, n := range elements(t, ask(t, client(nil), "GET", base+path, nil).body) {
			count[n.Data]++
			get := func(name string) string { v, _ := attribute(n, name); return v }
			if id := get("id"); id != "" {
				ids[id]++
			}
			refs = append(refs, strings.Fields(get("aria-labelledby"))...)
			if _, ok := attribute(n, "style"); ok {
				complain("<%s> has a style of its own, which the policy forbids", n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") {
					complain("<%s> has %s", n.Data, a.Key)
				}
			}
			switch n.Data {
			case "html":
				if get("lang") == "" {
					complain("no language")
				}
			case "h1", "h2", "h3", "h4":
				headings = append(headings, int(n.Data[1]-'0'))
			case "label":
				labels = append(labels, get("for"))
			case "input":
				fields = append(fields, get("id"))
			case "th":
				if get("scope") == "" {
					complain("a table header says not what it heads")
				}
			case "section":
				if get("aria-labelledby") == "" {
					complain("a section has no name")
				}
			case "svg":
				if get("role") != "img" || get("aria-labelledby") == "" {
					complain("the chart has no text")
				}
			case "iframe":
				sandbox, ok := attribute(n, "sandbox")
				if !ok || sandbox != "" || get("title") == "" {
					complain("a frame has rights, or no title")
				}
			case "time":
				if get("datetime") == "" {
					complain("an instant that no machine can read")
				}
			case "script", "link":
				if n.Data == "script" || get("rel") != "icon" {
					complain("there is a <%s>", n.Data)
				}
			}
		}
		for _, landmark := range []string{"header", "nav", "main", "footer", "h1", "title"} {
			if count[landmark] < 1 || count[landmark] > 1 && landmark != "title" {
				complain("%d <%s>", count[landmark], landmark)
			}
		}
		for id, n := range ids {
			if n > 1 {
				complain("%d elements have the id %s", n, id)
			}
		}
		for _, ref := range refs {
			if ids[ref] == 0 {
				complain("nothing has the id %s", ref)
			}
		}
		for _, field := range fields {
			if !slices.Contains(labels, field) {
				complain("the field %s has no label", field)
			}
		}
		for i, level := range headings {
			if i == 0 && level != 1 || i > 0 && level > headings[i-1]+1 {
				complain("headings jump: %v", headings)
				break
			}
		}
	}
}

// The relative links of every page lead somewhere, also where a proxy serves nudged below a path.
func TestLinksOfPages(t *testing.T) {
	base := "http://" + start(t, withPages())[0]
	for path := range allPages {
		here, err := url.Parse(base + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linksOf(t, ask(t, client(nil), "GET", here.String(), nil).body) {
			if strings.HasPrefix(link, "/") || strings.Contains(link, "://") {
				t.Errorf("%s: the link %s is not relative", path, link)
				continue
			}
			to, err := here.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if to.Fragment != "" {
				continue
			}
			if got := ask(t, client(nil), "GET", to.String(), nil); got.status != 200 && !strings.HasSuffix(link, "-c.eml") {
				t.Errorf("%s: the link %s leads to %d", path, link, got.status)
			}
		}
	}
}

func TestPolicyOfPages(t *testing.T) {
	base := "http://" + start(t, withPages())[0]
	for path := range allPages {
		got := ask(t, client(nil), "GET", base+path, nil)
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.header.Get(name))
			}
		}
		policy := got.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, policy)
			}
		}
		_, style, _ := strings.Cut(got.body, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if holdsMail := strings.Contains(got.body, "<iframe"); holdsMail != strings.Contains(policy, "'unsafe-inline'") || !holdsMail && !strings.Contains(policy, hash) {
			t.Errorf("%s: the policy does not fit the page: %s", path, policy)
		}
	}
}

// Text is readable on what it stands on, in light and in dark (WCAG 2.2, 1.4.3: at least 4.5 to 1).
func TestContrast(t *testing.T) {
	css, err := files.ReadFile("templates/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, _ := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	for name, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]+);`).FindAllStringSubmatch(text, -1) {
			if _, known := colours[m[1]]; !known {
				colours[m[1]] = m[2]
			}
		}
		for _, ground := range []string{"page", "card"} {
			for _, ink := range []string{"text", "muted", "link", "good", "wait", "doubt", "bad", "off"} {
				if got := contrast(t, colours[ink], colours[ground]); got < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", name, ink, ground, got)
				}
			}
		}
	}
}

// contrast is the ratio of WCAG 2.2 between two colours, such as fff or 1b2230.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(colour string) (sum float64) {
		if len(colour) == 3 {
			colour = fmt.Sprintf("%[1]c%[1]c%[2]c%[2]c%[3]c%[3]c", colour[0], colour[1], colour[2])
		}
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			if c := float64(n) / 255; c <= 0.04045 {
				sum += weight * c / 12.92
			} else {
				sum += weight * math.Pow((c+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
