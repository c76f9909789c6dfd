package main

import (
	"context"
	"errors"
	"time"

	"nudged/scheduler"
)

// planAll runs passes that claim nothing until every request is planned, and returns how many a
// second that was.
func planAll(ctx context.Context, d *database, n int) (float64, error) {
	store, err := d.store(ctx)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	p, err := policy()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	for {
		result, err := store.RunPass(ctx, scheduler.Pass{Worker: "bench", Lease: time.Minute, Fresh: 500, Plan: p.Plan})
		if err != nil {
			return 0, err
		}
		if result.Fresh == 0 {
			return float64(n) / time.Since(begun).Seconds(), nil
		}
	}
}

// idlePass measures one pass with nothing to do, in milliseconds: the median of several.
func idlePass(ctx context.Context, d *database) (float64, error) {
	store, err := d.store(ctx)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	p, err := policy()
	if err != nil {
		return 0, err
	}
	var times []float64
	for range 100 {
		begun := time.Now()
		if _, err := store.RunPass(ctx, scheduler.Pass{Worker: "bench", Lease: time.Minute, Fresh: 500, Due: 500, Plan: p.Plan}); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(begun).Microseconds())/1000)
	}
	return median(times), nil
}

// compareIdle measures a pass with nothing due over many requests against one over few.
func compareIdle(ctx context.Context, l *lab) ([]result, error) {
	idle := result{Name: "idle pass, many requests / few", Unit: "ms", Target: "≤ 1.5"}
	plan := result{Name: "planning", Unit: "requests/s", Target: "≥ 10000", Note: "one process, batches of 500"}
	sizes := []int{l.size.Few, l.size.Many}
	bases := make([]*database, len(sizes))
	for i, n := range sizes {
		d, err := l.database(ctx)
		if err != nil {
			return nil, err
		}
		defer d.drop()
		if err := d.insert(ctx, n, "1 hour"); err != nil {
			return nil, err
		}
		rate, err := planAll(ctx, d, n)
		if err != nil {
			return nil, err
		}
		if n == l.size.Many {
			plan.Ours = append(plan.Ours, rate)
		}
		if err := d.analyze(ctx); err != nil {
			return nil, err
		}
		bases[i] = d
	}
	for range max(3, l.size.Rounds) {
		few, err := idlePass(ctx, bases[0])
		if err != nil {
			return nil, err
		}
		many, err := idlePass(ctx, bases[1])
		if err != nil {
			return nil, err
		}
		idle.Ours, idle.Base = append(idle.Ours, many), append(idle.Base, few)
	}
	return []result{idle, plan}, nil
}

// compareImport measures what the triggers add to one bulk INSERT of requests and one of links.
func compareImport(ctx context.Context, l *lab) ([]result, error) {
	r := result{
		Name: "bulk import with triggers / without", Unit: "s", Target: "≤ 2.0",
		Note: "the triggers cost the ratio minus one",
	}
	once := func(triggers bool) (float64, error) {
		d, err := l.database(ctx)
		if err != nil {
			return 0, err
		}
		defer d.drop()
		if !triggers {
			if _, err := d.pool.Exec(ctx, `ALTER TABLE nudged.requests DISABLE TRIGGER USER; ALTER TABLE nudged.links DISABLE TRIGGER USER`); err != nil {
				return 0, err
			}
		}
		begun := time.Now()
		if err := d.insert(ctx, l.size.Many, "1 hour"); err != nil {
			return 0, err
		}
		return time.Since(begun).Seconds(), nil
	}
	for range min(3, l.size.Rounds) {
		base, errBase := once(false)
		ours, errOurs := once(true)
		if err := errors.Join(errBase, errOurs); err != nil {
			return nil, err
		}
		r.Ours, r.Base = append(r.Ours, ours), append(r.Base, base)
	}
	return []result{r}, nil
}
