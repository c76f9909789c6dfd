package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetcher downloads the server's programs and keeps them.
type fetcher struct {
	repository string // where to fetch from; empty: the library's own default
	cache      string
	probe      time.Duration // how long a repository that is named may take to answer at all
	download   time.Duration // how long everything may take
}

func fetchBinaries(ctx context.Context) (binaries, error) {
	cache, err := CacheDir()
	if err != nil {
		return binaries{}, err
	}
	f := fetcher{
		cache:    filepath.Join(cache, "postgresql"),
		download: 5 * time.Minute,
	}
	return f.fetch(ctx)
}

// fetch returns the programs fetched earlier, or fetches them. Its error is one line and wraps
// ErrNotInstalled.
func (f fetcher) fetch(ctx context.Context) (binaries, error) {
	const version = embeddedpostgres.V18
	home := filepath.Join(f.cache, string(version))
	if bin, err := inspect(ctx, filepath.Join(home, "bin")); err == nil {
		return bin, nil
	}
	if f.repository != "" {
		if err := f.reachable(ctx); err != nil {
			return binaries{}, fmt.Errorf("%w (it could not be fetched: %w)", ErrNotInstalled, err)
		}
	}
	if err := f.extract(ctx, version, home); err != nil {
		return binaries{}, fmt.Errorf("%w (it could not be fetched: %w)", ErrNotInstalled, err)
	}
	return inspect(ctx, filepath.Join(home, "bin"))
}

// reachable keeps a closed network from costing more than a few seconds: the library waits as
// long as the system does.
func (f fetcher) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.probe)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, f.repository, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// extract has the library fetch into home. It does so only on the way to a server of its own,
// which is not wanted: data below a device that is no folder ends that right after the fetch.
func (f fetcher) extract(ctx context.Context, version embeddedpostgres.PostgresVersion, home string) error {
	ctx, cancel := context.WithTimeout(ctx, f.download)
	defer cancel()
	scratch, err := os.MkdirTemp("", "nudged-fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig()
	if f.repository != "" {
		config = config.BinaryRepositoryURL(f.repository)
	}
	library := embeddedpostgres.NewDatabase(config.
		Version(version).
		CachePath(f.cache).
		BinariesPath(home).
		RuntimePath(filepath.Join(scratch, "run")).
		DataPath("/dev/null/none").
		Port(uint32(port)). //nolint:gosec // a port
		Logger(io.Discard))
	done := make(chan error, 1)
	go func() { done <- library.Start() }() // takes no context
	select {
	case err = <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, missing := os.Stat(filepath.Join(home, "bin", "postgres")); missing == nil {
		return nil
	}
	line, _, _ := strings.Cut(err.Error(), "\n") // never nil: there is no server to start
	return errors.New(line)
}
