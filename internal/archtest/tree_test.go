package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTopLevel(t *testing.T) {
	folders := []string{"bench", "cadence", "cmd", "deploy", "docs", "internal", "mailer", "migrations", "scheduler"}
	files := []string{"CHANGELOG.md", "LICENSE", "README.md", "go.mod", "go.sum"}
	ignored := strings.Fields(read(t, ".gitignore"))
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name, want := entry.Name(), files
		if entry.IsDir() {
			want = folders
		}
		made := slices.ContainsFunc(ignored, func(pattern string) bool {
			matches, _ := filepath.Match(strings.Trim(pattern, "/"), name)
			return matches
		})
		if !strings.HasPrefix(name, ".") && !made && !slices.Contains(want, name) {
			t.Errorf("%s lies at the top: want a place below one of %s", name, strings.Join(folders, ", "))
		}
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
