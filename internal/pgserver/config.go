package pgserver

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
)

// Config says what server to start.
type Config struct {
	// Dir is the folder the server lives in: its data and its socket. It is made if absent, and
	// a second Start finds the data of the first. The path must be short enough for a unix socket.
	Dir string
	// Port is the port on 127.0.0.1; 0 takes a free one.
	Port int
	// Settings are parameters of postgresql.conf; they win over those set here.
	Settings map[string]string
	// Durable keeps what was committed through a power cut. Without it the server is faster and
	// survives only the end of its process.
	Durable bool
	// Log receives what the server writes to its log; nil drops it.
	Log io.Writer
}

// InUseError says that another process owns the folder.
type InUseError struct {
	Dir string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("folder %s is in use by another process", e.Dir)
}

// maxSocketPath is the longest path of a unix socket in bytes: 103 on macOS, 107 on Linux.
const maxSocketPath = 103

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("no folder given for the PostgreSQL server")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("find folder %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if longest := socketPath(dir, maxPort); len(longest) > maxSocketPath {
		return c, fmt.Errorf("folder %s is too long for a unix socket by %d bytes: choose a shorter one", dir, len(longest)-maxSocketPath)
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c, nil
}

// arguments is the command line of the server.
func (c Config) arguments(port int) []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": c.Dir,
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	if !c.Durable {
		settings["fsync"] = "off"
		settings["synchronous_commit"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, c.Settings)
	arguments := []string{"-D", dataDir(c.Dir)}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

func socketPath(dir string, port int) string {
	return filepath.Join(dir, socketPrefix+strconv.Itoa(port))
}
