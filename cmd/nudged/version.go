package main

import (
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

// Run implements the subcommand.
func (c *versionCommand) Run(g *globals) error {
	b := buildInfo()
	if c.Output == "json" {
		return printJSON(g.stdout, b)
	}
	_, err := fmt.Fprintf(g.stdout, "nudged %s (revision %s, %s, tzdata %s)\n", b.Version, b.Revision, b.Go, b.TZData)
	return err
}

func buildInfo() build {
	b := build{Version: "unknown", Revision: "unknown", Go: runtime.Version(), TZData: zoneData()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			b.Revision = setting.Value
		}
	}
	return b
}
