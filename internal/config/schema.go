package config

import (
	"cmp"
	"time"

	"nudged/cadence"
)

// standard returns the values that hold where a key is absent. Cadences are not among them: the
// built-in one stands in only where the file names none.
func standard() *Config {
	return &Config{
		Environment: "production",
		Poll:        Poll{Tick: Tick{Every: 30 * time.Second}, Batch: 500, Lease: 5 * time.Minute},
		SMTP: SMTP{
			Port:              587,
			TLS:               TLSMandatory,
			Connections:       8,
			Rate:              50,
			DialTimeout:       15 * time.Second,
			CommandTimeout:    time.Minute,
			ReplyTimeout:      10 * time.Minute,
			IdempotencyWindow: 20 * time.Hour,
		},
		Mail:     Mail{Thread: true},
		Defaults: Defaults{Cadence: "default", TimeZone: time.UTC, Locale: "en"},
		Limits: Limits{
			MaxLateness:  48 * time.Hour,
			MinGap:       time.Hour,
			RetryFor:     24 * time.Hour,
			RetryBackoff: Backoff{Initial: time.Minute, Max: time.Hour},
		},
		Retention: 400 * day,
		Cadences:  map[string]*cadence.Cadence{},
	}
}

// decode walks the whole file. Each key is named here, or in a function called from here, once.
func (r *reader) decode(root *section, c *Config, o Overrides) {
	scalar(root, "environment", &c.Environment, word)
	r.database(root.sub("database"), &c.Database, o)
	r.poll(root.sub("poll"), &c.Poll)
	r.smtp(root.sub("smtp"), &c.SMTP)
	r.mail(root.sub("mail"), &c.Mail)
	r.defaults(root.sub("defaults"), &c.Defaults)
	r.limits(root.sub("limits"), &c.Limits)
	scalar(root, "retention", &c.Retention, duration(time.Second))
	r.cadences(root.sub("cadences"), c)
}

func (r *reader) database(s *section, c *Database, o Overrides) {
	read := optional(r.databaseURLFile)
	override, err := optional(r.databaseURL)(o.DatabaseURL)
	if err != nil {
		r.add(place{}, o.DatabaseURLFrom, err.Error(), quote(hidden))
	}
	if o.DatabaseURL != "" {
		read = unread // the file may be absent where somebody gives the URL by hand
	}
	var inline, file Secret
	scalar(s, "url", &inline, optional(r.databaseURL))
	scalar(s, "url_file", &file, read)
	if !inline.Empty() && !file.Empty() {
		r.mistake("database.url_file", "given together with database.url, want one of them", "")
	}
	c.URL = cmp.Or(override, inline, file)
	s.finish()
}

func (r *reader) poll(s *section, c *Poll) {
	scalar(s, "every", &c.Tick, tick)
	scalar(s, "batch", &c.Batch, integer(1, 10_000))
	scalar(s, "lease", &c.Lease, duration(time.Second))
	s.finish()
}

func (r *reader) smtp(s *section, c *SMTP) {
	password := optional(r.secretFile)
	if r.withoutRelay {
		password = unread
	}
	scalar(s, "host", &c.Host, optional(host))
	scalar(s, "port", &c.Port, integer(1, 65_535))
	scalar(s, "tls", &c.TLS, oneOf(TLSMandatory, TLSOpportunistic, TLSImplicit, TLSNone))
	scalar(s, "ca_file", &c.RootCAs, optional(r.certificates))
	scalar(s, "username", &c.Username, line)
	scalar(s, "password_file", &c.Password, password)
	scalar(s, "connections", &c.Connections, integer(1, 1000))
	scalar(s, "rate", &c.Rate, rate)
	scalar(s, "dial_timeout", &c.DialTimeout, duration(time.Millisecond))
	scalar(s, "command_timeout", &c.CommandTimeout, duration(time.Millisecond))
	scalar(s, "reply_timeout", &c.ReplyTimeout, duration(time.Millisecond))
	scalar(s, "idempotency_header", &c.IdempotencyHeader, optional(headerName))
	scalar(s, "idempotency_window", &c.IdempotencyWindow, duration(time.Second))
	scalar(s, "dsn", &c.DSN, boolean)
	s.finish()
}

func (r *reader) mail(s *section, c *Mail) {
	scalar(s, "from", &c.From, optional(mailbox))
	scalar(s, "bounce_address", &c.BounceAddress, optional(bareAddress))
	scalar(s, "message_id_domain", &c.MessageIDDomain, optional(domain))
	scalar(s, "unsubscribe", &c.Unsubscribe, optional(unsubscribe))
	scalar(s, "thread", &c.Thread, boolean)
	scalar(s, "templates", &c.Templates, optional(r.folder))
	r.recipients(s, "allow_recipients", &c.Recipients)
	s.finish()
}

func (r *reader) defaults(s *section, c *Defaults) {
	scalar(s, "cadence", &c.Cadence, word)
	scalar(s, "time_zone", &c.TimeZone, timeZone)
	scalar(s, "locale", &c.Locale, locale)
	s.finish()
}

func (r *reader) limits(s *section, c *Limits) {
	scalar(s, "max_lateness", &c.MaxLateness, duration(time.Second))
	scalar(s, "min_gap", &c.MinGap, zeroOr(time.Second))
	scalar(s, "retry_for", &c.RetryFor, duration(time.Second))
	backoff := s.sub("retry_backoff")
	scalar(backoff, "initial", &c.RetryBackoff.Initial, duration(time.Millisecond))
	scalar(backoff, "max", &c.RetryBackoff.Max, duration(time.Millisecond))
	backoff.finish()
	s.finish()
}
