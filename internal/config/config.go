package config

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/mail"
	"path/filepath"
	"time"

	"nudged/cadence"
)

// Config is a whole configuration, checked. It is not changed after loading: a reload makes a new one.
type Config struct {
	File        string // as it was named to Load; empty: there is none
	Hash        string // 12 hex digits over the files read, secrets excepted: equal files, equal hash
	Environment string
	Database    Database
	Poll        Poll
	SMTP        SMTP
	Mail        Mail
	Defaults    Defaults
	Limits      Limits
	Retention   time.Duration
	Cadences    map[string]*cadence.Cadence // holds at least Defaults.Cadence
}

// Database says where the ledger is.
type Database struct {
	URL Secret // postgres://… or keywords (host=… dbname=…); empty: not configured
}

// Poll says how often and how much the loop takes.
type Poll struct {
	Tick
	Batch int           // schedules looked at in one pass, at most
	Lease time.Duration // how long a claim is held without renewal
}

// TLS says how a connection to the relay is protected.
type TLS string

// The protections of a connection to the relay.
const (
	TLSMandatory     TLS = "mandatory"     // STARTTLS, or nothing is sent
	TLSOpportunistic TLS = "opportunistic" // STARTTLS where the relay offers it
	TLSImplicit      TLS = "implicit"      // TLS from the first byte (RFC 8314 section 3)
	TLSNone          TLS = "none"
)

// SMTP says how to talk to the relay.
type SMTP struct {
	Host              string // name or address, without port; empty: not configured
	Port              int
	TLS               TLS
	RootCAs           *x509.CertPool // from smtp.ca_file; nil: those of the system
	Username          string         // empty: no authentication
	Password          Secret
	Connections       int
	Rate              float64 // messages a second over all connections; 0: no limit
	DialTimeout       time.Duration
	CommandTimeout    time.Duration
	ReplyTimeout      time.Duration // for the answer after the final dot
	IdempotencyHeader string        // name of a header field; empty: none
	IdempotencyWindow time.Duration // how long the relay remembers the key
	DSN               bool          // ask for delivery status notifications (RFC 3461)
}

// Mail says what every mail has in common.
type Mail struct {
	From            mail.Address // Address empty: not configured
	BounceAddress   string       // envelope sender; empty: the address of From
	MessageIDDomain string       // A-labels; empty only where From is
	Unsubscribe     string       // https: or mailto: URL, printable ASCII, perhaps with {request_id}; empty: none
	Thread          bool         // all mails of a request are one conversation
	Templates       string       // folder; empty: the built-in ones
	Recipients      Recipients   // who may be mailed
}

// Defaults are for requests that do not say it themselves.
type Defaults struct {
	Cadence  string
	TimeZone *time.Location
	Locale   string // BCP 47
}

// Limits bound what is sent and when.
type Limits struct {
	MaxLateness  time.Duration
	MinGap       time.Duration
	RetryFor     time.Duration
	RetryBackoff Backoff
}

// Backoff is the wait between tries: Initial after the first, growing up to Max.
type Backoff struct {
	Initial, Max time.Duration
}

// Overrides are settings that a flag or the environment gives. They win over the file.
type Overrides struct {
	DatabaseURL     string
	DatabaseURLFrom string // the flag or the variable that gave it: it stands for the key in a mistake
	// WithoutRelay leaves smtp.password_file unread: a command that speaks to no relay works where
	// that secret is not, such as beside a service that is down and has taken it along.
	WithoutRelay bool
	Checks       Checks
}

// Checks are those of values that only another package understands; nil checks nothing. A user reads
// their errors behind the name of the key.
type Checks struct {
	DatabaseURL func(url string) error               // the error must not hold any of the URL that may be secret
	Locale      func(templates, locale string) error // whether a folder, or what is built in, has templates for it
}

// Need is something that some commands cannot do without.
type Need string

// What a command may need beyond a valid configuration.
const (
	NeedDatabase Need = "database"
	NeedMail     Need = "mail"     // a relay, a sender, and NeedLanguage
	NeedLanguage Need = "language" // templates for the default locale
)

// Load reads a configuration file and checks it, and that what is needed is there. An empty path
// means that there is no file: the result is that of Default, with the overrides. The error is
// Mistakes.
func Load(path string, o Overrides, needs ...Need) (*Config, error) {
	c, mistakes := Inspect(path, o, needs...)
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return c, nil
}

// Inspect is Load for whoever goes on to look for more mistakes: the configuration has what could
// be read, and what holds by default in place of the rest. It is nil where nothing could be read.
func Inspect(path string, o Overrides, needs ...Need) (*Config, Mistakes) {
	if path == "" {
		return parse("", nil, o, needs)
	}
	data, err := readFile(path)
	if err != nil {
		return nil, Mistakes{{File: path, Reason: err.Error()}}
	}
	return parse(path, data, o, needs)
}

// Parse checks the text of a configuration file. The name stands in the mistakes, and its folder
// is where relative file names start. The error is Mistakes.
func Parse(name string, data []byte, o Overrides, needs ...Need) (*Config, error) {
	c, mistakes := parse(name, data, o, needs)
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return c, nil
}

func parse(name string, data []byte, o Overrides, needs []Need) (*Config, Mistakes) {
	r := &reader{
		places: places{file: name, of: map[string]place{}}, dir: filepath.Dir(name), sum: sha256.New(),
		withoutRelay: o.WithoutRelay, checks: o.Checks,
	}
	r.sum.Write(data)
	c := standard()
	c.File = name
	node := r.root(data)
	if node == nil && len(r.mistakes) > 0 {
		return nil, r.mistakes // nobody knows which keys are there
	}
	root := r.section("", node)
	r.decode(root, c, o)
	root.finish()
	r.rules(c)
	r.needs(c, needs, o)
	r.mistakes.sort(name)
	c.Hash = hex.EncodeToString(r.sum.Sum(nil))[:12]
	return c, r.mistakes
}

// Default returns the configuration that holds where there is no file.
func Default() *Config {
	c, err := Parse("", nil, Overrides{})
	if err != nil {
		panic(err) // a programming error: the standard values do not fit their own rules
	}
	return c
}
