package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// relayError says that the relay could not be used: no reminder is to blame.
type relayError struct {
	code int // of the relay's refusal; 0: it said none
	text string
}

func (e *relayError) Error() string { return e.text }

// line is one connection while go-mail opens the conversation on it. go-mail hands back neither
// the socket of a dial that failed nor the step that it failed at, so both are kept here, reached
// through the value of a context.
type line struct {
	net.Conn                 // what go-mail speaks on: the socket, or TLS above it
	ctx      context.Context //nolint:containedctx // the outer one: go-mail ends the one that it gives to connect
	socket   net.Conn        // nil: not connected
	release  func() bool     // stops ctx from closing the socket; false: it has ended
	spoke    atomic.Bool     // a command was written: the greeting had been read
	heard    int             // bytes since the last write
}

// mostHeard bounds what a relay may say at once, in bytes: the answers to a pipelined group, or its part
// of a TLS handshake. RFC 5321 section 4.5.3.1.5 allows 512 for each line.
const mostHeard = 256 << 10

var errTalkative = errors.New("the answer does not end")

type lineKey struct{}

func (l *line) Write(p []byte) (int, error) {
	l.spoke.Store(true)
	l.heard = 0
	return l.Conn.Write(p)
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.heard += n; l.heard > mostHeard {
		return 0, errTalkative
	}
	return n, err
}

// newClient makes the one go-mail client, of which only DialToSMTPClientWithContext is used: it
// alone is safe to call from several goroutines. STARTTLS and AUTH are asked for afterwards on
// the connection itself, so that a failure is known by its step and not by its text.
func newClient(cfg Config) (*gomail.Client, error) {
	client, err := gomail.NewClient(cfg.Host,
		gomail.WithPort(cfg.Port),
		gomail.WithHELO(cfg.HELO),
		gomail.WithTimeout(cfg.DialTimeout),
		gomail.WithTLSPolicy(gomail.NoTLS),
		gomail.WithoutNoop(),
		gomail.WithDialContextFunc(cfg.connect),
	)
	if err != nil {
		return nil, fmt.Errorf("make mail client: %w", err)
	}
	return client, nil
}

// connect opens the socket. It ignores the address that go-mail wrote, which lacks the brackets
// of IPv6, and does the handshake of implicit TLS, because go-mail leaves it out where a dial
// function is given.
func (c Config) connect(ctx context.Context, network, _ string) (net.Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, network, net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if err != nil {
		return nil, err
	}
	l := ctx.Value(lineKey{}).(*line)
	l.Conn, l.socket = socket, socket
	l.release = context.AfterFunc(l.ctx, func() { _ = socket.Close() })
	if c.TLS != TLSImplicit {
		return l, nil
	}
	secured := tls.Client(socket, c.TLSConfig)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	l.Conn = secured
	return l, nil
}

// dial opens a connection as far as a delivery needs it before MAIL. The error is a *relayError,
// or the error of ctx.
func (m *Mailer) dial(ctx context.Context) (*conn, error) {
	budget, cancel := context.WithTimeout(ctx, m.cfg.DialTimeout)
	defer cancel()
	l := &line{ctx: budget}
	client, at, err := m.converse(budget, l)
	if l.socket != nil && !l.release() && err == nil {
		err = budget.Err()
	}
	if err == nil {
		c := m.newConn(client, l.socket)
		c.relay = m.relay(client, l)
		return c, nil
	}
	if l.socket != nil {
		_ = l.socket.Close()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if budget.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", m.cfg.DialTimeout)
	}
	return nil, explain(at, err)
}

// converse speaks up to AUTH, and tells how far it came.
func (m *Mailer) converse(ctx context.Context, l *line) (*smtp.Client, phase, error) {
	client, err := m.client.DialToSMTPClientWithContext(context.WithValue(ctx, lineKey{}, l))
	if !l.spoke.Load() {
		return nil, phaseConnect, m.counted(phaseConnect, 220, err)
	}
	m.replies.count(phaseConnect, 220)
	if m.counted(phaseEHLO, 250, err) != nil {
		return nil, phaseEHLO, err
	}
	if m.cfg.TLS == TLSMandatory || m.cfg.TLS == TLSOpportunistic {
		if err := m.startTLS(client); err != nil {
			return nil, phaseSTARTTLS, err
		}
	}
	if m.cfg.Username != "" {
		if err := m.counted(phaseAUTH, 235, m.authenticate(client)); err != nil {
			return nil, phaseAUTH, err
		}
	}
	return client, phaseAUTH, nil
}

// counted counts an answer: the good code, or the one in the error.
func (m *Mailer) counted(p phase, good int, err error) error {
	if refusal, ok := errors.AsType[*textproto.Error](err); ok {
		good = refusal.Code
	} else if err != nil {
		good = noReply
	}
	m.replies.count(p, good)
	return err
}

func (m *Mailer) startTLS(client *smtp.Client) error {
	if offered, _ := client.Extension("STARTTLS"); !offered {
		if m.cfg.TLS == TLSOpportunistic {
			return nil
		}
		return m.counted(phaseSTARTTLS, noReply, errors.New("the relay does not offer it"))
	}
	return m.counted(phaseSTARTTLS, 220, client.StartTLS(m.cfg.TLSConfig))
}

// authenticate uses PLAIN (RFC 4616) or else LOGIN. go-mail sends neither in clear, except to
// this machine; that a line is TLS from the first byte is more than it can see.
func (m *Mailer) authenticate(client *smtp.Client) error {
	protected := m.cfg.TLS == TLSImplicit
	_, offer := client.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offer))
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		return client.Auth(smtp.PlainAuth("", m.cfg.Username, m.cfg.Password, m.cfg.Host, protected))
	case slices.Contains(mechanisms, "LOGIN"):
		return client.Auth(smtp.LoginAuth(m.cfg.Username, m.cfg.Password, m.cfg.Host, protected))
	default:
		return fmt.Errorf("the relay offers neither PLAIN nor LOGIN but %q", offer)
	}
}

// explain says plainly what is wrong with the relay.
func explain(at phase, err error) *relayError {
	refusal, refused := errors.AsType[*textproto.Error](err)
	switch {
	case refused:
		return &relayError{code: refusal.Code, text: words(fmt.Sprintf("%s refused: %d %s", at, refusal.Code, refusal.Msg))}
	case at == phaseConnect:
		return &relayError{text: words(fmt.Sprintf("cannot connect: %s", err))}
	default:
		return &relayError{text: words(fmt.Sprintf("%s failed: %s", at, err))}
	}
}
