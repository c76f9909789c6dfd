package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/migrations"
)

type migrateCommand struct {
	Status bool   `name:"status" help:"List the migrations instead of applying them."`
	Output string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// Run implements the subcommand.
func (c *migrateCommand) Run(g *globals) error {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		return err
	}
	list, err := c.work(g, cfg.Database.URL.Reveal())
	if err != nil {
		return err
	}
	if err := refuseNewer(g.ctx, cfg.Database.URL.Reveal()); err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(g.stdout, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(g.stdout, "the schema is up to date")
		return err
	}
	table := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
	for _, m := range list {
		applied := "pending"
		if !m.AppliedAt.IsZero() {
			applied = "applied " + m.AppliedAt.Format("2006-01-02 15:04:05Z")
		}
		fmt.Fprintf(table, "%s\t%s\n", m.Name, applied)
	}
	if err := table.Flush(); err != nil || !c.Status || slices.ContainsFunc(list, func(m migrations.Migration) bool { return !m.AppliedAt.IsZero() }) {
		return err
	}
	_, err = fmt.Fprintln(g.stdout, "nothing has been applied: `nudged migrate` does it")
	return err
}

func (c *migrateCommand) work(g *globals, url string) ([]migrations.Migration, error) {
	if c.Status {
		return migrations.Status(g.ctx, url)
	}
	return migrations.UpTelling(g.ctx, url, func() {
		fmt.Fprintln(g.stderr, "nudged: waiting for a table that another transaction has in use (pg_stat_activity shows the old ones); interrupt to give up")
	})
}

// refuseNewer returns an error where the schema is one that only a newer nudged works on.
func refuseNewer(ctx context.Context, url string) error {
	store, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	defer store.Close()
	newer, ok := errors.AsType[*migrations.VersionError](store.CheckSchema(ctx))
	if ok && newer.Have > newer.Want {
		return newer
	}
	return nil
}
