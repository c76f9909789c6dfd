package deploytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nudged/internal/pgtest"
)

// root is the top of the repository, seen from the folder that go test runs these tests in.
const root = "../.."

// patience bounds every wait and every command of these tests.
const patience = time.Minute

// program is the built command nudged. TestMain sets it.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nudged-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "nudged")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/nudged")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return pgtest.Main(m)
}

// read returns the text of a file by its path from the top of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// debian returns where a program of a Debian package is. Without it the test is skipped, and fails in CI.
func debian(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed: it comes with the package %s", name, pkg)
	}
	t.Skipf("%s is not installed (package %s): this test runs in CI", name, pkg)
	return ""
}

// finished is a command that has run to its end.
type finished struct {
	stdout, stderr string
	status         int
}

// execute runs a command in a folder, with these variables and none of nudged's own from outside.
func execute(t *testing.T, dir string, env []string, name string, arguments ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir, cmd.Env = dir, append(foreign(os.Environ()), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%s: %v", name, err)
	}
	return finished{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// foreign leaves out the variables that nudged reads.
func foreign(environment []string) []string {
	return slices.DeleteFunc(environment, func(entry string) bool {
		return strings.HasPrefix(entry, "NUDGED_") && !strings.HasPrefix(entry, "NUDGED_TEST_")
	})
}

// wait polls a condition that no signal tells about.
func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waitFor(t, patience, what, condition)
}

func waitFor(t *testing.T, most time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}
