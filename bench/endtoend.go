package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// compareEndToEnd measures ledger and SMTP together against the SMTP leg alone, and on loopback the least
// ledger there can be against the same.
func compareEndToEnd(ctx context.Context, l *lab) ([]result, error) {
	far, err := startProxy(l.sink.port, 5*time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer far.listener.Close()
	var results []result
	for _, c := range []struct {
		name, target         string
		port, connections, n int
		bare                 bool
	}{
		{"end to end / SMTP leg, loopback", "≥ 0.75", l.sink.port, 8, 4 * l.size.Messages, true},
		{"end to end / SMTP leg, loopback, more connections", "", l.sink.port, 32, 4 * l.size.Messages, true},
		{"end to end / SMTP leg, 5 ms round trip", "≥ 0.95", far.port(), 16, l.size.Messages, false},
	} {
		r := result{
			Name: c.name, Unit: "1/s", Target: c.target,
			Note: fmt.Sprintf("%d connections, window %d", c.connections, 2*c.connections),
		}
		least := result{Name: "the same with a ledger that checks nothing", Unit: r.Unit, Note: r.Note}
		for range l.size.Rounds {
			base, err := leg(ctx, c.port, c.n, c.connections, nil)
			if err != nil {
				return nil, err
			}
			ours, err := endToEnd(ctx, l, c.port, c.n, c.connections)
			if err != nil {
				return nil, err
			}
			r.Ours, r.Base = append(r.Ours, ours), append(r.Base, base)
			if !c.bare {
				continue
			}
			if ours, err = endToEndBare(ctx, l, c.port, c.n, c.connections); err != nil {
				return nil, err
			}
			least.Ours, least.Base = append(least.Ours, ours), append(least.Base, base)
		}
		results = append(results, r)
		if c.bare {
			results = append(results, least)
		}
	}
	return results, nil
}

func endToEnd(ctx context.Context, l *lab, port, n, connections int) (float64, error) {
	d, err := l.database(ctx)
	if err != nil {
		return 0, err
	}
	defer d.drop()
	if err := errors.Join(d.insert(ctx, n, "3 days"), d.documents(ctx, n), d.planned(ctx), d.analyze(ctx)); err != nil {
		return 0, err
	}
	m, err := newMailer(port, nil)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return drive(ctx, d, m, n, connections)
}

func endToEndBare(ctx context.Context, l *lab, port, n, connections int) (float64, error) {
	d, err := l.database(ctx)
	if err != nil {
		return 0, err
	}
	defer d.drop()
	store, err := openBare(ctx, d, n)
	if err != nil {
		return 0, err
	}
	defer store.pool.Close()
	m, err := newMailer(port, nil)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return driveOver(ctx, store, m, n, connections)
}
