package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"net/netip"
	"os"
	"strings"
	"time"

	"nudged/internal/config"
	"nudged/internal/devbox"
	"nudged/migrations"
)

// devStop bounds the stop of the private database.
const devStop = 20 * time.Second

// runDev runs the daemon over a private PostgreSQL and a local inbox.
func (c *runCommand) runDev(g *globals) (err error) {
	if g.flags.DatabaseURL != "" {
		return usagef("--dev brings its own database: leave --database.url and NUDGED_DATABASE_URL away")
	}
	fmt.Fprintln(g.stdout, "starting a private PostgreSQL …")
	box, err := devbox.Start(g.ctx, devbox.Config{Dir: c.DevDir, Out: g.stdout, Logger: g.logger()})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), devStop)
		defer cancel()
		err = errors.Join(err, box.Stop(ctx))
	}()
	if _, err := migrations.Up(g.ctx, box.DatabaseURL()); err != nil {
		return err
	}
	if err := box.Seed(g.ctx); err != nil {
		return err
	}
	d, err := newDaemon(c, g, box, func() (*config.Config, error) { return devConfig(g, box) })
	if err != nil {
		return err
	}
	d.listening = func(addresses []string) { announce(g.stdout, box, reachable(addresses[0])) }
	return d.run(g.ctx)
}

// announce tells where everything is.
func announce(w io.Writer, box *devbox.Box, address string) {
	fmt.Fprintf(w, `
nudged runs on sample requests; every mail stays on this machine.
  status     http://%s/
  data       %s
  inbox      %s
  database   '%s'
  metrics    http://%s/metrics
  explain    %s explain sample-due-1 --database.url='%s'
Stop with Ctrl-C. A second start finds the same data and sends nothing twice.

`, address, box.Dir(), box.InboxDir(), box.DatabaseURL(), address, invocation(), box.DatabaseURL())
}

// reachable is an address that a browser on this machine can open, of one that is listened on.
func reachable(address string) string {
	listened, err := netip.ParseAddrPort(address)
	if err != nil || !listened.Addr().IsUnspecified() {
		return address
	}
	return fmt.Sprintf("localhost:%d", listened.Port())
}

// devConfig is the configuration file, if there is one, with the parts that the box brings.
func devConfig(g *globals, box *devbox.Box) (*config.Config, error) {
	cfg, err := g.load(config.NeedLanguage)
	if err != nil {
		return nil, err
	}
	cfg.Environment = "dev"
	cfg.Database.URL = config.NewSecret(box.DatabaseURL())
	cfg.Poll.Tick = config.Tick{Every: time.Second}
	cfg.SMTP.Host, cfg.SMTP.Port = box.SMTPAddr()
	cfg.SMTP.TLS, cfg.SMTP.Username, cfg.SMTP.Connections = config.TLSNone, "", 2
	if cfg.Mail.From.Address == "" {
		cfg.Mail.From = mail.Address{Name: "Sample Office", Address: "reminders@nudged.example"}
		cfg.Mail.MessageIDDomain = "nudged.example"
	}
	return cfg, nil
}

// invocation is how this program was started, to be typed again.
func invocation() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/nudged"
	}
	return os.Args[0]
}
