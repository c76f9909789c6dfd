package pgserver

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// command is one of PostgreSQL's programs and how it is run.
type command struct {
	path      string
	arguments []string
	dir       string
	account   *account // nil: the account of this process
	log       io.Writer
}

// process is a child that was started and is waited for.
type process struct {
	name   string
	os     *os.Process
	tail   *tail
	exited chan struct{} // closed when it is gone and reaped
	err    error         // how it ended; valid after exited
}

// startProcess starts a child that is told to end when this process dies.
//
// The kernel ties that to the thread that started the child, so one goroutine keeps its thread for
// as long as the child lives.
func startProcess(c command) (*process, error) {
	p := &process{name: filepath.Base(c.path), tail: &tail{out: c.log}, exited: make(chan struct{})}
	cmd := exec.Command(c.path, c.arguments...) //nolint:noctx // it outlives every context and is stopped by its pid
	cmd.Dir = c.dir
	// PG* variables of the caller are for its own connections, and messages are to be in English.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.Stdout, cmd.Stderr = p.tail, p.tail
	cmd.WaitDelay = time.Second // sessions that outlive a killed server hold its output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.account.uid, Gid: c.account.gid}
	}
	endWithParent(cmd.SysProcAttr)

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.os = cmd.Process
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// signal does not report that the process is gone already: whoever signals waits for its end.
func (p *process) signal(signal os.Signal) { _ = p.os.Signal(signal) }

// failure is the error for a process that ended when it should not have.
func (p *process) failure(doing string) error {
	return fmt.Errorf("%s: %s: %s", doing, p.name, p.tail.reason(p.err))
}

// tail passes on what is written to it and remembers the end of it for an error message.
type tail struct {
	out io.Writer

	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const keep = 8 << 10
	t.mu.Lock()
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-keep):]
	t.mu.Unlock()
	return t.out.Write(b)
}

// reason is the line that says why the process ended, or how where none does.
func (t *tail) reason(ended error) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(t.last) {
		for _, mark := range []string{"FATAL:", "PANIC:", "error:"} {
			if _, after, found := strings.Cut(string(line), mark); found {
				return strings.TrimSpace(after)
			}
		}
	}
	if ended == nil {
		return "ended without a word"
	}
	return ended.Error()
}
