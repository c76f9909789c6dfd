package main

import "nudged/internal/config"

// fixed names the keys that a reload leaves alone and whose values differ between what the daemon was started
// with and what the file says now. A URL of the database may come from several keys: it is called by its section.
func fixed(started, now *config.Config) []string {
	var keys []string
	note := func(key string, same bool) {
		if !same {
			keys = append(keys, key)
		}
	}
	note("environment", started.Environment == now.Environment)
	note("database", started.Database.URL.Reveal() == now.Database.URL.Reveal())
	note("poll.every", started.Poll.Tick == now.Poll.Tick)
	note("poll.batch", started.Poll.Batch == now.Poll.Batch)
	note("poll.lease", started.Poll.Lease == now.Poll.Lease)
	fixedSMTP(started.SMTP, now.SMTP, note)
	fixedMail(started.Mail, now.Mail, note)
	return keys
}

func fixedSMTP(started, now config.SMTP, note func(key string, same bool)) {
	note("smtp.host", started.Host == now.Host)
	note("smtp.port", started.Port == now.Port)
	note("smtp.tls", started.TLS == now.TLS)
	note("smtp.ca_file", started.RootCAs.Equal(now.RootCAs))
	note("smtp.username", started.Username == now.Username)
	note("smtp.password_file", started.Password.Reveal() == now.Password.Reveal())
	note("smtp.connections", started.Connections == now.Connections)
	note("smtp.rate", started.Rate == now.Rate)
	note("smtp.dial_timeout", started.DialTimeout == now.DialTimeout)
	note("smtp.command_timeout", started.CommandTimeout == now.CommandTimeout)
	note("smtp.reply_timeout", started.ReplyTimeout == now.ReplyTimeout)
	note("smtp.idempotency_header", started.IdempotencyHeader == now.IdempotencyHeader)
	note("smtp.idempotency_window", started.IdempotencyWindow == now.IdempotencyWindow)
	note("smtp.dsn", started.DSN == now.DSN)
}

func fixedMail(started, now config.Mail, note func(key string, same bool)) {
	note("mail.from", started.From == now.From)
	note("mail.bounce_address", started.BounceAddress == now.BounceAddress)
	note("mail.message_id_domain", started.MessageIDDomain == now.MessageIDDomain)
	note("mail.unsubscribe", started.Unsubscribe == now.Unsubscribe)
	note("mail.thread", started.Thread == now.Thread)
	note("mail.templates", started.Templates == now.Templates)
}
