package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

// difference is what another configuration would change about one request. Slots are those that
// go out next, empty where there is none.
type difference struct {
	RequestID string       `json:"request_id"`
	Change    string       `json:"change"` // moved, added or dropped
	Before    *plannedSlot `json:"before,omitempty"`
	After     *plannedSlot `json:"after,omitempty"`
}

// diff shows for the open requests of the database which next slots another configuration would
// move, add or drop.
func (c *planCommand) diff(g *globals) error {
	other, err := config.Load(string(c.Diff), g.overrides())
	if err != nil {
		return err
	}
	changed, same := []difference{}, 0
	err = g.operate(func(ctx context.Context, store *postgres.Store, cfg *config.Config) error {
		before, after := policyOf(cfg), policyOf(other)
		return store.EachOpen(ctx, func(in scheduler.Input) error {
			if d, differs := compare(in, before, after); differs {
				changed = append(changed, d)
			} else {
				same++
			}
			return nil
		})
	})
	if _, some := errors.AsType[*postgres.UnreadableError](err); err != nil && !some {
		return err
	}
	return errors.Join(c.printDiff(g, changed, same), err)
}

func (c *planCommand) printDiff(g *globals, changed []difference, same int) error {
	if c.Output == "json" {
		return printJSON(g.stdout, changed)
	}
	table := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
	if len(changed) > 0 {
		fmt.Fprintln(table, "REQUEST\tCHANGE\tNEXT NOW\tNEXT THEN")
	}
	for _, d := range changed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", plain(d.RequestID), d.Change, d.Before.short(), d.After.short())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(g.stdout, "%d of %d open requests would have another next slot\n", len(changed), len(changed)+same)
	return err
}

func compare(in scheduler.Input, before, after *scheduler.Policy) (difference, bool) {
	old, hadOne := before.NextSlot(in)
	next, hasOne := after.NextSlot(in)
	if hadOne == hasOne && old.Name == next.Name && old.Due.Equal(next.Due) {
		return difference{}, false
	}
	d := difference{RequestID: in.RequestID, Change: "moved"}
	if hadOne {
		slot := planned(old, time.UTC)
		d.Before = &slot
	} else {
		d.Change = "added"
	}
	if hasOne {
		slot := planned(next, time.UTC)
		d.After = &slot
	} else {
		d.Change = "dropped"
	}
	return d, true
}

// short is the slot in a table.
func (s *plannedSlot) short() string {
	if s == nil {
		return "none"
	}
	return s.Slot + " " + s.Due.Format(time.RFC3339)
}
