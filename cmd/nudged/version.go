package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	Output string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// build is what the binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	TZData   string `json:"tzdata"`
}

// What the release stamps in with -ldflags "-X main.version=1.2.3 -X main.revision=…". Where they
// are empty, the binary says what the Go command knew.
//
//nolint:gochecknoglobals // the linker sets nothing else
var version, revision string

// Run implements the subcommand.
func (c *versionCommand) Run(g *globals) error {
	b := buildInfo(g.zones)
	if c.Output == "json" {
		return printJSON(g.stdout, b)
	}
	_, err := fmt.Fprintf(g.stdout, "nudged %s (revision %s, %s, tzdata %s)\n", b.Version, b.Revision, b.Go, b.TZData)
	return err
}

func buildInfo(zones zoneData) build {
	b := build{Version: version, Revision: revision, Go: runtime.Version(), TZData: zones.String()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Revision = cmp.Or(b.Revision, setting.Value)
			}
		}
	}
	b.Version, b.Revision = cmp.Or(b.Version, "unknown"), cmp.Or(b.Revision, "unknown")
	return b
}
