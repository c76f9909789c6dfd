package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "nudged/"

// arrows say what each package may import of ours. What lies under cmd and bench may
// import everything.
var arrows = map[string][]string{
	"cadence":             {},
	"scheduler":           {"cadence"},
	"mailer":              {"cadence", "scheduler"},
	"migrations":          {},
	"deploy/release/sbom": {},
	"internal/archtest":   {},
	"internal/chaos":      {},
	"internal/config":     {"cadence"},
	"internal/deploytest": {},
	"internal/devbox":     {"internal/pgserver"},
	"internal/pgserver":   {},
	"internal/pgtest":     {"internal/pgserver", "migrations"},
	"internal/postgres":   {"cadence", "migrations", "scheduler"},
	"internal/smtptest":   {},
	"internal/web":        {"cadence", "scheduler"},
}

// testArrows say what the tests of the packages with a side may import besides: of the core and
// the adapters, which must not meet in tests either.
var testArrows = map[string][]string{
	"cadence":           {},
	"scheduler":         {},
	"mailer":            {"internal/smtptest"},
	"internal/postgres": {"internal/pgtest"},
}

// owners say which packages may import a library, in tests as well where they do so.
var owners = map[string][]string{
	"github.com/alecthomas/kong":                 {"cmd/nudged"},
	"github.com/fergusstrange/embedded-postgres": {"internal/pgserver"},
	"github.com/goccy/go-yaml":                   {"internal/config"},
	"github.com/pressly/goose":                   {"migrations"},
	"github.com/robfig/cron":                     {"cadence", "scheduler", "internal/config", "cmd/nudged"},
	"github.com/wneessen/go-mail":                {"mailer"},
}

// unreachable are libraries that a package must not get by any way at all.
var unreachable = map[string][]string{
	"cadence":           {"github.com/jackc/pgx", "github.com/wneessen/go-mail", "github.com/prometheus", "database/sql", "net/http"},
	"scheduler":         {"github.com/jackc/pgx", "github.com/wneessen/go-mail", "database/sql"},
	"mailer":            {"github.com/jackc/pgx", "database/sql"},
	"internal/postgres": {"github.com/wneessen/go-mail", "net/smtp"},
}

// listed is what go list tells about a package.
type listed struct {
	ImportPath                               string
	Imports, TestImports, XTestImports, Deps []string
}

func (p listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []listed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		if top, _, _ := strings.Cut(p.name(), "/"); top == "cmd" || top == "bench" {
			continue
		}
		allowed, known := arrows[p.name()]
		if !known {
			t.Errorf("%s is not in the table of arrows: say there what it may import of ours", p.name())
			continue
		}
		for _, path := range ours(p.Imports) {
			if !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", p.name(), path)
			}
		}
		more, strict := testArrows[p.name()]
		if !strict {
			continue
		}
		for _, path := range ours(slices.Concat(p.TestImports, p.XTestImports)) {
			if path != p.name() && !slices.Contains(allowed, path) && !slices.Contains(more, path) {
				t.Errorf("a test of %s imports %s", p.name(), path)
			}
		}
	}
}

func TestLibrariesHaveOwners(t *testing.T) {
	for _, p := range packages(t) {
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, who := range owners {
				if within(path, library) && !slices.Contains(who, p.name()) {
					t.Errorf("%s imports %s, which belongs to %s", p.name(), path, strings.Join(who, ", "))
				}
			}
		}
		for _, library := range unreachable[p.name()] {
			if i := slices.IndexFunc(p.Deps, func(path string) bool { return within(path, library) }); i >= 0 {
				t.Errorf("%s gets %s by way of what it imports", p.name(), p.Deps[i])
			}
		}
	}
}

// ours returns the packages of this module among some import paths, without the module's name.
func ours(paths []string) []string {
	var names []string
	for _, path := range paths {
		if name, ok := strings.CutPrefix(path, module); ok {
			names = append(names, name)
		}
	}
	return names
}

// within reports whether an import path is that of a library or lies in it.
func within(path, library string) bool {
	return path == library || strings.HasPrefix(path, library+"/")
}
