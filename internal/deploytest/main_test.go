package deploytest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nudged/internal/pgtest"
)

// root is the top of the repository, seen from the folder that go test runs these tests in.
const root = "../.."

// patience bounds every wait for a word; buildPatience every command, a build of the whole program
// with a cold cache included.
const (
	patience      = 30 * time.Second
	buildPatience = 4 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// need skips where something is missing on a developer's machine; in CI that is a failure.
func need(t *testing.T, have bool, what string) {
	t.Helper()
	switch {
	case have:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is needed", what)
	default:
		t.Skipf("%s is needed: this test runs in CI", what)
	}
}

func needProgram(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	need(t, err == nil, name)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// result is how a command ended and what it printed.
type result struct {
	stdout, stderr string
	state          *os.ProcessState
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(buildPatience, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	_ = cmd.Wait() // the caller looks at the state
	return result{stdout.String(), stderr.String(), cmd.ProcessState}
}

// succeed runs a command that has to succeed and returns what it printed.
func succeed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	r := finish(t, cmd)
	if !r.state.Success() {
		t.Fatalf("%s: %s\n%s%s", strings.Join(cmd.Args, " "), r.state, r.stdout, r.stderr)
	}
	return r.stdout
}

// process is a command that runs until the test ends it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of its log, closed at its end
	log   strings.Builder
}

func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, lines: make(chan string, 1000)}
	go p.scan(stderr)
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

func (p *process) scan(stderr io.Reader) {
	defer close(p.lines)
	for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
		p.lines <- scanner.Text()
	}
}

// logs waits for a line of the log.
func (p *process) logs(part string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the process ended without a word of %q:\n%s", part, p.log.String())
			}
			p.log.WriteString(line + "\n")
			if strings.Contains(line, part) {
				return
			}
		case <-ctx.Done():
			p.t.Fatalf("no word of %q in the log:\n%s", part, p.log.String())
		}
	}
}

// end sends a signal and waits for the end.
func (p *process) end(signal os.Signal) *os.ProcessState {
	p.t.Helper()
	_ = p.cmd.Process.Signal(signal)
	for line := range p.lines {
		p.log.WriteString(line + "\n")
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState
}

// foreign is the environment without the settings that a developer has for nudged.
func foreign() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "NUDGED_") })
}
