package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"nudged/internal/config"
	"nudged/internal/postgres"
	"nudged/mailer"
	"nudged/scheduler"
)

// shadow plans and tells in the log what it would send. It sends nothing and writes nothing: not
// to the ledger, not to the schedules, not even that it was there.
type shadow struct {
	log    *slog.Logger
	store  *postgres.Store
	policy *scheduler.Policy
	want   string // environment of the configuration
	said   string // why a daemon would send nothing here; empty: it would send
	told   map[shadowed]bool
}

// shadowed is one slot that was told.
type shadowed struct {
	request, slot string
	link          time.Time
}

// runShadow implements run --shadow.
func (c *runCommand) runShadow(g *globals) error {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		return err
	}
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	s := &shadow{log: g.logger(), store: store, policy: policyOf(cfg), want: cfg.Environment, told: map[shadowed]bool{}}
	every := cfg.Poll.Every
	if every == 0 {
		every = time.Minute // a cron expression says when to send; looking may be more often
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s.log.Info("nudged shadows: it tells what it would send, sends nothing and writes nothing", "environment", cfg.Environment)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failed := ""; ; {
		switch err := s.look(g.ctx); {
		case err == nil:
			failed = ""
		case !errors.Is(err, context.Canceled) && err.Error() != failed:
			failed = err.Error()
			s.log.Error("not all open requests can be read now; the same failure is not logged again", "err", err)
		}
		select {
		case <-g.ctx.Done():
			s.log.Info("nudged has stopped", "signal", signalOf(g.ctx))
			return nil
		case <-hangups:
			s.reload(g)
		case <-tick.C:
		}
	}
}

// reload takes another policy from the file as it is now. A bad one changes nothing.
func (s *shadow) reload(g *globals) {
	cfg, err := g.load(config.NeedDatabase)
	if err != nil {
		s.log.Error("the configuration is not reloaded, the one before stays in force", "err", mailer.MaskAddresses(err.Error()))
		return
	}
	s.policy = policyOf(cfg)
	s.log.Info("the configuration is reloaded", "config", cfg.Hash, "cadences", names(cfg.Cadences))
}

// look walks the open requests once and tells each slot that it would send, the first time.
func (s *shadow) look(ctx context.Context) error {
	if err := s.warn(ctx); err != nil {
		return err
	}
	return s.store.EachOpen(ctx, func(in scheduler.Input) error {
		claim := s.policy.Plan(in).Claim
		if claim == nil {
			return nil
		}
		key := shadowed{in.RequestID, claim.Slot.Name, in.Link.CreatedAt}
		if !s.told[key] {
			s.told[key] = true
			s.log.Info("would send", "request_id", in.RequestID, "slot", claim.Slot.Name,
				"link_created_at", in.Link.CreatedAt, "attempt", claim.Attempt)
		}
		return nil
	})
}

// warn tells, each time that it changes, that a daemon would send nothing on this database: what is told
// goes by the adoption before, and the next one ends what is due by then.
func (s *shadow) warn(ctx context.Context) error {
	installed, err := s.store.Installation(ctx)
	if err != nil {
		return err
	}
	refusal := installed.Refusal(s.want)
	switch {
	case refusal == nil:
		s.said = ""
	case refusal.Error() != s.said:
		s.said = refusal.Error()
		s.log.Warn("a daemon would send nothing here; told is what it would send if the database were in service, and slots that are due when it is adopted are not sent either", "err", refusal)
	}
	return nil
}
