//go:build chaos

package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"nudged/internal/pgtest"
)

var (
	duration   = flag.Duration("duration", time.Minute, "how long the storm lasts")
	seed       = flag.Uint64("seed", 0, "what everything is drawn from; 0: any")
	replicaN   = flag.Int("replicas", 3, "how many replicas of the daemon run")
	fault      = flag.String("fault", "", "build tag of a planted fault to build the daemon with")
	planted    = flag.Bool("planted", false, "run TestPlantedFaultsAreCaught")
	daemonRace = flag.Bool("daemon-race", false, "build the daemon with the race detector")
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestChaos plays one run; nothing may be violated.
func TestChaos(t *testing.T) {
	if *planted {
		t.Skip("-planted is given")
	}
	report := chaos(t, *fault)
	t.Log(report)
	if len(report.Violations) > 0 {
		t.Fail()
	}
}

// TestPlantedFaultsAreCaught plays one run for each planted fault; each has to be found out by what
// it does. Claims without the primary key seldom get past the fence of their claim id, so that the
// history of the ledger counts as well there.
func TestPlantedFaultsAreCaught(t *testing.T) {
	if !*planted {
		t.Skip("it takes minutes: run it with -planted")
	}
	faults := map[string][]string{
		"fault_resend":   {kindTwice},
		"fault_recheck":  {kindClosed},
		"fault_conflict": {kindTwice, kindLedger, kindMove},
	}
	for tag, kinds := range faults {
		t.Run(tag, func(t *testing.T) {
			report := chaos(t, tag)
			t.Log(report)
			if !slices.ContainsFunc(kinds, func(kind string) bool { return report.Kinds()[kind] > 0 }) {
				t.Errorf("%s is not caught: want one of %q, got %v", tag, kinds, report.Kinds())
			}
		})
	}
}

// chaos builds the daemon and plays one run with it.
func chaos(t *testing.T, tags string) *Report {
	t.Helper()
	cfg := Config{
		Database: pgtest.OwnServer(t), Dir: t.TempDir(), Duration: *duration, Seed: *seed, Replicas: *replicaN,
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	t.Logf("seed %d", cfg.Seed)
	cfg.Binary = build(t, cfg.Dir, tags)
	report, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func build(t *testing.T, dir, tags string) string {
	t.Helper()
	binary := filepath.Join(dir, "nudged")
	arguments := []string{"build", "-o", binary, "-tags", tags}
	if *daemonRace {
		arguments = append(arguments, "-race")
	}
	out, err := exec.Command("go", append(arguments, "nudged/cmd/nudged")...).CombinedOutput()
	if err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	return binary
}
