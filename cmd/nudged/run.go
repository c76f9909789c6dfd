package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"

	"nudged/cadence"
	"nudged/internal/config"
	"nudged/internal/devbox"
	"nudged/internal/postgres"
	"nudged/internal/web"
	"nudged/mailer"
	"nudged/migrations"
	"nudged/scheduler"
)

type runCommand struct {
	Listen    []string `name:"web.listen-address" env:"NUDGED_WEB_LISTEN_ADDRESS" default:"127.0.0.1:9847" help:"Address of the status page, metrics and health; repeatable."`
	WebConfig string   `name:"web.config.file" env:"NUDGED_WEB_CONFIG_FILE" placeholder:"FILE" help:"TLS and basic authentication of the web port."`
	Addresses bool     `name:"web.show-addresses" env:"NUDGED_WEB_SHOW_ADDRESSES" help:"Show e-mail addresses and upload links on the status page."`
	Dev       bool     `name:"dev" env:"NUDGED_DEV" help:"Start a private PostgreSQL and a local inbox with sample requests."`
	Shadow    bool     `name:"shadow" env:"NUDGED_SHADOW" help:"Tell in the log what would be sent; send nothing, write nothing."`
	DevDir    string   `name:"dev.dir" env:"NUDGED_DEV_DIR" placeholder:"DIR" help:"Folder that --dev keeps its data in."`
}

// Run implements the subcommand.
func (c *runCommand) Run(g *globals) error {
	if err := c.check(g.ctx); err != nil {
		return err
	}
	switch {
	case c.Dev && c.Shadow:
		return usagef("--dev and --shadow do not go together")
	case c.Dev:
		return c.runDev(g)
	case c.Shadow:
		return c.runShadow(g)
	}
	d, err := newDaemon(c, g, nil, func() (*config.Config, error) {
		return g.load(config.NeedDatabase, config.NeedMail)
	})
	if err != nil {
		return err
	}
	return d.run(g.ctx)
}

// check finds the mistakes that show before anything is opened.
func (c *runCommand) check(ctx context.Context) error {
	if len(c.Listen) == 0 { // an empty flag or variable
		c.Listen = []string{""}
	}
	for _, address := range c.Listen {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
		}
		if err != nil {
			return usagef("--web.listen-address: want HOST:PORT such as 127.0.0.1:9847, or :9847 for every address (got %q)", address)
		}
	}
	if c.WebConfig == "" {
		return nil
	}
	if err := config.CheckFile(c.WebConfig); err != nil {
		return usagef("--web.config.file: %w (got %q)", err, c.WebConfig)
	}
	return nil
}

// daemon is everything that `nudged run` consists of.
type daemon struct {
	log     *slog.Logger
	load    func() (*config.Config, error)
	started *config.Config // what the parts that a reload leaves alone were built from
	cfg     atomic.Pointer[config.Config]
	store   *postgres.Store
	mail    *mailer.Mailer
	gauges  *postgres.Gauges
	loop    *scheduler.Scheduler
	web     *web.Server
	reloads *web.ReloadMetrics
	zones   zoneData
	notify  *notifier

	listening func(addresses []string) // told when the web port is open; nil: nobody asks
	reloading sync.Mutex               // one reload at a time: HTTP and a signal may ask together
	closers   []func()
	replan    chan struct{}
}

// newDaemon loads the configuration and builds every part. It connects to nothing: the daemon may
// start before its database and its relay. The box is that of --dev, or nil.
func newDaemon(c *runCommand, g *globals, box *devbox.Box, load func() (*config.Config, error)) (_ *daemon, err error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	d := &daemon{log: g.logger(), load: load, zones: g.zones, replan: make(chan struct{}, 1)}
	d.started = cfg
	d.cfg.Store(cfg)
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	registry := prometheus.NewRegistry()
	build := buildInfo(g.zones)
	if err := web.RegisterBuild(registry, web.Build{Version: build.Version, Revision: build.Revision}); err != nil {
		return nil, err
	}
	if d.reloads, err = web.NewReloadMetrics(registry); err != nil {
		return nil, err
	}
	d.reloads.Success()
	if d.store, err = newStore(g.ctx, cfg); err != nil {
		return nil, err
	}
	d.closers = append(d.closers, d.store.Close)
	if d.gauges, err = postgres.NewGauges(d.store, registry, d.log); err != nil {
		return nil, err
	}
	if d.mail, err = newMailer(cfg, registry, d.log); err != nil {
		return nil, err
	}
	d.closers = append(d.closers, d.mail.Close)
	if d.loop, err = scheduler.New(scheduler.Config{
		Store: d.store, Mailer: d.mail, Policy: d.policyInForce(cfg), Worker: workerName(),
		Every: cfg.Poll.Every, Cron: cfg.Poll.Cron, StallAfter: stallAfter(cfg.Poll),
		Batch: cfg.Poll.Batch, Lease: cfg.Poll.Lease, Workers: cfg.SMTP.Connections, Rate: cfg.SMTP.Rate,
		Registerer: registry, Logger: d.log,
	}); err != nil {
		return nil, err
	}
	if d.notify, err = newNotifier(notifierConfig{
		Ready: d.atWork, Healthy: d.loop.Healthy, Logger: d.log,
		Status:   func() string { return statusLine(registry, d.loop.InFlight(), d.loop.Healthy) },
		InFlight: d.loop.InFlight,
	}); err != nil {
		return nil, err
	}
	d.web, err = web.New(web.Config{
		Registry: registry, ListenAddresses: c.Listen, WebConfigFile: c.WebConfig,
		Healthy: d.loop.Healthy, Ready: d.ready, Reload: d.reload, Logger: d.log,
		Pages: newPages(d, g, box, registry, c.Addresses),
		Build: web.Build{Version: build.Version, Revision: build.Revision},
	})
	if err != nil { // all that it reads is the web configuration file
		return nil, usageError{err}
	}
	return d, nil
}

