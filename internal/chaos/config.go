//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nudged/internal/pgserver"
)

// Config says what to run and for how long.
type Config struct {
	Database *pgserver.Server // durable, of this run alone; its database postgres is used
	Dir      string           // for the configuration and the logs of the replicas
	Binary   string           // the daemon
	Duration time.Duration    // of the storm; healing comes on top
	Seed     uint64
	Replicas int
}

func (c Config) validate() error {
	switch {
	case c.Database == nil, c.Dir == "", c.Binary == "":
		return errors.New("chaos: database, folder and binary are needed")
	case c.Duration <= 0, c.Replicas < 1:
		return errors.New("chaos: duration and replicas must be positive")
	}
	return nil
}

// What the daemon is configured with and the judge relies on.
const (
	lease        = 2 * time.Second
	replyTimeout = 2 * time.Second
	minGap       = time.Second
	maxMails     = 4 // of the cadence default, for one link
)

// Words that must not come into a log. Each is found nowhere else.
const (
	markAddress  = "zqaddress.example"
	markLink     = "zqlink.example"
	markSubject  = "zqsubject"
	markName     = "zqname"
	markMessage  = "zqmessage"
	markPassword = "zqpassword"
)

// writeConfig writes the configuration of one replica and returns the name of its file.
//
// Every third replica has few connections and a low rate: its claims wait before they are handed
// off, and much can happen to their requests meanwhile. The others are quick.
func writeConfig(dir string, replica, smtpPort int) (string, error) {
	password := filepath.Join(dir, "smtp-password")
	if err := os.WriteFile(password, []byte(markPassword+"-smtp"), 0o600); err != nil {
		return "", fmt.Errorf("write the password: %w", err)
	}
	pace := "connections: 8, rate: 0"
	if replica%3 == 0 {
		pace = "connections: 2, rate: 6"
	}
	text := fmt.Sprintf(`environment: chaos
poll: {every: 100ms, lease: %s}
smtp:
  {host: 127.0.0.1, port: %d, tls: none, username: nudged, password_file: %s, %s,
   dial_timeout: 1500ms, command_timeout: 1500ms, reply_timeout: %s}
mail: {from: "Example <reminders@sender.example>"}
limits: {min_gap: %s, retry_backoff: {initial: 1s, max: 2s}}
cadences:
  default: {after: [3s, 8s, 15s], then_every: 10s, max: %d}
  once: {after: [2s, 5s]}
`, lease, smtpPort, password, pace, replyTimeout, minGap, maxMails)
	name := filepath.Join(dir, fmt.Sprintf("nudged-%d.yml", replica))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the configuration: %w", err)
	}
	return name, nil
}

// slotOffsets returns the offsets of the slots of a cadence up to most. It is worked out here anew,
// so that a mistake of the daemon's own arithmetic is not believed.
func slotOffsets(cadence string, most time.Duration) []time.Duration {
	offsets := []time.Duration{3 * time.Second, 8 * time.Second, 15 * time.Second}
	if cadence == "once" {
		offsets = []time.Duration{2 * time.Second, 5 * time.Second}
	} else {
		for next := 25 * time.Second; next <= most; next += 10 * time.Second {
			offsets = append(offsets, next)
		}
	}
	for i, offset := range offsets {
		if offset > most {
			return offsets[:i]
		}
	}
	return offsets
}

// slotName is the name of an offset that is no whole number of minutes.
func slotName(offset time.Duration) string { return fmt.Sprintf("%ds", int(offset/time.Second)) }
