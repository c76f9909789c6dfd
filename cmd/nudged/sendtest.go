package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"nudged/cadence"
	"nudged/internal/config"
	"nudged/mailer"
	"nudged/scheduler"
)

type sendTestCommand struct {
	Address string `arg:"" name:"address" help:"Who gets the sample."`
	Output  string `name:"output" enum:"table,json" default:"table" help:"table or json."`
}

// sendTest is the stable JSON of send-test.
type sendTest struct {
	Accepted      bool             `json:"accepted"`
	State         scheduler.State  `json:"state"`
	Reason        scheduler.Reason `json:"reason,omitempty"`
	Relay         string           `json:"relay"` // as it is configured, with port
	Address       string           `json:"address,omitempty"`
	TLS           string           `json:"tls,omitempty"`
	Authenticated bool             `json:"authenticated"`
	SMTPCode      int              `json:"smtp_code,omitempty"`
	SMTPReply     string           `json:"smtp_reply,omitempty"`
	MessageID     string           `json:"message_id"`
}

// errNotAccepted ends the command after its report.
var (
	errNotAccepted = errors.New("the sample was not accepted")
	errInDoubt     = errors.New("whether the sample was accepted is not known")
)

// sendTestLimit bounds the whole conversation but for the answer to the final dot, which has a time
// limit of its own.
const sendTestLimit = 5 * time.Minute

// Run implements the subcommand.
func (c *sendTestCommand) Run(g *globals) error {
	if err := bareAddress(c.Address); err != nil {
		return err
	}
	cfg, err := g.load(config.NeedMail)
	if err != nil {
		return err
	}
	if !cfg.AllowRecipient(c.Address) {
		return errors.New("nothing is sent: " + scheduler.ReasonNotAllowed.Words())
	}
	m, err := newMailer(cfg, nil, g.logger())
	if err != nil {
		return err
	}
	defer m.Close()
	report, err := c.send(g, m)
	if err != nil {
		return err
	}
	report.Relay = fmt.Sprintf("%s:%d", cfg.SMTP.Host, cfg.SMTP.Port)
	if c.Output == "json" {
		err = printJSON(g.stdout, report)
	} else {
		_, err = fmt.Fprint(g.stdout, report.words())
	}
	switch {
	case err != nil || report.Accepted:
		return err
	case report.State == scheduler.StateUnknown:
		return errInDoubt
	default:
		return errNotAccepted
	}
}

// send composes the sample and speaks to the relay.
func (c *sendTestCommand) send(g *globals, m *mailer.Mailer) (sendTest, error) {
	msg, err := m.Compose(sampleTask(c.Address, time.Now()))
	if err != nil {
		return sendTest{}, err
	}
	report := sendTest{MessageID: msg.MessageID}
	relay, err := m.Inspect(g.ctx)
	if err != nil {
		report.State, report.Reason, report.SMTPReply = scheduler.StateDeferred, scheduler.ReasonRelayRefused, err.Error()
		return report, nil //nolint:nilerr // it is what the command reports
	}
	report.Address, report.TLS, report.Authenticated = relay.Address, relay.TLS, relay.Authenticated
	outcome := m.Deliver(g.ctx, msg, time.Now().Add(sendTestLimit))
	report.Accepted = outcome.State == scheduler.StateSent
	report.State, report.Reason = outcome.State, outcome.Reason
	report.SMTPCode, report.SMTPReply = outcome.SMTPCode, outcome.SMTPReply
	return report, nil
}

// sampleTask is a made-up reminder that belongs to no request. The link tells one sample from the
// next, so that no server takes it for a repetition.
func sampleTask(to string, now time.Time) scheduler.Task {
	const day = 24 * time.Hour
	now = now.UTC()
	return scheduler.Task{
		Request: scheduler.Request{
			ID: "nudged send-test", RecipientEmail: to, Title: "nudged send-test",
			Message:  "This is a sample, sent by hand with nudged send-test. Nobody asks you for anything.",
			Deadline: cadence.DateOf(now.Add(7 * day)),
		},
		Link: scheduler.Link{URL: "https://example.com/", CreatedAt: now, ExpiresAt: now.Add(14 * day)},
		Documents: []scheduler.Document{
			{Title: "Sample document", Required: true, State: scheduler.DocumentMissing},
		},
		Slot: cadence.Slot{Name: "3d", Due: now.Truncate(time.Second)}, Attempt: 1, Number: 1, Zone: time.UTC,
	}
}

// words tell the conversation line by line.
func (r sendTest) words() string {
	var b strings.Builder
	if r.Address != "" {
		protection, login := "in the clear, without TLS", "without a login"
		if r.TLS != "" {
			protection = "protected by " + r.TLS
		}
		if r.Authenticated {
			login = "logged in"
		}
		fmt.Fprintf(&b, "connected to %s (%s), %s, %s\n", r.Relay, r.Address, protection, login)
	} else {
		fmt.Fprintf(&b, "no conversation with %s\n", r.Relay)
	}
	reply := r.SMTPReply
	if r.SMTPCode != 0 {
		reply = fmt.Sprintf("%d %s", r.SMTPCode, r.SMTPReply)
	}
	switch {
	case r.Accepted:
		fmt.Fprintf(&b, "accepted by %s, which said: %s\n", r.Relay, reply)
	case r.State == scheduler.StateUnknown:
		fmt.Fprintf(&b, "unknown: %s; what happened: %s\n", r.Reason.Words(), reply)
	default:
		fmt.Fprintf(&b, "not accepted: %s; what happened: %s\n", r.Reason.Words(), reply)
	}
	fmt.Fprintf(&b, "Message-ID: <%s>\n", r.MessageID)
	return b.String()
}
