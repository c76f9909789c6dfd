package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"time"

	"nudged/internal/config"
	"nudged/migrations"
)

// zoneData is the zone data in force. It is told once, when the process starts and before the first zone is
// loaded: a zone that is loaded stays as it is, so what comes into its place later is the next process's.
// The other way round plans by the old data would pass for plans by the new ones.
type zoneData struct {
	edition string // equal wherever the same zones lie
	place   string // where they lie; empty: in the program
}

// zoneDataInForce finds the zone data as the time package does: what $ZONEINFO names or the system has
// wins over the embedded copy, whose edition is that of the Go release that built the binary. Where the
// time package passes over a $ZONEINFO that is of no use, this is a mistake.
func zoneDataInForce(zoneinfo string) (zoneData, error) {
	if zoneinfo != "" {
		edition, err := zoneinfoEdition(zoneinfo)
		if err != nil {
			return zoneData{edition: "unusable"}, usagef("ZONEINFO: %w; want a folder of time zones or an uncompressed .zip of them, or no such variable (got %q)", err, zoneinfo)
		}
		return zoneData{edition, "ZONEINFO=" + zoneinfo}, nil
	}
	for _, dir := range []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"} {
		if edition, err := zoneEdition(os.DirFS(dir)); err == nil {
			return zoneData{edition, dir}, nil
		}
	}
	return zoneData{edition: "embedded in " + runtime.Version()}, nil
}

func (z zoneData) String() string {
	if z.place == "" {
		return z.edition
	}
	return z.edition + " in " + z.place
}

// plansBy names what plans depend on besides the configuration: the zone data, and what the schema
// of this build keeps of a plan.
func (z zoneData) plansBy() string {
	schema, err := migrations.Latest()
	if err != nil {
		return z.edition
	}
	return fmt.Sprintf("%s, schema %d", z.edition, schema)
}

// fingerprint tells plans by this configuration and build from plans by others. The window of the
// idempotency key stays that of the start when the rest is reloaded.
func (z zoneData) fingerprint(cfg *config.Config, repeatWithin time.Duration) int32 {
	sum := sha256.Sum256(fmt.Append(nil, cfg.Hash, z.plansBy(), repeatWithin))
	return int32(binary.BigEndian.Uint32(sum[:])) //nolint:gosec // any 32 bits will do
}
