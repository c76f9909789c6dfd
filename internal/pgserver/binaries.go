package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EnvBin names the environment variable that says where the PostgreSQL server's programs are.
const EnvBin = "NUDGED_POSTGRES_BIN"

// ErrNotInstalled is the error where there is no PostgreSQL server and none can be fetched.
var ErrNotInstalled = errors.New("no PostgreSQL server found: install it (Debian: apt-get install postgresql; macOS: brew install postgresql) or set " + EnvBin)

// binaries is a folder with the server's programs.
type binaries struct {
	dir   string
	major int
}

// findBinaries returns the server's programs: those of the environment variable, or else those on
// the PATH, or else the newest installed, or else fetched ones. Where there is data already, those
// of the version that made it are preferred; no other can read it.
func findBinaries(ctx context.Context, dataMajor string) (binaries, error) {
	found, err := installed(ctx)
	if err != nil {
		return binaries{}, err
	}
	if len(found) == 0 {
		fetched, err := fetchBinaries(ctx)
		if err != nil {
			return binaries{}, err
		}
		found = append(found, fetched)
	}
	if dataMajor == "" {
		return found[0], nil
	}
	for _, bin := range found {
		if strconv.Itoa(bin.major) == dataMajor {
			return bin, nil
		}
	}
	return binaries{}, fmt.Errorf("the data was made by PostgreSQL %s, and %s holds version %d: set %s to the programs of version %s or choose another folder",
		dataMajor, found[0].dir, found[0].major, EnvBin, dataMajor)
}

// installed lists what is on this machine, the preferred one first.
func installed(ctx context.Context) ([]binaries, error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		bin, err := inspect(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", EnvBin, dir, err)
		}
		return []binaries{bin}, nil
	}
	var found []binaries
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		dirs, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		for _, dir := range dirs {
			if bin, err := inspect(ctx, dir); err == nil {
				found = append(found, bin)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	if bin, err := onPath(ctx); err == nil {
		found = slices.Insert(found, 0, bin)
	}
	return found, nil
}

func onPath(ctx context.Context) (binaries, error) {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return binaries{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return binaries{}, err
	}
	return inspect(ctx, filepath.Dir(path))
}

// inspect reports the version of the programs in a folder, or an error where they are not all
// there or do not run.
func inspect(ctx context.Context, dir string) (binaries, error) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return binaries{}, fmt.Errorf("no program %s there", name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("run postgres --version: %w", err)
	}
	major, err := parseMajor(string(out))
	return binaries{dir: dir, major: major}, err
}

// parseMajor reads `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or 17beta1 and the like.
func parseMajor(version string) (int, error) {
	_, number, found := strings.Cut(version, "(PostgreSQL) ")
	if !found {
		return 0, fmt.Errorf("read the version in %q", strings.TrimSpace(version))
	}
	digits := number[:len(number)-len(strings.TrimLeft(number, "0123456789"))]
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("read the version in %q", strings.TrimSpace(version))
	}
	return major, nil
}
