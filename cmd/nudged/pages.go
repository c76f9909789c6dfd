package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"nudged/cadence"
	"nudged/internal/devbox"
	"nudged/internal/postgres"
	"nudged/internal/web"
	"nudged/scheduler"
)

// How much the status page shows.
const (
	pageDays  = 7
	pageRows  = 20     // of each list
	pageCount = 20_000 // where counting stops
	pageSlots = 10     // to come, of one request
	lateAfter = scheduler.Late
)

// pages gives the status page its facts: the ledger, the policy and the mailer meet here.
type pages struct {
	*daemon

	registry prometheus.Gatherer
}

// newPages are the pages of a daemon. The box is that of --dev, or nil.
func newPages(d *daemon, g *globals, box *devbox.Box, registry prometheus.Gatherer, showAddresses bool) *web.Pages {
	p := &pages{d, registry}
	shell := command{program: "nudged"}
	if file, err := filepath.Abs(g.flags.ConfigFile); err == nil && g.flags.ConfigFile != "" {
		shell.flags = append(shell.flags, "--config.file="+file)
	}
	shown := &web.Pages{
		Overview: p.overview, Request: p.request, Compose: d.mail.Compose,
		Zone:          func() *time.Location { return d.cfg.Load().Defaults.TimeZone },
		ShowAddresses: showAddresses,
	}
	if box != nil {
		shown.Inbox = os.DirFS(box.InboxDir())
		shell = command{program: invocation(), flags: append(shell.flags, "--database.url="+box.DatabaseURL())}
	}
	shown.Settle = shell.resolve
	return shown
}

func (p *pages) overview(ctx context.Context) (web.Overview, error) {
	cfg := p.cfg.Load()
	days, err := daysFrom(time.Now(), cfg.Defaults.TimeZone, pageDays)
	if err != nil {
		return web.Overview{}, err
	}
	status, err := p.store.Status(ctx, postgres.StatusQuery{Late: lateAfter, Rows: pageRows, Count: pageCount, Days: days})
	if err != nil {
		return web.Overview{}, err
	}
	values := gauges(p.registry)
	o := web.Overview{
		Now: status.Now, Environment: p.started.Environment, Trouble: cmp.Or(p.atWork(), p.loop.Healthy()),
		RelayUp: values["nudged_relay_up"] == 1, Open: p.open(),
		OnTime: status.OnTime, Late: status.Late, LateAfter: lateAfter, Oldest: status.Oldest,
		Unplanned: status.Unplanned, Limit: pageCount,
		Unknown: status.Unknown, Unsettled: status.Unsettled, Outcomes: status.Outcomes,
	}
	if last := values["nudged_last_pass_success_timestamp_seconds"]; last > 0 {
		o.LastPass = time.UnixMilli(int64(last * 1000))
	}
	for _, m := range status.Mistakes {
		o.Mistakes = append(o.Mistakes, web.Mistake(m))
	}
	for i, n := range status.Upcoming {
		o.Upcoming = append(o.Upcoming, web.Day{Begins: days[i], Reminders: n})
	}
	return o, nil
}

// open is how many requests are open, by the gauge: counting them anew costs more the more there are.
func (p *pages) open() int {
	total := 0.0
	families, _ := p.registry.Gather() // what cannot be read is left out
	for _, family := range families {
		if family.GetName() != "nudged_requests_open" {
			continue
		}
		for _, m := range family.GetMetric() {
			total += m.GetGauge().GetValue()
		}
	}
	return int(total)
}

// daysFrom returns the given instant, the beginnings of the civil days after it, and the end of the
// last of so many days: what a cadence calls each day at midnight.
func daysFrom(now time.Time, zone *time.Location, days int) ([]time.Time, error) {
	every, at := "1d", "00:00"
	midnights, err := cadence.Parse("midnights", cadence.Definition{After: []string{every}, ThenEvery: &every, At: &at})
	if err != nil {
		return nil, err
	}
	begins := []time.Time{now}
	for slot := range midnights.Slots(cadence.Origin{Anchor: now, Zone: zone}, now) {
		if begins = append(begins, slot.Due); len(begins) > days {
			break
		}
	}
	return begins, nil
}

func (p *pages) request(ctx context.Context, id string) (web.Request, error) {
	in, documents, err := p.store.Load(ctx, id)
	if err != nil {
		return web.Request{}, err
	}
	events, err := p.store.Events(ctx, id)
	if err != nil {
		return web.Request{}, err
	}
	policy := policyOf(p.cfg.Load())
	r := web.Request{Explanation: policy.Explain(in, events, pageSlots), Documents: documents}
	if in.Request != nil {
		r.Language = p.mail.Language(in.Request.Locale)
	}
	r.Task, r.WasSent = mailShown(policy, in)
	if r.Task != nil {
		r.Task.Documents = documents
	}
	return r, nil
}

// mailShown is the mail that goes out next or, where none will, the last that went out for this link.
func mailShown(policy *scheduler.Policy, in scheduler.Input) (task *scheduler.Task, sent bool) {
	claim, err := policy.Preview(in, "")
	if last := lastMail(in); err != nil && last != "" {
		claim, err = policy.Preview(in, last)
		sent = true
	}
	if err != nil {
		return nil, false
	}
	made := claim.Task(in)
	return &made, sent
}

// lastMail names the slot that went out last for the link; empty: none did.
func lastMail(in scheduler.Input) (slot string) {
	for _, r := range in.Reminders {
		if in.Link != nil && r.State.Mailed() && r.LinkCreatedAt.Equal(in.Link.CreatedAt) {
			slot = r.Slot
		}
	}
	return slot
}

// command is how this program is called by a person, with the flags that say which database.
type command struct {
	program string
	flags   []string
}

// resolve writes the commands that settle an unknown outcome, to be pasted into a shell.
func (c command) resolve(r scheduler.Reminder) (sent, notSent string) {
	quote := func(words ...string) string {
		for i, word := range words {
			words[i] = quoted(word)
		}
		return strings.Join(words, " ")
	}
	which := quote(append([]string{"--link=" + r.LinkCreatedAt.UTC().Format(time.RFC3339Nano)}, c.flags...)...)
	line := func(fate, why string) string {
		lines := []string{quote(r.RequestID, r.Slot) + " " + fate, quote("--why", why), which}
		if strings.HasPrefix(r.RequestID, "-") { // it must not be taken for a flag
			lines = []string{fate, quote("--why", why), which, "-- " + quote(r.RequestID, r.Slot)}
		}
		return c.program + " resolve " + strings.Join(lines, " \\\n  ")
	}
	return line("--sent", "the log of the mail server has it"), line("--not-sent", "the log of the mail server lacks it")
}

// quoted writes a word so that a shell (POSIX; bash, zsh and ksh where it cannot be printed) takes
// it as it is.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=@,+%", r))
	}
	switch {
	case word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0:
		return word
	case strings.IndexFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) < 0:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(word) {
		if plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String() + "'"
}
