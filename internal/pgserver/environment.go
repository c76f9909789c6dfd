package pgserver

import (
	"fmt"
	"os"
	"strings"
)

// ForgetEnvironment takes PGSSLMODE, PGOPTIONS and the like out of the environment of this process and of those it
// starts. They tell how to reach somebody's own server, and the clients of a private one would heed them.
func ForgetEnvironment() error {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("unset %s: %w", name, err)
		}
	}
	return nil
}
