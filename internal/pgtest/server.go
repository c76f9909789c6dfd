package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"nudged/internal/pgserver"
)

// server is a PostgreSQL server with a folder that both go when this process ends: a shell waits
// for the end of its input, which comes however the process ends, and then stops and removes.
type server struct {
	*pgserver.Server
	folder string
	shell  *exec.Cmd
	input  io.Closer
}

// sweep is the shell's program; $1 is the folder. A server that is on its way out may still
// write to the folder, so removing it may need a second try.
const sweep = `
cat >/dev/null
file="$1/pg/data/postmaster.pid"
[ -e "$file" ] && kill -QUIT "$(head -n 1 "$file")" 2>/dev/null
tries=0
until rm -rf -- "$1" 2>/dev/null; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || exit 1
	sleep 0.1
done
`

// startServer starts a server in a new folder below parent.
func startServer(ctx context.Context, parent string, config pgserver.Config) (*server, error) {
	s, err := newFolder(parent)
	if err != nil {
		return nil, err
	}
	config.Dir = filepath.Join(s.folder, "pg")
	if s.Server, err = pgserver.Start(ctx, config); err != nil {
		return nil, errors.Join(err, s.sweep())
	}
	return s, nil
}

func newFolder(parent string) (_ *server, err error) {
	folder, err := os.MkdirTemp(parent, "nudged-test-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the test server: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(folder)
		}
	}()
	// The server may run under another account than the tests and has to reach its own folder.
	if err := os.Chmod(folder, 0o711); err != nil {
		return nil, fmt.Errorf("open the folder for the test server: %w", err)
	}
	shell := exec.Command("/bin/sh", "-c", sweep, "sh", folder)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	input, err := shell.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the sweeping shell's input: %w", err)
	}
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("start the sweeping shell: %w", err)
	}
	return &server{folder: folder, shell: shell, input: input}, nil
}

// close stops the server, whose data nobody wants any more, and removes its folder.
func (s *server) close() error {
	return errors.Join(s.Kill(), s.sweep())
}

func (s *server) sweep() error {
	s.input.Close() // the shell learns nothing else from it
	if err := s.shell.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", s.folder, err)
	}
	return nil
}

// fastDir is where to put data that need not last: in memory where there is plenty, because
// creating a database is creating three hundred files. TMPDIR overrides it.
func fastDir() string {
	const (
		memory = "/dev/shm"
		plenty = 2 << 30 // bytes
	)
	var stat syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &stat) != nil {
		return os.TempDir()
	}
	if uint64(stat.Bavail)*uint64(stat.Bsize) < plenty { //nolint:unconvert // signed on other systems
		return os.TempDir()
	}
	return memory
}
