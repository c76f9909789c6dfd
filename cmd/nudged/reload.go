package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"nudged/internal/config"
	"nudged/mailer"
)

// mixedRest is how many times as long as a planning took nobody asks whether a replica with another
// configuration has planned since; and mixedTold, how long that is not told again.
const (
	mixedRest = 50
	mixedTold = time.Hour
)

// replans makes open requests be planned anew when the configuration, the zone data or the schema is
// another one than the wakes in the database were planned with: at the start and after a reload, and
// when a replica that still had another one has planned some meanwhile, as in a rolling update.
func (d *daemon) replans(ctx context.Context) {
	var told time.Time
	for {
		begun, fingerprint := time.Now(), d.cfg.Load().Hash+" "+plansBy()
		changed, err := d.store.Replan(ctx, fingerprint)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Error("requests are not planned anew yet", "err", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(databaseRetry):
				continue
			}
		case changed:
			d.loop.Poke()
			if time.Since(told) > mixedTold {
				d.log.Info("open requests are planned anew with this configuration")
			}
		}
		rest := max(time.Second, d.started.Poll.Every, mixedRest*time.Since(begun))
		if d.mixed(ctx, fingerprint, rest) && time.Since(told) > mixedTold {
			told = time.Now()
			d.log.Warn("a replica with another configuration plans requests; they are planned anew until it has gone")
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// mixed waits until a replica with another configuration has planned; false: until ctx ends or a
// reload asks for a planning.
func (d *daemon) mixed(ctx context.Context, fingerprint string, rest time.Duration) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-d.replan:
			return false
		case <-time.After(rest):
		}
		if mixed, err := d.store.Mixed(ctx, fingerprint); err == nil && mixed {
			return true
		}
	}
}

// reload puts the configuration file in place as it is now. A bad one changes nothing.
func (d *daemon) reload(context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	defer d.notify.reloading()()
	cfg, err := d.load()
	if err != nil {
		d.reloads.Failure()
		// A mistake is told with its value, which may be an address; check-config shows it whole.
		d.log.Error("the configuration is not reloaded, the one before stays in force", "err", mailer.MaskAddresses(err.Error()))
		return err
	}
	d.cfg.Store(cfg)
	policy := policyOf(cfg)
	policy.RepeatWithin = repeatWithin(d.started) // the header that the running mailer sends, or none
	d.loop.SetPolicy(policy)
	d.reloads.Success()
	if fixed(cfg) != fixed(d.started) {
		d.log.Warn("changes of environment, database, poll, smtp and mail take effect at the next start; mail.allow_recipients at once")
	}
	select {
	case d.replan <- struct{}{}:
	default:
	}
	d.log.Info("the configuration is reloaded", "config", cfg.Hash, "cadences", names(cfg.Cadences))
	return nil
}

// fixed writes down the settings that a reload does not touch, to compare them. Secrets do not
// print, so a changed password alone is not noticed.
func fixed(cfg *config.Config) string {
	mail := cfg.Mail
	mail.Recipients = config.Recipients{}
	smtp := cfg.SMTP
	smtp.RootCAs = nil
	return fmt.Sprint(cfg.Environment, cfg.Poll, smtp, mail)
}

func (d *daemon) reloadOnSignal(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_ = d.reload(ctx) // it has logged what is wrong
		}
	}
}
