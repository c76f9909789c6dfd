package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nudged/scheduler"
)

// block finds the fenced blocks of a document: language and content.
var block = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")

// Every plan that the documents show is what the program prints for the cadences just above it.
func TestPlansAreWhatTheProgramPrints(t *testing.T) {
	plans := 0
	for name, text := range documents(t) {
		cadences := ""
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			language, content := m[1], m[2]
			if language == "yaml" {
				cadences = content
			}
			if language != "console" {
				continue
			}
			for example := range strings.SplitSeq("\n"+content, "\n$ ") {
				command, shown, _ := strings.Cut(example, "\n")
				arguments := strings.Fields(command)
				if len(arguments) < 2 || arguments[0] != "nudged" || arguments[1] != "plan" || !slices.Contains(arguments, "--anchor") {
					continue
				}
				plans++
				config := configuration(t, cadences, arguments)
				printed := nudged(t, append(arguments[1:], "--config.file="+config)...)
				if diff := cmp.Diff(strings.TrimSpace(shown), trimmed(printed)); diff != "" {
					t.Errorf("%s: %s (- shown, + printed)\n%s", name, command, diff)
				}
			}
		}
	}
	if plans < 8 {
		t.Errorf("the documents show %d plans, want some", plans)
	}
}

// configuration writes a file with the cadences, the one that is planned as the default one.
func configuration(t *testing.T, cadences string, arguments []string) string {
	t.Helper()
	name := arguments[slices.Index(arguments, "--cadence")+1]
	file := filepath.Join(t.TempDir(), "nudged.yml")
	if err := os.WriteFile(file, []byte("defaults: {cadence: "+name+"}\n"+cadences), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// trimmed leaves out the blanks at the ends of lines, which an empty last column has.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// The table of reasons in the design is the closed list of the domain.
func TestDesignTellsEveryReason(t *testing.T) {
	want := map[string]string{}
	for state, reasons := range map[scheduler.State][]scheduler.Reason{
		scheduler.StateSkipped:  scheduler.SkipReasons(),
		scheduler.StateFailed:   scheduler.FailReasons(),
		scheduler.StateDeferred: scheduler.DeferReasons(),
		scheduler.StateUnknown:  scheduler.UnknownReasons(),
	} {
		for _, reason := range reasons {
			want[string(reason)] = string(state)
		}
	}
	got := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([a-z]+)` \\|")
	_, table, _ := strings.Cut(read(t, "docs/design.md"), "\n## Reasons\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		got[m[1]] = m[2]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/design.md (- in the code, + in the document)\n%s", diff)
	}
}

// The README lists the commands that the program has, and no others.
func TestReadmeListsEveryCommand(t *testing.T) {
	_, help, _ := strings.Cut(nudged(t, "--help"), "\nCommands:\n")
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z][a-z-]+)  `).FindAllStringSubmatch(help, -1) {
		want = append(want, m[1])
	}
	got := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `nudged ([a-z-]+)").FindAllStringSubmatch(read(t, "README.md"), -1) {
		got[m[1]] = true
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("README.md (- in the program, + in the document)\n%s", diff)
	}
}

// The README shows every migration, and the version that they make.
func TestReadmeShowsEveryMigration(t *testing.T) {
	var want, got []string
	for _, path := range tracked(t) {
		if ok, _ := filepath.Match("migrations/*.sql", path); ok {
			want = append(want, filepath.Base(path))
		}
	}
	readme := read(t, "README.md")
	for _, m := range regexp.MustCompile(`(?m)^ +(\d+_\w+\.sql) +applied `).FindAllStringSubmatch(readme, -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md (- in migrations, + in the document)\n%s", diff)
	}
	if version := fmt.Sprintf(" schema=%d ", len(want)); !strings.Contains(readme, version) {
		t.Errorf("README.md shows a daemon of another schema, want%s", version)
	}
}

// The configurations that the README shows are valid.
func TestReadmeShowsValidConfigurations(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("smtp-password", "secret\n")
	shown := 0
	for _, m := range block.FindAllStringSubmatch(read(t, "README.md"), -1) {
		if m[1] == "yaml" {
			shown++
			nudged(t, "check-config", "--config.file="+write("nudged.yml", m[2]))
		}
	}
	if shown == 0 {
		t.Error("the README shows no configuration, want some")
	}
}

// A metric that a document names is one that the code registers.
func TestMetricsInDocumentsExist(t *testing.T) {
	code := sources(t)
	metric := regexp.MustCompile(`\bnudged_[a-z_]+[a-z]\b`)
	for name, text := range documents(t) {
		for _, word := range metric.FindAllString(block.ReplaceAllString(text, ""), -1) {
			pool := strings.HasPrefix(word, "nudged_db_pool_") && strings.Contains(code, `"`+strings.TrimPrefix(word, "nudged_db_pool_")+`"`)
			histogram := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(word, "")
			if !pool && !strings.Contains(code, `"`+histogram+`"`) {
				t.Errorf("%s names %s, which no package registers", name, word)
			}
		}
	}
}

// sources returns the Go files that are no tests, one behind the other.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
