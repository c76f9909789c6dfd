package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What else lies in a working copy, such as the nudged.yml of somebody who follows the README, is theirs.
func TestTopLevel(t *testing.T) {
	want := []string{
		"CHANGELOG.md", "LICENSE", "README.md", "bench", "cadence", "cmd", "deploy", "docs", "go.mod", "go.sum",
		"internal", "mailer", "migrations", "scheduler",
	}
	top := map[string]bool{}
	for _, path := range tracked(t) {
		if name, _, _ := strings.Cut(path, "/"); !strings.HasPrefix(name, ".") {
			top[name] = true
		}
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(top))); diff != "" {
		t.Errorf("the top of the repository (- wanted, + there)\n%s", diff)
	}
}

// link finds the target of a Markdown link, and the heading in it, if any.
var link = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, heading := m[1], m[2]
			if strings.Contains(target, ":") {
				continue // another site
			}
			path := name
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, m[0])
				continue
			}
			if heading != "" && !slices.Contains(headings(texts[path]), heading) {
				t.Errorf("%s: %s has no heading for the link %s", name, path, m[0])
			}
		}
	}
}

// headings returns what links call the headings of a document.
func headings(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		title = regexp.MustCompile(`[^\pL\pN\- _]`).ReplaceAllString(title, "")
		names = append(names, strings.ReplaceAll(title, " ", "-"))
	}
	return names
}
