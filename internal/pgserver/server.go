package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Server is one PostgreSQL server, running or stopped. Its methods may be called by several
// goroutines.
type Server struct {
	config  Config
	bin     binaries
	account *account
	port    int

	mu      sync.Mutex
	lock    *os.File // held while the server runs
	process *process // nil while it does not
}

// Start starts a server and returns when it accepts connections. The context bounds the start
// only. A folder that another process owns is an *InUseError.
func Start(ctx context.Context, config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	if err := prepareDir(config.Dir, account); err != nil {
		return nil, err
	}
	bin, err := findBinaries(ctx, dataVersion(config.Dir))
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, bin: bin, account: account, port: config.Port}
	start := s.start
	if s.port == 0 {
		start = s.startOnFreePort
	}
	if err := start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// startOnFreePort tries again where another process took the port between the look and the start.
func (s *Server) startOnFreePort(ctx context.Context) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = port
		err = s.start(ctx)
		if err == nil || attempt == attempts || portFree(port) {
			return err
		}
	}
}

// Port is the port on 127.0.0.1. It stays the same across Restart.
func (s *Server) Port() int { return s.port }

// ConnString is the URL of a database of this server, for its superuser, over TCP. It says that there is no TLS,
// for those whose PGSSLMODE asks for it.
func (s *Server) ConnString(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// SocketDir is the folder of the unix socket, as a client wants it for its host.
func (s *Server) SocketDir() string { return s.config.Dir }

// Stop ends every session, stops the server and waits for its end. Where the context ends first
// the server is stopped the hard way, and that is an error. Stopping a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(ctx)
}

// Kill stops the server as a crash would, without a last checkpoint, and waits for its end:
// the next Restart recovers from the log.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.kill()
}

// Restart stops the server if it runs and starts it on the same port and data. The context bounds
// both.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// start wants s.mu held, as do the methods below, or a server that nobody else knows yet.
func (s *Server) start(ctx context.Context) (err error) {
	if s.lock, err = lockDir(s.config.Dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.lock.Close()
		}
	}()
	if err := stopLeftover(ctx, s.config.Dir); err != nil {
		return err
	}
	if !portFree(s.port) {
		return fmt.Errorf("port %d on 127.0.0.1 is taken", s.port)
	}
	if err := s.makeData(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// run starts the server process and waits until it accepts connections.
func (s *Server) run(ctx context.Context) error {
	p, err := s.spawn("postgres", s.config.arguments(s.port)...)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, p, s.config.Dir); err != nil {
		p.signal(syscall.SIGQUIT)
		<-p.exited
		return err
	}
	s.process = p
	return nil
}

func (s *Server) stop(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	s.process.signal(syscall.SIGINT) // fast shutdown
	select {
	case <-s.process.exited:
		return s.released()
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop postgres: %w", context.Cause(ctx)), s.kill())
	}
}

// kill takes a while at worst: PostgreSQL itself gives its sessions five seconds before it kills them.
func (s *Server) kill() error {
	const patience = 15 * time.Second
	s.process.signal(syscall.SIGQUIT) // immediate shutdown
	select {
	case <-s.process.exited:
	case <-time.After(patience):
		s.process.signal(syscall.SIGKILL)
		<-s.process.exited
	}
	return s.released()
}

func (s *Server) released() error {
	s.process = nil
	if err := s.lock.Close(); err != nil {
		return fmt.Errorf("release folder %s: %w", s.config.Dir, err)
	}
	return nil
}

// spawn starts one of the binaries under the server's account.
func (s *Server) spawn(name string, arguments ...string) (*process, error) {
	return startProcess(command{
		path:      filepath.Join(s.bin.dir, name),
		arguments: arguments,
		dir:       s.config.Dir,
		account:   s.account,
		log:       s.config.Log,
	})
}
