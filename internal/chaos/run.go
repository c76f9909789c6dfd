//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long things may take when all is well again. Healthy runs take a fraction of it.
const (
	healingPatience = 90 * time.Second
	endingPatience  = 90 * time.Second // longer than a stopping daemon waits for its database
	checkEvery      = 200 * time.Millisecond
)

// run is one run under way.
type run struct {
	cfg      Config
	tally    *tally
	database *database
	relay    *relay
	replicas *replicas
	app      *application
	stalls   []span

	settledBy time.Time
	waiting   []row
	healing   time.Duration
}

// Run plays one run and judges it. The error says that the run itself failed; broken promises are
// in the report.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, tally: newTally()}
	if r.database, err = newDatabase(ctx, cfg, r.tally); err != nil {
		return nil, err
	}
	defer r.database.pool.Close()
	if r.relay, err = newRelay(cfg.Seed, r.tally); err != nil {
		return nil, err
	}
	defer r.relay.server.Close()
	r.app = newApplication(r.database.pool, cfg.Seed, r.tally)
	if r.replicas, err = newReplicas(cfg, r.relay.server.Port(), r.tally); err != nil {
		return nil, err
	}
	defer r.replicas.killAll()
	for _, phase := range []func(context.Context) error{r.storm, r.heal, r.end} {
		if err := phase(ctx); err != nil {
			return nil, err
		}
	}
	return r.report(ctx)
}

// storm lets everything happen at once.
func (r *run) storm(ctx context.Context) error {
	for number := range r.cfg.Replicas {
		if err := r.replicas.start(number); err != nil {
			return err
		}
	}
	stormy, cancel := context.WithTimeout(ctx, r.cfg.Duration)
	defer cancel()
	all, stormy := errgroup.WithContext(stormy)
	const gap = 4 * time.Second
	for number := range r.cfg.Replicas {
		draw := newDraw(r.cfg.Seed, fmt.Sprintf("replica %d", number))
		steps := drawTrack(draw, r.cfg.Duration, gap, r.replicas.choices())
		all.Go(func() error {
			return play(stormy, steps, func(ctx context.Context, s step) error { return r.replicas.do(ctx, number, s) })
		})
	}
	steps := drawTrack(newDraw(r.cfg.Seed, "database track"), r.cfg.Duration, gap, r.database.choices())
	all.Go(func() error { return play(stormy, steps, r.database.do) })
	weather := drawTrack(newDraw(r.cfg.Seed, "mail server track"), r.cfg.Duration, gap, r.relay.choices())
	all.Go(func() error { return play(stormy, weather, r.relay.do) })
	for _, c := range r.app.clients {
		all.Go(func() error { return c.act(stormy) })
	}
	for user := range hesitants {
		all.Go(func() error { return r.app.hesitate(stormy, user) })
	}
	all.Go(func() error { return r.noteSuppressed(stormy) })
	all.Go(func() error { r.watchStalls(stormy); return nil })
	if err := all.Wait(); err != nil {
		return fmt.Errorf("the storm: %w", err)
	}
	return ctx.Err()
}

// noteSuppressed asks now and then which addresses the daemon has suppressed.
func (r *run) noteSuppressed(ctx context.Context) error {
	for pause(ctx, time.Second/2) {
		if err := r.app.noteSuppressed(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// watchStalls notes when this machine had no time for us: then it had none for the mail server.
func (r *run) watchStalls(ctx context.Context) {
	const tick, stall = 20 * time.Millisecond, 300 * time.Millisecond
	for last := time.Now(); pause(ctx, tick); {
		now := time.Now()
		if now.Sub(last) > stall {
			r.stalls = append(r.stalls, span{what: "stall", from: last, to: now})
		}
		last = now
	}
}

// heal makes everything well and waits until all that was due by then has come to an end.
func (r *run) heal(ctx context.Context) error {
	r.relay.heal()
	if err := r.database.heal(ctx); err != nil {
		return fmt.Errorf("heal the database: %w", err)
	}
	begun := time.Now()
	var err error
	if r.settledBy, err = r.app.clock(ctx); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	subjects := r.app.subjects()
	for deadline := begun.Add(healingPatience); ; {
		rows, err := readRows(ctx, r.database.pool)
		if err != nil {
			return err
		}
		r.waiting = unsettled(rows, r.settledBy)
		if len(r.waiting) == 0 && len(missing(subjects, rows, r.settledBy)) == 0 || time.Now().After(deadline) {
			r.healing = time.Since(begun)
			return nil
		}
		if !pause(ctx, checkEvery) {
			return ctx.Err()
		}
	}
}

// end completes every request, waits until nothing is under way any more and stops the replicas.
func (r *run) end(ctx context.Context) error {
	if err := r.app.completeAll(ctx); err != nil {
		return err
	}
	for deadline := time.Now().Add(healingPatience); time.Now().Before(deadline); {
		rows, err := readRows(ctx, r.database.pool)
		if err != nil {
			return err
		}
		if len(unsettled(rows, farAway())) == 0 {
			break
		}
		if !pause(ctx, checkEvery) {
			return ctx.Err()
		}
	}
	r.replicas.stopAll(endingPatience)
	return nil
}

// report gathers the evidence and has it judged.
func (r *run) report(ctx context.Context) (*Report, error) {
	e := evidence{
		subjects: r.app.subjects(), suppressed: r.app.suppressed,
		settledBy: r.settledBy, waiting: r.waiting,
		injuries: r.relay.injuries, resets: r.relay.resets, outages: r.database.outages, stalls: r.stalls,
		processes: r.replicas.all,
	}
	var rowsErr, movesErr error
	e.rows, rowsErr = readRows(ctx, r.database.pool)
	e.moves, movesErr = readMoves(ctx, r.database.pool)
	if err := errors.Join(rowsErr, movesErr); err != nil {
		return nil, err
	}
	for _, m := range r.relay.server.Accepted() {
		mail, err := decode(m, e.subjects)
		if err != nil {
			e.strange = append(e.strange, err.Error())
			continue
		}
		e.mails = append(e.mails, mail)
	}
	told, err := readLogs(e.processes)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Seed: r.cfg.Seed, Storm: r.cfg.Duration, Healing: r.healing, Done: r.tally.count,
		Accepted: len(r.relay.server.Accepted()), Ledger: map[string]int{}, Bodies: map[string]int{},
		Stalls: len(r.stalls), Violations: append(judge(e), told...),
	}
	for _, row := range e.rows {
		report.Ledger[row.state+" "+row.reason]++
	}
	for _, m := range e.moves {
		switch {
		case m.state == "sending":
			report.HandOffs++
		case m.oldState == "unknown" && m.state != "unknown":
			report.LateTruths++
		}
	}
	for _, body := range r.relay.server.Bodies() {
		report.Bodies[string(body.Fate)]++
	}
	return report, nil
}