// stallAfter is how long passes may fail before the process is called unhealthy: five minutes, or
// ten passes, or a little more than the longest rest that a cron expression takes.
func stallAfter(poll config.Poll) time.Duration {
	const least, firings = 5 * time.Minute, 200
	if poll.Cron == "" {
		return max(least, 10*poll.Every)
	}
	schedule, err := cron.ParseStandard(poll.Cron)
	if err != nil {
		return least // the scheduler refuses it
	}
	var longest time.Duration
	at := schedule.Next(time.Now().UTC())
	for range firings {
		next := schedule.Next(at)
		longest, at = max(longest, next.Sub(at)), next
	}
	return least + longest
}

// workerName tells people which replica claimed a row.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func (d *daemon) close() {
	for _, closer := range slices.Backward(d.closers) {
		closer()
	}
}

// run works until ctx ends and everything that was handed off is recorded.
func (d *daemon) run(ctx context.Context) error {
	defer d.close()
	cfg := d.cfg.Load()
	schema, err := migrations.Latest()
	if err != nil {
		return err
	}
	build := buildInfo(d.zones)
	d.log.Info("nudged starts", "version", build.Version, "revision", build.Revision, "schema", schema,
		"config", cfg.Hash, "environment", cfg.Environment, "tzdata", build.TZData, "cadences", names(cfg.Cadences))

	// From the first moment to the last, so that a SIGHUP never ends the process.
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	var aside sync.WaitGroup
	defer aside.Wait()
	defer end()
	aside.Go(func() { d.reloadOnSignal(over) })
	aside.Go(func() { d.notify.run(ctx, over.Done()) })
	aside.Go(func() { d.tellListening(over) })
	defer d.tellStop(ctx)()

	// The web port outlives the loop, so that the last outcomes can be scraped while it stops.
	webCtx, stopWeb := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWeb()
	webDone := make(chan error, 1)
	go func() { webDone <- d.web.Run(webCtx) }()

	loopCtx, stopLoop := context.WithCancel(ctx)
	defer stopLoop()
	loopDone := make(chan error, 1)
	go func() { loopDone <- d.work(loopCtx) }()

	select {
	case err = <-loopDone:
		stopWeb()
		return errors.Join(err, <-webDone)
	case err = <-webDone: // it could not listen: nothing is sent by a daemon that nobody can watch
		stopLoop()
		return errors.Join(err, <-loopDone)
	}
}

// tellListening tells the real addresses of the web port once it is open.
func (d *daemon) tellListening(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-d.web.Started():
		if d.listening != nil {
			d.listening(d.web.Addresses())
		}
	}
}

// tellStop logs that the daemon is told to stop; the function it returns, that it has stopped.
func (d *daemon) tellStop(ctx context.Context) (stopped func()) {
	told := make(chan time.Time, 1)
	forget := context.AfterFunc(ctx, func() {
		d.log.Info("nudged is stopping: what was handed off ends and is recorded", "signal", signalOf(ctx), "in_flight", d.loop.InFlight())
		told <- time.Now()
	})
	return func() {
		if forget() {
			return // it ends by itself, and its error says why
		}
		d.log.Info("nudged has stopped", "duration", time.Since(<-told), "in_flight", d.loop.InFlight(), "not_recorded", d.loop.NotRecorded())
	}
}

// signalOf names what ended the context.
func signalOf(ctx context.Context) string {
	return strings.TrimSuffix(context.Cause(ctx).Error(), " signal received")
}

// work waits for a database that fits and then runs the loop and what accompanies it.
func (d *daemon) work(ctx context.Context) error {
	if err := d.waitForDatabase(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	var aside sync.WaitGroup
	defer aside.Wait()
	asideCtx, stop := context.WithCancel(ctx)
	defer stop()
	aside.Go(func() { d.gauges.Run(asideCtx) })
	aside.Go(func() { d.replans(asideCtx) })
	aside.Go(func() {
		if err := d.purges(asideCtx); err != nil {
			d.log.Error("the ledger will not be purged", "err", err)
		}
	})
	return d.loop.Run(ctx)
}

func names(cadences map[string]*cadence.Cadence) []string {
	return slices.Sorted(maps.Keys(cadences))
}
