package web

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	cfg := new(program).config()
	if err := RegisterBuild(cfg.Registry, cfg.Build); err != nil {
		t.Fatal(err)
	}
	reloads, err := NewReloadMetrics(cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + start(t, cfg)[0]
	scrape := func(want ...string) {
		t.Helper()
		got := ask(t, client(nil), "GET", base+"/metrics", nil)
		for _, line := range want {
			if got.status != 200 || !strings.Contains(got.body, "\n"+line+"\n") {
				t.Errorf("status %d, no line %s in\n%s", got.status, line, got.body)
			}
		}
	}
	build := fmt.Sprintf(`nudged_build_info{goversion="%s",revision="<abc>",version="1.2.3"} 1`, runtime.Version())
	scrape(build, "nudged_config_last_reload_successful 0", "nudged_config_last_reload_success_timestamp_seconds 0",
		"promhttp_metric_handler_errors_total{cause=\"gathering\"} 0", "# TYPE go_goroutines gauge", "# TYPE process_open_fds gauge")

	before := time.Now()
	reloads.Success()
	scrape("nudged_config_last_reload_successful 1")
	at := testutil.ToFloat64(reloads.at)
	if at < float64(before.Unix()) || at > float64(time.Now().Unix()+1) {
		t.Errorf("loaded at %f, now is %d", at, time.Now().Unix())
	}
	reloads.Failure()
	scrape("nudged_config_last_reload_successful 0")
	if testutil.ToFloat64(reloads.at) != at {
		t.Error("a failure moved the time of the last success")
	}

	problems, err := testutil.GatherAndLint(cfg.Registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, error %v", problems, err)
	}
}

func TestMetricsRegisteredTwice(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := NewReloadMetrics(reg); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReloadMetrics(reg); err == nil {
		t.Error("no error the second time")
	}
}
