package main

import (
	"fmt"

	"nudged/internal/config"
)

type checkConfigCommand struct{}

// Run implements the subcommand.
func (c *checkConfigCommand) Run(g *globals) error {
	if g.flags.ConfigFile == "" {
		return usagef("check-config needs --config.file")
	}
	cfg, err := g.load(config.NeedMail)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.stdout, "%s: ok (%d cadences, hash %s)\n", cfg.File, len(cfg.Cadences), cfg.Hash)
	return err
}
