package mailer

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/mail"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TLSMode says how the connection is protected.
type TLSMode string

// The modes. Mandatory is the default.
const (
	TLSMandatory     TLSMode = "mandatory"     // STARTTLS or nothing
	TLSOpportunistic TLSMode = "opportunistic" // STARTTLS where it is offered
	TLSImplicit      TLSMode = "implicit"      // TLS from the first byte (RFC 8314)
	TLSNone          TLSMode = "none"          // in clear
)

// Config is what New needs. Zero durations and numbers mean the default given.
type Config struct {
	Host      string      // name or IP address of the relay, IPv6 with or without brackets
	Port      int         // 587; 465 where TLS is implicit
	TLS       TLSMode     // mandatory
	TLSConfig *tls.Config // nil: TLS 1.2 or newer, the system's authorities
	Username  string      // empty: no authentication
	Password  string
	HELO      string // name that the daemon gives itself; empty: MessageIDDomain

	DialTimeout    time.Duration // 15s: from the first packet to the answer to AUTH
	CommandTimeout time.Duration // 60s: for the answer to each of MAIL, RCPT, DATA, and to send the body, on top of its size
	ReplyTimeout   time.Duration // 10m: for the answer to the final dot (RFC 5321 section 4.5.3.2.6)
	IdleTimeout    time.Duration // 8s: an idle connection is retired after this long
	MaxAge         time.Duration // 5m: a connection is retired when this old
	MaxMessages    int           // 100: a connection is retired after this many messages

	From              mail.Address // header From; its address is the envelope sender too
	BounceAddress     string       // envelope sender; empty: the address of From
	MessageIDDomain   string       // right side of Message-ID; empty: the domain of From
	Unsubscribe       string       // https or mailto URL for List-Unsubscribe (RFC 2369), see unsubscribe; empty: no such header
	NoThread          bool         // each mail of a request stands alone instead of in one thread with the others
	IdempotencyHeader string       // name of a header that carries the idempotency key; empty: none
	DSN               bool         // ask relays that offer it for reports of failures only, without the content (RFC 3461)

	Locale    string // en: BCP 47 tag for recipients without one, or with one that is near no language of the templates
	Templates fs.FS  // files that take the place of built-in ones, see docs/templates.md; nil: none

	Registerer prometheus.Registerer // nil: no metrics
	Logger     *slog.Logger          // nil: no logs
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	c.Host = strings.TrimSuffix(strings.TrimPrefix(c.Host, "["), "]")
	c.TLS = cmp.Or(c.TLS, TLSMandatory)
	if c.TLS == TLSImplicit {
		c.Port = cmp.Or(c.Port, 465)
	}
	c.Port = cmp.Or(c.Port, 587)
	c.DialTimeout = cmp.Or(c.DialTimeout, 15*time.Second)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, time.Minute)
	c.ReplyTimeout = cmp.Or(c.ReplyTimeout, 10*time.Minute)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 8*time.Second)
	c.MaxAge = cmp.Or(c.MaxAge, 5*time.Minute)
	c.MaxMessages = cmp.Or(c.MaxMessages, 100)
	c.Locale = cmp.Or(c.Locale, "en")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.TLSConfig = c.tlsConfig()
	return c
}

func (c Config) tlsConfig() *tls.Config {
	own := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSConfig != nil {
		own = c.TLSConfig.Clone()
	}
	own.ServerName = cmp.Or(own.ServerName, c.Host)
	return own
}

// check returns every mistake, one a line.
func (c Config) check() error {
	var mistakes []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Host == "", "host is empty")
	wrong(c.Port < 1 || c.Port > 65535, "port %d is not between 1 and 65535", c.Port)
	switch c.TLS {
	case TLSMandatory, TLSOpportunistic, TLSImplicit:
	case TLSNone:
		wrong(c.Username != "" && !loopback(c.Host), "tls %q would send the password to %s in clear", c.TLS, c.Host)
	default:
		wrong(true, "tls %q is not mandatory, opportunistic, implicit or none", c.TLS)
	}
	for name, d := range map[string]time.Duration{
		"dial timeout": c.DialTimeout, "command timeout": c.CommandTimeout, "reply timeout": c.ReplyTimeout,
		"idle timeout": c.IdleTimeout, "max age": c.MaxAge,
	} {
		wrong(d < 0, "%s %s is negative", name, d)
	}
	wrong(c.MaxMessages < 0, "max messages %d is negative", c.MaxMessages)
	wrong(c.Unsubscribe != "" && !printable(c.Unsubscribe), "unsubscribe %q is not a URL in printable ASCII", c.Unsubscribe)
	wrong(c.IdempotencyHeader != "" && !fieldName(c.IdempotencyHeader), "idempotency header %q is not the name of a header", c.IdempotencyHeader)
	return errors.Join(mistakes...)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// printable tells whether a URL can stand between angle brackets in a header.
func printable(url string) bool {
	return !strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' })
}

// fieldName tells whether this is the name of a header (RFC 5322 section 2.2).
func fieldName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' })
}

// resolveAddresses writes every domain in A-labels and fills in what follows from From. It also
// returns the envelope sender.
func (c Config) resolveAddresses() (Config, string, error) {
	from, err := parseAddress(c.From.String())
	if err != nil {
		return c, "", fmt.Errorf("from: %w", err)
	}
	sender := from.Address
	if c.BounceAddress != "" {
		if sender, err = parseRecipient(c.BounceAddress); err != nil {
			return c, "", fmt.Errorf("bounce address: %w", err)
		}
	}
	if !ascii(from.Address) || !ascii(sender) {
		return c, "", errors.New("from and bounce address need a local part in ASCII")
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	if c.MessageIDDomain != "" {
		probe, err := parseRecipient("id@" + c.MessageIDDomain)
		if err != nil {
			return c, "", fmt.Errorf("message id domain: %w", err)
		}
		domain = strings.TrimPrefix(probe, "id@")
	}
	c.From, c.MessageIDDomain, c.HELO = from, domain, cmp.Or(c.HELO, domain)
	return c, sender, nil
}
