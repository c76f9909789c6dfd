package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"nudged/internal/config"
	"nudged/migrations"
)

// plansBy names what plans depend on besides the configuration: the zone data, and what the schema
// of this build keeps of a plan.
func plansBy() string {
	schema, err := migrations.Latest()
	if err != nil {
		return zoneData()
	}
	return fmt.Sprintf("%s, schema %d", zoneData(), schema)
}

// fingerprint tells plans by this configuration and build from plans by others. The window of the
// idempotency key stays that of the start when the rest is reloaded.
func fingerprint(cfg *config.Config, repeatWithin time.Duration) int32 {
	sum := sha256.Sum256(fmt.Append(nil, cfg.Hash, plansBy(), repeatWithin))
	return int32(binary.BigEndian.Uint32(sum[:])) //nolint:gosec // any 32 bits will do
}

// zoneData names the zone data in force: what $ZONEINFO or the system has wins over the embedded
// copy, whose version is that of the Go release that built the binary.
func zoneData() string {
	if path := os.Getenv("ZONEINFO"); path != "" {
		return "from ZONEINFO=" + path
	}
	for _, dir := range []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"} {
		if _, err := os.Stat(filepath.Join(dir, "Europe", "Paris")); err == nil {
			return strings.TrimSpace(systemZoneVersion(dir) + " in " + dir)
		}
	}
	return "embedded in " + runtime.Version()
}

// systemZoneVersion reads the version that tzdata packages leave beside the zones; empty where
// there is none.
func systemZoneVersion(dir string) string {
	file, err := os.Open(filepath.Join(dir, "tzdata.zi"))
	if err != nil {
		return ""
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "# version "))
}
