package mailer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// courtesy bounds RSET and QUIT: nothing depends on their answers but the connection itself.
const courtesy = 2 * time.Second

// conn is one connection to the relay, past EHLO, STARTTLS and AUTH. One goroutine uses it at a
// time; only raw.Close may be called by others, and ends whatever is going on.
type conn struct {
	client *smtp.Client
	raw    net.Conn // the socket, below TLS
	count  func(phase, int)

	relay    Relay
	courtesy time.Duration

	pipelining, eightBit, utf8 bool
	declareSize                bool
	dsn                        bool  // failure reports are wanted and offered
	maxSize                    int64 // bytes; 0: no limit known

	out []byte // what a message is encoded into, used again

	born     time.Time
	messages int         // transactions so far
	retire   *time.Timer // runs while it is in the pool
}

func (m *Mailer) newConn(client *smtp.Client, raw net.Conn) *conn {
	c := &conn{
		client: client, raw: raw, count: m.replies.count,
		courtesy: min(courtesy, m.cfg.CommandTimeout), born: time.Now(),
	}
	if m.cfg.DSN {
		c.dsn, _ = client.Extension("DSN")
	}
	c.pipelining, _ = client.Extension("PIPELINING")
	c.eightBit, _ = client.Extension("8BITMIME")
	c.utf8, _ = client.Extension("SMTPUTF8")
	var size string
	if c.declareSize, size = client.Extension("SIZE"); c.declareSize {
		c.maxSize, _ = strconv.ParseInt(size, 10, 64)
	}
	return c
}

// write sends commands, each ended by CRLF, in one go.
func (c *conn) write(commands string, timeout time.Duration) error {
	if err := c.raw.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := c.client.Text.W.WriteString(commands); err != nil {
		return err
	}
	return c.client.Text.W.Flush()
}

// read waits for the answer to one command.
func (c *conn) read(p phase, timeout time.Duration) (reply, error) {
	if err := c.raw.SetDeadline(time.Now().Add(timeout)); err != nil {
		return reply{}, err
	}
	code, text, err := c.client.Text.ReadResponse(0)
	if err != nil {
		c.count(p, noReply)
		return reply{}, err
	}
	c.count(p, code)
	return reply{code, text}, nil
}

// reset ends the open transaction, and reports whether the relay agreed.
func (c *conn) reset() bool {
	if c.write("RSET\r\n", c.courtesy) != nil {
		return false
	}
	_, _, err := c.client.Text.ReadResponse(2)
	return err == nil
}

// quit says goodbye, without insisting on an answer, and closes. It is only for connections that
// are between two messages.
func (c *conn) quit() {
	if c.raw.SetDeadline(time.Now().Add(c.courtesy)) == nil {
		_ = c.client.Quit()
	}
	c.kill()
}

// kill closes the socket and nothing else: no QUIT, because any command would end an open body.
func (c *conn) kill() { _ = c.raw.Close() }

// loss tells in one phrase what became of a connection at a phase.
func loss(p phase, err error, timeout time.Duration) string {
	var protocol textproto.ProtocolError
	switch {
	case p == phaseBody:
		return fmt.Sprintf("connection lost in the body: %s", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("no answer to %s within %s", p, timeout)
	case errors.Is(err, errTalkative):
		return fmt.Sprintf("the answer to %s does not end", p)
	case errors.As(err, &protocol):
		return fmt.Sprintf("unreadable answer to %s: %s", p, string(protocol))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("connection closed before the answer to %s", p)
	default:
		return fmt.Sprintf("connection lost at %s: %s", p, err)
	}
}
