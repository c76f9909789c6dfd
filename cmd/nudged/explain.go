package main

import (
	"fmt"
	"slices"
	"strings"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/mailer"
)

type explainCommand struct {
	RequestID string `arg:"" optional:"" name:"request-id" help:"The request."`
	Recipient filled `name:"recipient" placeholder:"ADDRESS" help:"Instead of one request, all that have this address or had a mail go to it."`
	Most      count  `name:"most" default:"20" help:"How many requests of a recipient to tell about, at most."`
	Count     count  `name:"count" default:"5" help:"How many slots to come to print, at most."`
	Output    string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// Run implements the subcommand.
func (c *explainCommand) Run(g *globals) error {
	if err := c.check(); err != nil {
		return err
	}
	cfg, err := g.load(config.NeedDatabase, config.NeedLanguage)
	if err != nil {
		return err
	}
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	teller := teller{globals: g, cfg: cfg, store: store, count: int(c.Count)}
	if teller.language, err = mailer.Languages(templatesOf(cfg.Mail.Templates), cfg.Defaults.Locale); err != nil {
		return err
	}
	if teller.warnings, err = g.doubts(store, cfg); err != nil {
		return err
	}
	if c.Recipient != "" {
		return c.recipient(teller)
	}
	e, err := teller.tell(c.RequestID)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(g.stdout, e)
	}
	return e.print(g.stdout)
}

func (c *explainCommand) check() error {
	switch {
	case c.RequestID == "" && c.Recipient == "":
		return usagef("explain needs a request id, or --recipient")
	case c.RequestID != "" && c.Recipient != "":
		return usagef("explain takes a request id or --recipient, not both")
	default:
		return nil
	}
}

func (c *explainCommand) recipient(t teller) error {
	ids, all, err := t.store.RequestsOf(t.ctx, string(c.Recipient), int(c.Most))
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("no request has the address %q, and no mail of the ledger went to it", c.Recipient)
	}
	r := recipientExplanation{Recipient: string(c.Recipient), Found: all, Warnings: t.warnings}
	t.warnings = nil // they are told once
	for _, id := range ids {
		e, err := t.tell(id)
		if err != nil {
			return err
		}
		r.Requests = append(r.Requests, e)
	}
	r.Answer = r.sentence()
	if c.Output == "json" {
		return printJSON(t.stdout, r)
	}
	return r.print(t.stdout)
}

// teller explains requests of one database by one configuration.
type teller struct {
	*globals

	cfg      *config.Config
	store    *postgres.Store
	count    int
	language func(locale string) string // of the mail
	warnings []string
}

func (t teller) tell(id string) (explanation, error) {
	in, _, err := t.store.Load(t.ctx, id)
	if err != nil {
		return explanation{}, err
	}
	if in.Request == nil && len(in.Reminders) == 0 {
		return explanation{}, fmt.Errorf("there is no request %q", id)
	}
	events, err := t.store.Events(t.ctx, id)
	if err != nil {
		return explanation{}, err
	}
	e := explanationOf(policyOf(t.cfg).Explain(in, events, t.count))
	e.Configuration, e.Warnings = t.cfg.File, slices.Insert(e.Warnings, 0, t.warnings...)
	if in.Request != nil {
		e.Language = t.language(in.Request.Locale)
	}
	return e, nil
}

// doubts says why the daemon may see things otherwise than this command.
func (g *globals) doubts(store *postgres.Store, cfg *config.Config) ([]string, error) {
	installed, err := store.Installation(g.ctx)
	if err != nil {
		return nil, err
	}
	found := []string{}
	hash, by, planned := strings.Cut(installed.PlannedWith, " ")
	switch {
	case planned && hash == cfg.Hash && by != g.zones.plansBy():
		found = append(found, fmt.Sprintf("The daemon has other time zone data or another schema (%s) than this command (%s): local times of slots to come may differ.", by, g.zones.plansBy()))
	case planned && hash == cfg.Hash:
	case cfg.File == "":
		found = append(found, "No configuration file was given (--config.file or NUDGED_CONFIG_FILE): rules and slots to come are those of the built-in cadence and limits, which need not be the daemon's.")
	case planned:
		found = append(found, fmt.Sprintf("The daemon last planned with another configuration (%s) than this one (%s): rules and slots to come may differ.", hash, cfg.Hash))
	}
	environment := cfg.Environment
	if cfg.File == "" {
		environment = installed.Environment // nobody says of which one the daemon is
	}
	if refusal := installed.Refusal(environment); refusal != nil {
		found = append(found, strings.ToUpper(refusal.Error()[:1])+refusal.Error()[1:]+".")
	}
	return found, nil
}
