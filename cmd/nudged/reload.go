package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"nudged/internal/config"
	"nudged/mailer"
	"nudged/scheduler"
)

// While a replica with another configuration plans too, the rests between two sweeps double, up to
// sweepMost: what it leaves behind waits no longer than the two were at work together. What a sweep did is
// not told again for a while.
const (
	sweepMost = time.Hour
	sweepTold = time.Hour
)

// replans makes requests be planned anew whose wakes were computed with another configuration, zone
// data or schema: at the start, after a reload, and as long as a replica that has another one computes
// some, as in a rolling update or when one is taken back.
func (d *daemon) replans(ctx context.Context) {
	least := sweepEvery(d.started.Poll)
	var told time.Time
	var failed string
	for rest := least; ; {
		n, err := d.sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := rest
		switch {
		case err != nil:
			wait = databaseRetry
			if err.Error() != failed {
				d.log.Error("requests are not planned anew yet", "err", err)
			}
			failed = err.Error()
		case n == 0:
			rest, wait, failed = least, least, ""
		default:
			rest, failed = min(2*rest, sweepMost), ""
		}
		if n > 0 && time.Since(told) > sweepTold {
			d.log.Info("requests that were planned with another configuration are planned anew", "count", n)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-d.replan:
			rest, told = least, time.Time{}
		case <-time.After(wait):
		}
	}
}

// sweep makes requests be planned anew that were planned with another configuration than the present
// one, and returns how many.
func (d *daemon) sweep(ctx context.Context) (int, error) {
	cfg := d.cfg.Load()
	n, err := d.store.Replan(ctx, d.zones.fingerprint(cfg, repeatWithin(d.started)))
	if n > 0 {
		d.loop.Poke()
	}
	if err != nil {
		return n, err
	}
	return n, d.store.NotePlan(ctx, cfg.Hash+" "+d.zones.plansBy())
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
	d.loop.SetPolicy(d.policyInForce(cfg))
	d.reloads.Success()
	if keys := fixed(d.started, cfg); len(keys) > 0 {
		d.log.Warn("these keys have changed and take effect at the next start", "keys", keys)
	}
	if err := d.mail.SetLocale(cfg.Defaults.Locale); err != nil { // its templates are newer than the mailer
		d.log.Warn("the default locale takes effect at the next start, with the templates of then", "err", err)
	}
	select {
	case d.replan <- struct{}{}:
	default:
	}
	d.log.Info("the configuration is reloaded", "config", cfg.Hash, "cadences", names(cfg.Cadences))
	return nil
}

// policyInForce is the policy of a file, but for what follows from keys that a reload leaves alone.
func (d *daemon) policyInForce(now *config.Config) *scheduler.Policy {
	policy := policyOf(now)
	policy.RepeatWithin = repeatWithin(d.started) // the header that the running mailer sends, or none
	policy.Fingerprint = d.zones.fingerprint(now, policy.RepeatWithin)
	return policy
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
