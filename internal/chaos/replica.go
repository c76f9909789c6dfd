//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// span is a stretch of time, of one kind of trouble.
type span struct {
	what     string
	from, to time.Time
}

// overlaps reports whether the span and the stretch from a to b have an instant in common.
func (s span) overlaps(a, b time.Time) bool { return !s.from.After(b) && !s.to.Before(a) }

// replicas are the daemons of one run.
type replicas struct {
	binary, dir string
	database    string   // its URL
	configs     []string // names of the files, by number of the replica
	tally       *tally

	mu      sync.Mutex
	all     []*process
	current []*process // by number of the replica
}

// process is one life of a replica. Its fields are guarded by replicas.mu but for those that are
// written before it is known to others, and by done.
type process struct {
	worker     string // as it writes itself into the ledger
	log        string // name of the file
	cmd        *exec.Cmd
	started    time.Time
	stops      []span
	killed     time.Time // zero: not by us
	terminated time.Time // zero: not by us

	done   chan struct{} // closed when it has ended; then:
	ended  time.Time
	status int // -1: by a signal

	lastWords string // the end of its log; written when the run is over
}

func newReplicas(cfg Config, smtpPort int, tally *tally) (*replicas, error) {
	r := &replicas{binary: cfg.Binary, dir: cfg.Dir, tally: tally, current: make([]*process, cfg.Replicas)}
	// The server asks for no password; this one is there to be looked for in the logs.
	r.database = fmt.Sprintf("postgres://postgres:%s-database@127.0.0.1:%d/postgres", markPassword, cfg.Database.Port())
	for number := range cfg.Replicas {
		config, err := writeConfig(cfg.Dir, number, smtpPort)
		if err != nil {
			return nil, err
		}
		r.configs = append(r.configs, config)
	}
	return r, nil
}

// start begins a new life of a replica.
func (r *replicas) start(number int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Join(r.dir, fmt.Sprintf("replica-%d-%d.log", number, len(r.all)))
	log, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("create a log: %w", err)
	}
	defer log.Close()                                                                             // the child has its own
	cmd := exec.Command(r.binary, "run", "--web.listen-address=127.0.0.1:0", "--log.level=debug") //nolint:noctx // it ends by our signals
	cmd.Env = append(os.Environ(), "NUDGED_CONFIG_FILE="+r.configs[number], "NUDGED_DATABASE_URL="+r.database)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	p := &process{log: name, cmd: cmd, done: make(chan struct{})}
	if err := p.run(); err != nil {
		return fmt.Errorf("start a replica: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name a replica: %w", err)
	}
	p.worker = fmt.Sprintf("%s/%d", host, cmd.Process.Pid)
	r.all = append(r.all, p)
	r.current[number] = p
	r.tally.add("replica: start")
	return nil
}

// run starts the process and sees to its end. The kernel ties a child's end to that of the thread
// which started it, so one goroutine keeps its thread for as long as the child lives.
func (p *process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.started = time.Now()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait()
		p.ended, p.status = time.Now(), p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	return <-started
}

// choices are what may befall a replica.
func (r *replicas) choices() []choice {
	return []choice{
		{do: "kill", weight: 5, least: 50 * time.Millisecond, most: time.Second},
		{do: "stop", weight: 3, least: lease + lease/4, most: 2*lease + lease/2},
		{do: "terminate", weight: 2, most: 500 * time.Millisecond},
	}
}

// do plays one step on the replica of this number.
func (r *replicas) do(ctx context.Context, number int, s step) error {
	r.mu.Lock()
	p := r.current[number]
	r.mu.Unlock()
	r.tally.add("replica: " + s.do)
	switch s.do {
	case "stop":
		begun := time.Now()
		p.signal(syscall.SIGSTOP)
		pause(ctx, s.lasts)
		r.mu.Lock()
		p.stops = append(p.stops, span{what: "stop", from: begun, to: time.Now()})
		r.mu.Unlock()
		p.signal(syscall.SIGCONT)
		return nil
	case "kill":
		r.kill(p)
		<-p.done
	default: // a rolling restart: the next one does not wait for this one's end
		r.terminate(p)
	}
	pause(ctx, s.lasts)
	return r.start(number)
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (r *replicas) kill(p *process) {
	r.mu.Lock()
	p.killed = time.Now()
	r.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

func (r *replicas) terminate(p *process) {
	r.mu.Lock()
	p.terminated = time.Now()
	r.mu.Unlock()
	p.signal(syscall.SIGTERM)
}

// stopAll ends what still runs by SIGTERM and waits. What does not end by patience is killed; the
// judge then finds a status that is not 0.
func (r *replicas) stopAll(patience time.Duration) {
	for _, p := range r.current {
		r.terminate(p)
	}
	deadline := time.After(patience)
	for _, p := range r.all {
		select {
		case <-p.done:
		case <-deadline:
			p.signal(syscall.SIGKILL)
			<-p.done
		}
	}
}

// killAll leaves nothing behind.
func (r *replicas) killAll() {
	for _, p := range r.all {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}
