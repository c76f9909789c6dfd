//go:build chaos

package chaos

import (
	"bytes"
	"fmt"
	"os"
)

// lastWords is how much of a log is kept for the report, in bytes.
const lastWords = 2000

// readLogs looks through every replica's log for what must not be there.
func readLogs(processes []*process) ([]Violation, error) {
	var found []Violation
	for _, p := range processes {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return nil, fmt.Errorf("read a log: %w", err)
		}
		p.lastWords = string(text[max(0, len(text)-lastWords):])
		found = append(found, searchLog(p.log, text)...)
	}
	return found, nil
}

// searchLog returns one violation for each kind of secret that a log tells, and for a stack trace.
func searchLog(name string, text []byte) []Violation {
	forbidden := map[string]string{
		"an address": markAddress, "a link": markLink, "a subject": markSubject, "a name": markName,
		"a message": markMessage, "a password": markPassword,
		"a panic": "panic:", "a stack trace": "goroutine ", "a data race": "DATA RACE",
	}
	var found []Violation
	for what, mark := range forbidden {
		for line := range bytes.Lines(text) {
			if bytes.Contains(line, []byte(mark)) {
				found = append(found, Violation{Kind: kindLog, What: fmt.Sprintf("%s: %s: %s", name, what, bytes.TrimSpace(line))})
				break
			}
		}
	}
	return found
}
