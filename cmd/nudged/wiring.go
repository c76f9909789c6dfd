package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/mailer"
	"nudged/scheduler"
)

func (g *globals) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(g.flags.LogLevel)) // kong let only known names through
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: errorsOnOneLine}
	if g.flags.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(g.stderr, options))
	}
	return slog.New(slog.NewTextHandler(g.stderr, options))
}

// load reads the configuration file and checks that what the command needs is there.
func (g *globals) load(needs ...config.Need) (*config.Config, error) {
	return config.Load(g.flags.ConfigFile, g.overrides(needs...), needs...)
}

func (g *globals) overrides(needs ...config.Need) config.Overrides {
	return config.Overrides{
		DatabaseURL: g.flags.DatabaseURL, DatabaseURLFrom: g.databaseFrom,
		WithoutRelay: !slices.Contains(needs, config.NeedMail),
		Checks:       config.Checks{DatabaseURL: postgres.CheckURL, Locale: checkLocale},
	}
}

// checkLocale reports whether there are templates for a default locale. Of a folder that cannot be read,
// whoever reads it tells.
func checkLocale(templates, locale string) error {
	_, err := mailer.Languages(templatesOf(templates), locale)
	if none, ok := errors.AsType[*mailer.LocaleError](err); ok {
		return fmt.Errorf("there are no templates for it, want one of %s, or a folder for it in mail.templates", strings.Join(none.Have, ", "))
	}
	return nil
}

// newStore makes the store. It connects to nothing, so what fails is the URL, of which a file may have changed
// since it was checked.
func newStore(ctx context.Context, cfg *config.Config) (*postgres.Store, error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: cfg.Database.URL.Reveal()})
	if err != nil {
		return nil, usageError{err}
	}
	return store, nil
}

// openStore opens the database for a command that reads or writes facts.
func openStore(ctx context.Context, cfg *config.Config) (*postgres.Store, error) {
	store, err := newStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := store.CheckSchema(ctx); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

func policyOf(cfg *config.Config) *scheduler.Policy {
	return &scheduler.Policy{
		Cadences:       cfg.Cadences,
		DefaultCadence: cfg.Defaults.Cadence,
		DefaultZone:    cfg.Defaults.TimeZone,
		Limits: scheduler.Limits{
			MaxLateness: cfg.Limits.MaxLateness,
			MinGap:      cfg.Limits.MinGap,
			RetryFor:    cfg.Limits.RetryFor,
			Backoff:     scheduler.Backoff{Initial: cfg.Limits.RetryBackoff.Initial, Max: cfg.Limits.RetryBackoff.Max},
			Retention:   cfg.Retention,
		},
		RepeatWithin: repeatWithin(cfg),
		Usable:       mailer.Usable,
		Allowed:      cfg.AllowRecipient,
		AllowList:    cfg.Mail.Recipients.Patterns(),
	}
}

// repeatWithin is the window of the idempotency header, if the relay has one.
func repeatWithin(cfg *config.Config) time.Duration {
	if cfg.SMTP.IdempotencyHeader == "" {
		return 0
	}
	return cfg.SMTP.IdempotencyWindow
}

// templatesOf is the folder of the operator's own templates, or nil.
func templatesOf(folder string) fs.FS {
	if folder == "" {
		return nil
	}
	return config.Folder(folder)
}

func newMailer(cfg *config.Config, reg prometheus.Registerer, log *slog.Logger) (*mailer.Mailer, error) {
	m, err := mailer.New(mailer.Config{
		Host: cfg.SMTP.Host, Port: cfg.SMTP.Port, TLS: mailer.TLSMode(cfg.SMTP.TLS),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.SMTP.RootCAs},
		Username:  cfg.SMTP.Username, Password: cfg.SMTP.Password.Reveal(),
		DialTimeout: cfg.SMTP.DialTimeout, CommandTimeout: cfg.SMTP.CommandTimeout, ReplyTimeout: cfg.SMTP.ReplyTimeout,
		From: cfg.Mail.From, BounceAddress: cfg.Mail.BounceAddress, MessageIDDomain: cfg.Mail.MessageIDDomain,
		Unsubscribe: cfg.Mail.Unsubscribe, NoThread: !cfg.Mail.Thread,
		IdempotencyHeader: cfg.SMTP.IdempotencyHeader, DSN: cfg.SMTP.DSN,
		Locale: cfg.Defaults.Locale, Templates: templatesOf(cfg.Mail.Templates), Registerer: reg, Logger: log,
	})
	if err != nil {
		return nil, usagef("set up the mailer: %w", err)
	}
	return m, nil
}
