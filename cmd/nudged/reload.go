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

// After a sweep for wakes of another configuration nobody sweeps again for so many times as long as
// it took, while a replica that still has that configuration computes more of them; and what it does
// is not told again for a while.
const (
	sweepRest = 50
	sweepMost = time.Hour
	sweepTold = time.Hour
)

// replans makes requests be planned anew whose wakes were computed with another configuration, zone
// data or schema: at the start, after a reload, and as long as a replica that has another one computes
// some, as in a rolling update or when one is taken back.
func (d *daemon) replans(ctx context.Context) {
	var told time.Time
	var failed string
	for noted := ""; ; {
		cfg, begun := d.cfg.Load(), time.Now()
		n, err := d.store.Replan(ctx, fingerprint(cfg))
		rest := max(sweepEvery(d.started.Poll), min(sweepMost, sweepRest*time.Since(begun)))
		if with := cfg.Hash + " " + plansBy(); err == nil && (n > 0 || with != noted) {
			err, noted = d.store.NotePlan(ctx, with), with
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if err.Error() != failed {
				d.log.Error("requests are not planned anew yet", "err", err)
			}
			failed, noted, rest = err.Error(), "", databaseRetry
		} else {
			failed = ""
		}
		if n > 0 {
			d.loop.Poke()
			if time.Since(told) > sweepTold {
				d.log.Info("requests that were planned with another configuration are planned anew", "count", n)
				told = time.Now()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.replan:
			told = time.Time{}
		case <-time.After(rest):
		}
	}
}

// sweepEvery is how often it is looked for wakes of another configuration: with the poll, or each half
// minute where that goes by cron, and not more than once a second.
func sweepEvery(poll config.Poll) time.Duration {
	if poll.Every == 0 {
		return 30 * time.Second
	}
	return max(time.Second, poll.Every)
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
