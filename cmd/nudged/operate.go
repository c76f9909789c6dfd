package main

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

// operate runs one command of a person on the database.
func (g *globals) operate(work func(context.Context, *postgres.Store, *config.Config) error) error {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		return err
	}
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	err = work(g.ctx, store, cfg)
	if errors.Is(err, postgres.ErrNotFound) {
		return errors.New(strings.TrimSuffix(err.Error(), ": "+postgres.ErrNotFound.Error()) + ": there is none")
	}
	return err
}

// why is the reason that every act of a person needs.
type why struct {
	Why filled `name:"why" required:"" placeholder:"TEXT" help:"Why; kept with who and when."`
}

// act names the person who runs the command.
func (w why) act() postgres.Act {
	login, host := "unknown", "unknown-host"
	if u, err := user.Current(); err == nil {
		login = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return postgres.Act{Actor: login + "@" + host, Why: string(w.Why)}
}

type unknownCommand struct {
	Output string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// unknownOutcome is the stable JSON of unknown. Instants are UTC.
type unknownOutcome struct {
	RequestID     string           `json:"request_id"`
	LinkCreatedAt time.Time        `json:"link_created_at"`
	Slot          string           `json:"slot"`
	Due           time.Time        `json:"due"`
	Reason        scheduler.Reason `json:"reason"`
	Evidence      string           `json:"evidence"`
	HandedOffAt   time.Time        `json:"handed_off_at"`
	MessageID     string           `json:"message_id"`
	Worker        string           `json:"worker"`
}

// Run implements the subcommand.
func (c *unknownCommand) Run(g *globals) error {
	return g.operate(func(ctx context.Context, store *postgres.Store, _ *config.Config) error {
		list, err := store.Unknown(ctx)
		if err != nil {
			return err
		}
		outcomes := make([]unknownOutcome, 0, len(list))
		for _, r := range list {
			evidence := r.Reason.Words()
			if r.SMTPReply != "" {
				evidence += ": " + r.SMTPReply
			}
			outcomes = append(outcomes, unknownOutcome{
				RequestID: r.RequestID, LinkCreatedAt: r.LinkCreatedAt, Slot: r.Slot, Due: r.DueAt, Reason: r.Reason,
				Evidence: evidence, HandedOffAt: r.HandedOffAt, MessageID: r.MessageID, Worker: r.ClaimedBy,
			})
		}
		if c.Output == "json" {
			return printJSON(g.stdout, outcomes)
		}
		if len(outcomes) == 0 {
			_, err := fmt.Fprintln(g.stdout, "no outcome is unknown")
			return err
		}
		table := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "REQUEST\tSLOT\tHANDED OFF (UTC)\tMESSAGE-ID\tEVIDENCE")
		for _, o := range outcomes {
			fmt.Fprintf(table, "%s\t%s\t%s\t<%s>\t%s\n", plain(o.RequestID), o.Slot, o.HandedOffAt.Format(time.DateTime), o.MessageID, plain(o.Evidence))
		}
		fmt.Fprintln(table, "\nLook for the Message-ID in the mail server's log, then: nudged resolve REQUEST SLOT --sent|--not-sent --why TEXT")
		return table.Flush()
	})
}

type resolveCommand struct {
	RequestID string `arg:"" name:"request-id" help:"The request."`
	Slot      string `arg:"" name:"slot" help:"The slot, such as 3d."`
	Sent      bool   `name:"sent" xor:"fate" required:"" help:"The server accepted it."`
	NotSent   bool   `name:"not-sent" xor:"fate" required:"" help:"The server never accepted it: it may go out again."`
	Link      filled `name:"link" placeholder:"TIME" help:"links.created_at of the link meant, where several have the slot unknown."`
	why
}

// Run implements the subcommand.
func (c *resolveCommand) Run(g *globals) error {
	var link time.Time
	if c.Link != "" {
		var err error
		if link, err = time.Parse(time.RFC3339Nano, string(c.Link)); err != nil {
			return usagef("--link: want a time such as 2026-03-02T10:00:00Z (got %q)", c.Link)
		}
	}
	return g.operate(func(ctx context.Context, store *postgres.Store, _ *config.Config) error {
		if err := store.Resolve(ctx, c.RequestID, c.Slot, link, c.Sent, c.act()); err != nil {
			return err
		}
		fate := "sent"
		if c.NotSent {
			fate = "not sent; it goes out again if it still may"
		}
		_, err := fmt.Fprintf(g.stdout, "slot %s of request %s is settled as %s\n", plain(c.Slot), plain(c.RequestID), fate)
		return err
	})
}

type pauseCommand struct {
	RequestID string `arg:"" name:"request-id" help:"The request."`
	Until     filled `name:"until" placeholder:"TIME" help:"When reminders go on (RFC 3339, or a date in the default zone); without it: until resumed."`
	why
}

// Run implements the subcommand.
func (c *pauseCommand) Run(g *globals) error {
	return g.operate(func(ctx context.Context, store *postgres.Store, cfg *config.Config) error {
		until, err := parseUntil(string(c.Until), cfg.Defaults.TimeZone, time.Now())
		if err != nil {
			return err
		}
		if err := store.Pause(ctx, c.RequestID, until, c.act()); err != nil {
			return err
		}
		what := "until " + scheduler.Local(until, cfg.Defaults.TimeZone)
		if until.Equal(scheduler.Forever()) {
			what = "until resumed"
		}
		_, err = fmt.Fprintf(g.stdout, "request %s is paused %s\n", plain(c.RequestID), what)
		return err
	})
}

// parseUntil reads an instant to come, or a date that stands for its first moment in the zone.
func parseUntil(text string, zone *time.Location, now time.Time) (time.Time, error) {
	if text == "" {
		return scheduler.Forever(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.ParseInLocation(time.DateOnly, text, zone)
	}
	switch {
	case err != nil:
		return t, usagef("--until: want a time such as 2026-03-02T10:00:00Z or a date such as 2026-03-02 (got %q)", text)
	case !t.After(now):
		return t, usagef("--until: want a time to come, and this one is over (got %q)", text)
	}
	return t, nil
}

type resumeCommand struct {
	RequestID string `arg:"" name:"request-id" help:"The request."`
	Why       filled `name:"why" default:"resumed" placeholder:"TEXT" help:"Why; kept with who and when."`
}

// Run implements the subcommand.
func (c *resumeCommand) Run(g *globals) error {
	return g.operate(func(ctx context.Context, store *postgres.Store, _ *config.Config) error {
		changed, err := store.Resume(ctx, c.RequestID, why{c.Why}.act())
		if err != nil {
			return err
		}
		return tell(g, changed, fmt.Sprintf("request %s is resumed: slots that fall due from now on go out", c.RequestID),
			fmt.Sprintf("request %s was not paused: there was nothing to do", c.RequestID))
	})
}

type suppressCommand struct {
	Address string `arg:"" name:"address" help:"The address."`
	why
}

// Run implements the subcommand.
func (c *suppressCommand) Run(g *globals) error {
	if err := bareAddress(c.Address); err != nil {
		return err
	}
	return g.operate(func(ctx context.Context, store *postgres.Store, _ *config.Config) error {
		changed, err := store.Suppress(ctx, c.Address, c.act())
		if err != nil {
			return err
		}
		return tell(g, changed, "the address is suppressed", "the address was suppressed already: there was nothing to do")
	})
}

type unsuppressCommand struct {
	Address string `arg:"" name:"address" help:"The address."`
	Why     filled `name:"why" default:"unsuppressed" placeholder:"TEXT" help:"Why; kept with who and when."`
}

// Run implements the subcommand.
func (c *unsuppressCommand) Run(g *globals) error {
	if err := bareAddress(c.Address); err != nil {
		return err
	}
	return g.operate(func(ctx context.Context, store *postgres.Store, _ *config.Config) error {
		changed, err := store.Unsuppress(ctx, c.Address, why{c.Why}.act())
		if err != nil {
			return err
		}
		return tell(g, changed, "the address may be mailed again", "the address was not suppressed: there was nothing to do")
	})
}

func bareAddress(text string) error {
	if parsed, err := mail.ParseAddress(text); err != nil || parsed.Address != text {
		return usagef("address: want a bare address such as ann@example.com (got %q)", text)
	}
	return nil
}

func tell(g *globals, changed bool, yes, no string) error {
	text := no
	if changed {
		text = yes
	}
	_, err := fmt.Fprintln(g.stdout, plain(text))
	return err
}

type adoptCommand struct {
	Force bool `name:"force" help:"Even where the database is in service for this environment already: for a copy of its files, such as a snapshot."`
	why
}

// Run implements the subcommand.
func (c *adoptCommand) Run(g *globals) error {
	return g.operate(func(ctx context.Context, store *postgres.Store, cfg *config.Config) error {
		adopted, err := store.Readopt(ctx, cfg.Environment, c.Force, c.act())
		if err != nil {
			return err
		}
		if !adopted {
			return fmt.Errorf("nothing is changed: the database is in service for the environment %q already, and to adopt it anew would drop what is due; "+
				"if it is a copy of the server's files, such as a snapshot, say --force", cfg.Environment)
		}
		_, err = fmt.Fprintf(g.stdout, "the database is adopted for the environment %q: slots due until now are not sent, later ones are\n", cfg.Environment)
		return err
	})
}
