package postgres_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"nudged/internal/pgtest"
	"nudged/scheduler"
)

// One connection is enough for everything in turn: nothing waits for a second one while it holds the first.
func TestPoolOfOneConnection(t *testing.T) {
	t.Parallel()
	parsed, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("pool_max_conns", "1")
	parsed.RawQuery = query.Encode()
	f := fixtureAt(t, parsed.String())
	const most = `
		# HELP nudged_db_pool_connections_max Connections the pool may have.
		# TYPE nudged_db_pool_connections_max gauge
		nudged_db_pool_connections_max 1
	`
	if err := testutil.GatherAndCompare(f.gauges().reg, strings.NewReader(most), "nudged_db_pool_connections_max"); err != nil {
		t.Error(err)
	}
	f.due(2)
	tasks := f.pass("a").Tasks
	f.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0]), handOff(tasks[1])}})
	f.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(tasks[0], sent), settlement(tasks[1], sent)}})
	f.wantRow("r-1", "3d", "sent/")
	if err := f.store.EachOpen(t.Context(), func(scheduler.Input) error { return nil }); err != nil {
		t.Error(err)
	}
}
