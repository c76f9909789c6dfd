package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"nudged/cadence"
	"nudged/internal/config"
	"nudged/scheduler"
)

type planCommand struct {
	RequestID string `arg:"" optional:"" name:"request-id" help:"Plan this request of the database."`
	Cadence   filled `name:"cadence" placeholder:"NAME" help:"Plan this cadence of the configuration."`
	Anchor    filled `name:"anchor" placeholder:"TIME" help:"When the link was created (RFC 3339)."`
	Zone      filled `name:"zone" placeholder:"ZONE" help:"The recipient's zone, an IANA name."`
	Expires   filled `name:"expires" placeholder:"TIME" help:"When the link expires (RFC 3339)."`
	Deadline  filled `name:"deadline" placeholder:"DATE" help:"The deadline of the request (2006-01-02)."`
	Diff      filled `name:"diff" placeholder:"FILE" help:"Show which next slots of the open requests this configuration would change."`
	Count     count  `name:"count" placeholder:"10" help:"How many slots to print, at most."`
	Output    string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// plannedSlot is one line of the plan. State and Reason are those of a slot in the ledger.
type plannedSlot struct {
	Slot   string           `json:"slot"`
	Due    time.Time        `json:"due"`
	Local  string           `json:"local"`
	State  scheduler.State  `json:"state,omitempty"`
	Reason scheduler.Reason `json:"reason,omitempty"`
}

func planned(slot cadence.Slot, zone *time.Location) plannedSlot {
	return plannedSlot{Slot: slot.Name, Due: slot.Due.UTC(), Local: slot.Due.In(zone).Format(time.RFC3339)}
}

// Run implements the subcommand.
func (c *planCommand) Run(g *globals) error {
	if c.Diff != "" {
		if c.RequestID != "" {
			return usagef("plan takes a request id or --diff, not both")
		}
		if err := c.misplaced("--diff, which shows every open request as it is", true); err != nil {
			return err
		}
		return c.diff(g)
	}
	c.Count = cmp.Or(c.Count, planCount)
	slots, err := c.slots(g)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(g.stdout, slots)
	}
	table := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SLOT\tDUE (UTC)\tLOCAL\tFATE")
	for _, s := range slots {
		fate := string(s.State)
		if s.Reason != "" {
			fate += ": " + s.Reason.Words()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Slot, s.Due.Format(time.RFC3339), s.Local, fate)
	}
	return table.Flush()
}

// planCount is how many slots are printed where nobody says it.
const planCount = 10

// misplaced refuses the flags that would be without effect beside what is planned.
func (c *planCommand) misplaced(beside string, counted bool) error {
	for _, flag := range []struct {
		name  string
		given bool
		value filled
	}{
		{"cadence", c.Cadence != "", c.Cadence}, {"anchor", c.Anchor != "", c.Anchor}, {"zone", c.Zone != "", c.Zone},
		{"expires", c.Expires != "", c.Expires}, {"deadline", c.Deadline != "", c.Deadline},
		{"count", counted && c.Count != 0, filled(strconv.Itoa(int(c.Count)))},
	} {
		if flag.given {
			return usagef("--%s: does not go with %s (got %q)", flag.name, beside, flag.value)
		}
	}
	return nil
}

func (c *planCommand) slots(g *globals) ([]plannedSlot, error) {
	switch {
	case c.RequestID != "":
		if err := c.misplaced("a request id, whose row and link have their own", false); err != nil {
			return nil, err
		}
		return c.ofRequest(g)
	case c.Anchor == "":
		return nil, usagef("plan needs a request id, or --cadence and --anchor")
	}
	return c.ofCadence(g)
}

// ofCadence needs no database.
func (c *planCommand) ofCadence(g *globals) ([]plannedSlot, error) {
	cfg, err := g.load()
	if err != nil {
		return nil, err
	}
	name := cmp.Or(string(c.Cadence), cfg.Defaults.Cadence)
	rule, ok := cfg.Cadences[name]
	if !ok {
		known := slices.Sorted(maps.Keys(cfg.Cadences))
		return nil, usagef("--cadence: the configuration has no such cadence, only %s (got %q)", strings.Join(known, ", "), name)
	}
	origin := cadence.Origin{Zone: cfg.Defaults.TimeZone}
	if origin.Anchor, err = time.Parse(time.RFC3339, string(c.Anchor)); err != nil {
		return nil, usagef("--anchor: want a time such as 2026-03-02T10:00:00Z (got %q)", c.Anchor)
	}
	if err := cadence.CheckAnchor(origin.Anchor); err != nil {
		return nil, usagef("--anchor: %w (got %q)", err, c.Anchor)
	}
	var expires time.Time
	if c.Expires != "" {
		if expires, err = time.Parse(time.RFC3339, string(c.Expires)); err != nil {
			return nil, usagef("--expires: want a time such as 2026-04-02T10:00:00Z (got %q)", c.Expires)
		}
	}
	if c.Zone != "" {
		if origin.Zone, err = cadence.LoadZone(string(c.Zone)); err != nil {
			return nil, usagef("--zone: %w", err)
		}
	}
	if c.Deadline != "" {
		if origin.Deadline, err = cadence.ParseDate(string(c.Deadline)); err != nil {
			return nil, usagef("--deadline: want a date such as 2026-04-02 (got %q)", c.Deadline)
		}
	}
	return c.preview(rule, origin, expires), nil
}

// preview lists what would be sent if nothing came in between.
func (c *planCommand) preview(rule *cadence.Cadence, origin cadence.Origin, expires time.Time) []plannedSlot {
	most := int(c.Count)
	if rule.Max() > 0 {
		most = min(most, rule.Max())
	}
	slots := []plannedSlot{}
	for slot := range rule.Slots(origin, origin.Anchor.Add(-time.Second)) {
		if len(slots) == most || !expires.IsZero() && !slot.Due.Before(expires) {
			break
		}
		slots = append(slots, planned(slot, origin.Zone))
	}
	return slots
}

// ofRequest lists the past slots of a request with their fate and those to come.
func (c *planCommand) ofRequest(g *globals) ([]plannedSlot, error) {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		return nil, err
	}
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	in, _, err := store.Load(g.ctx, c.RequestID)
	if err != nil {
		return nil, err
	}
	if in.Request == nil {
		return nil, fmt.Errorf("there is no request %q", c.RequestID)
	}
	warnings, err := g.doubts(store, cfg)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		fmt.Fprintln(g.stderr, "nudged: "+w)
	}
	e := policyOf(cfg).Explain(in, nil, int(c.Count))
	if e.Series.Cadence == nil && len(e.Mistakes) > 0 {
		return nil, fmt.Errorf("request %s has no plan: %s", c.RequestID, e.Mistakes[0].Words())
	}
	slots := []plannedSlot{}
	for _, r := range e.Past {
		slot := planned(cadence.Slot{Name: r.Slot, Due: r.DueAt}, zoneOf(e))
		slot.State, slot.Reason = r.State, r.Reason
		slots = append(slots, slot)
	}
	for _, f := range e.Slots {
		if f.Row == nil && (f.Fate == scheduler.FateDue || f.Fate == scheduler.FateWaits) {
			slots = append(slots, planned(f.Slot, zoneOf(e)))
		}
	}
	for _, slot := range e.Next {
		slots = append(slots, planned(slot, zoneOf(e)))
	}
	return slots, nil
}

// zoneOf is the zone an explanation speaks in.
func zoneOf(e scheduler.Explanation) *time.Location {
	if e.Series.Origin.Zone == nil {
		return time.UTC
	}
	return e.Series.Origin.Zone
}
