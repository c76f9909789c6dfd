package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	socketPrefix = ".s.PGSQL."
	unfinished   = "data.new" // what initdb works on
)

// prepareDir makes the folder, private to the account that runs the server.
func prepareDir(dir string, account *account) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w", dir, err)
	}
	if account != nil {
		if err := account.reaches(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read folder %s: %w", dir, err)
	}
	if i := slices.IndexFunc(entries, foreign); i >= 0 {
		return fmt.Errorf("folder %s holds other things (%s): choose another", dir, entries[i].Name())
	}
	if len(entries) > 0 {
		return checkOwner(dir, account)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("make folder private: %w", err)
	}
	if account == nil {
		return nil
	}
	if err := os.Chown(dir, int(account.uid), int(account.gid)); err != nil {
		return fmt.Errorf("give folder to %s: %w", account.name, err)
	}
	return nil
}

func foreign(entry fs.DirEntry) bool {
	name := entry.Name()
	return name != "data" && name != unfinished && !strings.HasPrefix(name, socketPrefix)
}

func checkOwner(dir string, account *account) error {
	want := uint32(os.Geteuid()) //nolint:gosec // never negative where files have owners
	if account != nil {
		want = account.uid
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	if have := info.Sys().(*syscall.Stat_t).Uid; have != want {
		return fmt.Errorf("folder %s belongs to user %d, the PostgreSQL server would run as user %d: choose another", dir, have, want)
	}
	return nil
}

// lockDir takes the folder for this process. The lock ends with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &InUseError{Dir: dir}
	}
	return nil, fmt.Errorf("lock folder %s: %w", dir, err)
}

// dataVersion is the major version that made the data, or "" where there is none yet.
func dataVersion(dir string) string {
	b, err := os.ReadFile(filepath.Join(dataDir(dir), "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// makeData runs initdb unless there is data. It works beside the data folder, so that one it
// could not finish is never taken for data.
func (s *Server) makeData(ctx context.Context) error {
	_, err := os.Stat(dataDir(s.config.Dir))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the data folder: %w", err)
	}
	fresh := filepath.Join(s.config.Dir, unfinished)
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished data folder: %w", err)
	}
	arguments := []string{"-D", fresh, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"}
	if !s.config.Durable {
		arguments = append(arguments, "--no-sync")
	}
	p, err := s.spawn("initdb", arguments...)
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.signal(syscall.SIGTERM)
		<-p.exited
		return fmt.Errorf("make the data folder: %w", context.Cause(ctx))
	}
	if p.err != nil {
		return p.failure("make the data folder")
	}
	if err := os.Rename(fresh, dataDir(s.config.Dir)); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	return nil
}
