// Command bench measures nudged against its limits and its peers, side by side in one run.
//
// It starts a private PostgreSQL and a mail sink, runs each comparison interleaved several times,
// prints medians, spread and ratios as a table, and writes them as JSON where asked. Read ratios,
// not absolutes: both sides of a ratio ran in turns on the same machine.
//
//	go run . [-size full|tiny] [-rounds N] [-only NAME,NAME] [-json FILE]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// size is how much of everything a run takes.
type size struct {
	Rounds   int
	Few      int // requests of a small database
	Many     int // requests of a large one
	Due      int // reminders of a throughput run
	Whole    int // reminders of the whole-process run
	Messages int // messages of an SMTP run
	Soak     int // claims of a soak
}

func sizes() map[string]size {
	return map[string]size{
		"full": {Rounds: 5, Few: 1000, Many: 1_000_000, Due: 100_000, Whole: 100_000, Messages: 10_000, Soak: 2_000_000},
		"tiny": {Rounds: 1, Few: 100, Many: 1000, Due: 200, Whole: 500, Messages: 200, Soak: 40_000},
	}
}

// result is one line of the table. The ratio is the median of the ratios of the rounds.
type result struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Ours   []float64 `json:"ours"`
	Base   []float64 `json:"base,omitempty"`
	Ratio  float64   `json:"ratio,omitempty"`
	Target string    `json:"target"`
	Note   string    `json:"note,omitempty"`
}

func (r *result) settle() {
	var ratios []float64
	for i := range r.Base {
		ratios = append(ratios, r.Ours[i]/r.Base[i])
	}
	if len(ratios) > 0 {
		r.Ratio = median(ratios)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g (%.4g–%.4g)", median(values), slices.Min(values), slices.Max(values))
}

// comparison is one thing that is measured.
type comparison struct {
	name   string
	run    func(context.Context, *lab) ([]result, error)
	byName bool // only where -only names it
}

func comparisons() []comparison {
	return []comparison{
		{"smtp", compareSMTP, false},
		{"ledger", compareLedger, false},
		{"endtoend", compareEndToEnd, false},
		{"idle", compareIdle, false},
		{"import", compareImport, false},
		{"process", measureProcess, false},
		{"soak", soak, true},
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == sinkArgument {
		runSink()
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	sizeName := flag.String("size", "full", "full or tiny")
	rounds := flag.Int("rounds", 0, "rounds of each comparison; 0: as the size says")
	only := flag.String("only", "", "comma list of comparisons: smtp, ledger, endtoend, idle, import, process, soak; empty: all but soak")
	jsonFile := flag.String("json", "", "where to write the results as JSON")
	flag.Parse()
	s, ok := sizes()[*sizeName]
	if !ok {
		return fmt.Errorf("-size: want full or tiny (got %q)", *sizeName)
	}
	if *rounds > 0 {
		s.Rounds = *rounds
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := newLab(ctx, s)
	if err != nil {
		return err
	}
	defer l.close()
	var results []result
	for _, c := range comparisons() {
		if *only == "" && c.byName || *only != "" && !slices.Contains(strings.Split(*only, ","), c.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", c.name)
		begun := time.Now()
		found, err := c.run(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", c.name, time.Since(begun).Round(time.Second))
		for i := range found {
			found[i].settle()
		}
		results = append(results, found...)
	}
	if err := printTable(results); err != nil {
		return err
	}
	if *jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{
		"go": runtime.Version(), "cpus": runtime.NumCPU(), "size": *sizeName, "rounds": s.Rounds, "results": results,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(text, '\n'), 0o644)
}

func printTable(results []result) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tUNIT\tOURS median (min–max)\tBASE median (min–max)\tRATIO\tTARGET\tNOTE")
	for _, r := range results {
		ratio := ""
		if r.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Unit, spread(r.Ours), spread(r.Base), ratio, r.Target, r.Note)
	}
	return table.Flush()
}
