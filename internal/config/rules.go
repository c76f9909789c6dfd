package config

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// rules checks what no single value shows. A rule about a value that is wrong by itself is left out.
func (r *reader) rules(c *Config) {
	r.smtpRules(c)
	r.mailRules(c)
	r.retentionRule(c)
	if names := slices.Sorted(maps.Keys(c.Cadences)); len(names) > 0 && !slices.Contains(names, c.Defaults.Cadence) && !r.wrong("defaults.cadence") {
		r.mistake("defaults.cadence", "no such cadence, want one of "+strings.Join(names, ", "), c.Defaults.Cadence)
	}
	if b := c.Limits.RetryBackoff; b.Initial > b.Max && !r.wrong("limits.retry_backoff") {
		r.mistake("limits.retry_backoff.initial", "longer than limits.retry_backoff.max, which is "+b.Max.String(), b.Initial.String())
	}
}

// retentionRule keeps the ledger for at least as long as a row of it may still be asked: whether a slot went out that
// is not too late yet, and when the last mail of a link that was replaced did.
func (r *reader) retentionRule(c *Config) {
	key, least := "limits.max_lateness", c.Limits.MaxLateness
	if c.Limits.MinGap > least {
		key, least = "limits.min_gap", c.Limits.MinGap
	}
	if c.Retention < least && !r.wrong("retention") && !r.wrong(key) {
		r.mistake("retention", "shorter than "+key+", which is "+least.String(), c.Retention.String())
	}
}

func (r *reader) smtpRules(c *Config) {
	s := c.SMTP
	switch {
	case r.withoutRelay || r.wrong("smtp.username") || r.wrong("smtp.password_file"):
	case s.Username != "" && s.Password.Empty():
		r.mistake("smtp.password_file", "needed with smtp.username, want the name of a file", "")
	case s.Username == "" && !s.Password.Empty():
		r.mistake("smtp.username", "needed with smtp.password_file", "")
	}
	if s.TLS == TLSNone && s.Username != "" && !loopback(s.Host) && !r.wrong("smtp.host") {
		r.mistake("smtp.tls", "with smtp.username the password would travel in the clear, want mandatory or implicit, or a smtp.host on loopback", string(s.TLS))
	}
}

// loopback reports whether what is sent to a host stays on this machine.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// mailRules derives the domain of the Message-ID, which must not change from mail to mail.
func (r *reader) mailRules(c *Config) {
	m := &c.Mail
	if m.MessageIDDomain != "" || m.From.Address == "" || r.wrong("mail.message_id_domain") {
		return
	}
	ascii, err := domain(domainOf(m.From.Address))
	if err != nil {
		r.mistake("mail.message_id_domain", "needed where mail.from has no domain name, want a domain name", "")
	}
	m.MessageIDDomain = ascii
}

// needs checks that what a command cannot do without is there. A key that is wrong by itself, or that
// lies in a section that is, is left out.
func (r *reader) needs(c *Config, needs []Need, o Overrides) {
	want := func(key string, empty bool, reason string) {
		section, _, _ := strings.Cut(key, ".")
		if empty && !r.wrong(key) && !r.mistakes.exactly(section) {
			r.add(r.find(key), key, "needed here: "+reason, quote(""))
		}
	}
	for _, need := range needs {
		switch need {
		case NeedDatabase:
			empty := c.Database.URL.Empty() && !r.wrong("database.url_file") && o.DatabaseURL == ""
			want("database.url", empty, "set it, database.url_file, --database.url or NUDGED_DATABASE_URL")
		case NeedMail:
			want("smtp.host", c.SMTP.Host == "", "want the name of the relay")
			want("mail.from", c.Mail.From.Address == "", "want the address that mail comes from")
			r.language(c)
		case NeedLanguage:
			r.language(c)
		}
	}
}

// language checks that mails can be written where a request names no language.
func (r *reader) language(c *Config) {
	if r.checks.Locale == nil || r.wrong("defaults.locale") || r.wrong("mail.templates") {
		return
	}
	if err := r.checks.Locale(c.Mail.Templates, c.Defaults.Locale); err != nil {
		r.mistake("defaults.locale", err.Error(), c.Defaults.Locale)
	}
}
