package mailer

import (
	"context"
	"crypto/tls"

	"github.com/wneessen/go-mail/smtp"
)

// Relay is what a connection to the relay is like.
type Relay struct {
	Address       string // IP address and port that answered
	TLS           string // version, such as "TLS 1.3"; empty: in clear
	Authenticated bool
}

// Inspect does what Probe does, and tells what the connection is like.
func (m *Mailer) Inspect(ctx context.Context) (Relay, error) {
	c, err := m.dial(ctx)
	if err != nil {
		return Relay{}, err
	}
	relay := c.relay
	m.pool.put(c)
	return relay, nil
}

func (m *Mailer) relay(client *smtp.Client, l *line) Relay {
	relay := Relay{Address: l.socket.RemoteAddr().String(), Authenticated: m.cfg.Username != ""}
	if secured, ok := l.Conn.(*tls.Conn); ok { // from the first byte
		relay.TLS = tls.VersionName(secured.ConnectionState().Version)
	} else if state, ok := client.TLSConnectionState(); ok {
		relay.TLS = tls.VersionName(state.Version)
	}
	return relay
}
