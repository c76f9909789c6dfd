package mailer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	gomail "github.com/wneessen/go-mail"

	"nudged/scheduler"
)

// Mailer composes mails and delivers them. Its methods may be called by several goroutines at
// once; each delivery under way has a connection of its own.
type Mailer struct {
	cfg       Config
	sender    string       // envelope sender
	sets      []*localised // in the order of their locales
	languages atomic.Pointer[languages]
	problems  TemplateProblems // of files that are not used
	client    *gomail.Client
	replies   *replyCounter
	pool      pool
	scratch   sync.Pool // of *buffers
}

var _ scheduler.Mailer = (*Mailer)(nil)

// New checks the configuration, parses the templates and registers the metrics. It opens no
// connection. Templates that cannot be used are logged and left out: they stop no other mail.
func New(cfg Config) (*Mailer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configure mailer: %w", err)
	}
	cfg, sender, err := cfg.resolveAddresses()
	if err != nil {
		return nil, fmt.Errorf("configure mailer: %w", err)
	}
	sets, problems, err := loadTemplates(cfg.Templates)
	if err != nil {
		return nil, err
	}
	standard, err := standing(sets, cfg.Locale)
	if err != nil {
		return nil, err
	}
	for _, problem := range problems {
		cfg.Logger.Error("a file of templates is not used", "err", problem.String())
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	replies, err := newReplyCounter(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics of the mailer: %w", err)
	}
	m := &Mailer{
		cfg: cfg, sender: sender, sets: sets, problems: problems, client: client, replies: replies,
		pool:    pool{idleTimeout: cfg.IdleTimeout, maxAge: cfg.MaxAge, maxMessages: cfg.MaxMessages},
		scratch: sync.Pool{New: func() any { return new(buffers) }},
	}
	m.languages.Store(standard)
	return m, nil
}

// Close retires the idle connections and waits until they are closed. A delivery that is still
// under way closes its connection when it ends.
func (m *Mailer) Close() { m.pool.close() }

// Probe opens a new connection up to AUTH and keeps it for the next delivery. The error says
// plainly what is wrong with the relay, such as "authentication refused: 535 5.7.8 bad password".
func (m *Mailer) Probe(ctx context.Context) error {
	_, err := m.Inspect(ctx)
	return err
}

// Deliver implements scheduler.Mailer. A zero notAfter has passed, like any other old instant.
func (m *Mailer) Deliver(ctx context.Context, msg scheduler.Message, notAfter time.Time) scheduler.Outcome {
	if !safe(msg.From) || !safe(msg.To) {
		return refuseLocally(scheduler.ReasonInvalidAddress, "the envelope has no usable address")
	}
	if time.Now().After(notAfter) {
		return leaseLost()
	}
	if c := m.pool.take(); c != nil {
		result := m.transact(ctx, c, msg, notAfter)
		if !result.stale {
			return result.outcome
		}
		m.cfg.Logger.Debug("replace connection that the relay gave up", "err", result.outcome.SMTPReply)
	}
	c, err := m.dial(ctx)
	if err != nil {
		return unreachable(err)
	}
	return m.transact(ctx, c, msg, notAfter).outcome
}

// unreachable says what a failed dial means: the relay's fault, or nobody's where ctx ended it.
func unreachable(err error) scheduler.Outcome {
	if relay, ok := errors.AsType[*relayError](err); ok {
		return scheduler.Outcome{
			State: scheduler.StateDeferred, Reason: scheduler.ReasonRelayRefused,
			SMTPCode: relay.code, SMTPReply: relay.text, RelayFault: true,
		}
	}
	return interrupted()
}

// interrupted is the outcome of a delivery whose context ended before the final dot.
func interrupted() scheduler.Outcome {
	return scheduler.Outcome{
		State: scheduler.StateDeferred, Reason: scheduler.ReasonShutdown,
		SMTPReply: "stopped before the final dot",
	}
}

// refuseLocally is the outcome of a message that the relay could not take; nothing was sent.
func refuseLocally(reason scheduler.Reason, what string) scheduler.Outcome {
	return scheduler.Outcome{State: scheduler.StateFailed, Reason: reason, SMTPReply: what}
}
