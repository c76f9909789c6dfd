package pgserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

func TestLeftoverServerIsStopped(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	left := start(t, Config{Dir: dir, Durable: true})
	keep(t, left)
	left.lock.Close() // as if its owner had died and the kernel did not see to the server

	server := start(t, Config{Dir: dir, Durable: true})
	select {
	case <-left.process.exited:
	default:
		t.Error("the leftover still runs")
	}
	if got := kept(t, server); got != "kept" {
		t.Errorf("the new server finds %q", got)
	}
	left.process = nil // it has nothing more to stop
}

func TestFileOfADeadServerIsIgnored(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	server := start(t, Config{Dir: dir})
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The number of a dead server may be anyone's by now: here it is this test's.
	file := filepath.Join(dir, "data", "postmaster.pid")
	content := fmt.Sprintf("%d\n%s\n0\n%d\n%s\n127.0.0.1\n0 0\nready\n", os.Getpid(), dir, server.Port(), dir)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stopLeftover(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	// Reaching this line is the proof: no signal came.
}

func TestKilledOwnerLeavesNoServer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	pid := killOwner(t, folder(t))
	eventually(t, "the killed owner's server is gone", func() bool { return !alive(pid) })
}

func TestStartRightAfterTheOwnerWasKilled(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	pid := killOwner(t, dir)
	server := start(t, Config{Dir: dir, Durable: true}) // while the other is still on its way out
	query[int](t, server, "SELECT 1")
	if alive(pid) {
		t.Error("two servers run on one folder")
	}
}

// killOwner lets another process start a server, kills that process and returns the server's id.
func killOwner(t *testing.T, dir string) int {
	t.Helper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), envOwner+"="+dir)
	owner.Stderr = os.Stderr
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var pid int
	if _, scanErr := fmt.Sscan(line, &pid); err != nil || scanErr != nil {
		t.Fatalf("the owner said %q: %v", line, errors.Join(err, scanErr))
	}
	if !alive(pid) {
		t.Fatal("the server does not run")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	owner.Wait() // ends by our own signal
	return pid
}
