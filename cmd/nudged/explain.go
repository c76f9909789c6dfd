package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/scheduler"
)

type explainCommand struct {
	RequestID string `arg:"" name:"request-id" help:"The request."`
	Count     int    `name:"count" default:"5" help:"How many slots to come to print, at most."`
	Output    string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// explanation is the stable JSON of explain.
type explanation struct {
	RequestID string           `json:"request_id"`
	Answer    string           `json:"answer"`
	Status    string           `json:"status,omitempty"`
	Zone      string           `json:"zone"`
	Cadence   string           `json:"cadence,omitempty"`
	Problem   string           `json:"problem,omitempty"`
	Slots     []explainedSlot  `json:"slots"`
	Next      []plannedSlot    `json:"next"`
	Events    []postgres.Event `json:"events"`
}

// explainedSlot is one row of the ledger. Instants are UTC; Local ones carry the offset.
type explainedSlot struct {
	Slot          string           `json:"slot"`
	LinkCreatedAt time.Time        `json:"link_created_at"`
	Due           time.Time        `json:"due"`
	DueLocal      string           `json:"due_local"`
	State         scheduler.State  `json:"state"`
	Reason        scheduler.Reason `json:"reason,omitempty"`
	Because       string           `json:"because,omitempty"`
	Attempts      int              `json:"attempts"`
	HandedOffAt   time.Time        `json:"handed_off_at,omitzero"`
	FinishedAt    time.Time        `json:"finished_at,omitzero"`
	RetryAt       time.Time        `json:"retry_at,omitzero"`
	MessageID     string           `json:"message_id,omitempty"`
	SMTPCode      int              `json:"smtp_code,omitempty"`
	SMTPReply     string           `json:"smtp_reply,omitempty"`
}

// Run implements the subcommand.
func (c *explainCommand) Run(g *globals) error {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		return err
	}
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	in, _, err := store.Load(g.ctx, c.RequestID)
	if err != nil {
		return err
	}
	if in.Request == nil && len(in.Reminders) == 0 {
		return fmt.Errorf("there is no request %q", c.RequestID)
	}
	e := explanationOf(policyOf(cfg).Explain(in, c.Count))
	if e.Events, err = store.Events(g.ctx, c.RequestID); err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(g.stdout, e)
	}
	return e.print(g.stdout)
}

func explanationOf(e scheduler.Explanation) explanation {
	zone := zoneOf(e)
	out := explanation{
		RequestID: e.Input.RequestID, Answer: e.Sentence, Zone: zone.String(), Problem: string(e.Problem),
		Slots: []explainedSlot{}, Next: []plannedSlot{},
	}
	if e.Input.Request != nil {
		out.Status = string(e.Input.Request.Status)
	}
	if e.Series.Cadence != nil {
		out.Cadence = e.Series.Cadence.Name()
	}
	for _, r := range e.Past {
		s := explainedSlot{
			Slot: r.Slot, LinkCreatedAt: r.LinkCreatedAt, Due: r.DueAt, DueLocal: r.DueAt.In(zone).Format(time.RFC3339),
			State: r.State, Reason: r.Reason, Attempts: r.Attempt, HandedOffAt: r.HandedOffAt, FinishedAt: r.FinishedAt,
			RetryAt: r.RetryAt, MessageID: r.MessageID, SMTPCode: r.SMTPCode, SMTPReply: r.SMTPReply,
		}
		if r.Reason != "" {
			s.Because = r.Reason.Words()
		}
		out.Slots = append(out.Slots, s)
	}
	for _, slot := range e.Next {
		out.Next = append(out.Next, planned(slot, zone))
	}
	return out
}

func (e explanation) print(w io.Writer) error {
	fmt.Fprintln(w, e.Answer)
	if e.Problem != "" {
		fmt.Fprintf(w, "Attention: the request's row has a mistake (%s).\n", e.Problem)
	}
	if len(e.Slots) > 0 {
		fmt.Fprintf(w, "\nWhat happened (times of %s):\n", e.Zone)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  SLOT\tDUE\tFATE\tWHEN\tWHY")
		for _, s := range e.Slots {
			when := s.FinishedAt
			if when.IsZero() {
				when = s.HandedOffAt
			}
			at := ""
			if !when.IsZero() {
				at = inZone(when, s.DueLocal)
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", s.Slot, s.DueLocal, s.State, at, s.evidence())
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(e.Events) > 0 {
		fmt.Fprintln(w, "\nWhat people did:")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, event := range e.Events {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", event.At.Format(time.RFC3339),
				strings.TrimSpace(event.Action+" "+event.Slot+" "+event.Detail), event.Actor, event.Why)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(e.Next) > 0 {
		fmt.Fprintln(w, "\nWhat comes next:")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, s := range e.Next {
			fmt.Fprintf(table, "  %s\t%s\n", s.Slot, s.Local)
		}
		return table.Flush()
	}
	return nil
}

// inZone writes an instant with the offset of another one, which is in the request's zone.
func inZone(t time.Time, like string) string {
	other, err := time.Parse(time.RFC3339, like)
	if err != nil {
		return t.Format(time.RFC3339)
	}
	return t.In(other.Location()).Format(time.RFC3339)
}

// evidence is the reason in plain words, and what the server said or else what went wrong here.
func (s explainedSlot) evidence() string {
	detail := s.SMTPReply
	if s.SMTPCode != 0 {
		detail = fmt.Sprintf("the server said: %d %s", s.SMTPCode, s.SMTPReply)
	}
	if s.Because == "" || detail == "" {
		return s.Because + detail
	}
	return s.Because + "; " + detail
}
