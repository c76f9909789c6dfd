package deploytest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// hurry is by how much the rules run faster here than in production.
const hurry = 120

// hastened writes the rules with all their durations divided by hurry, so that a test sees within
// seconds what takes minutes. Numbers that are compared with seconds stay as they are.
func hastened(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, group := range ruleGroups(t) {
		var quick []map[string]any
		for _, rule := range group.Rules {
			expr, err := promQL().ParseExpr(rule.Expr.String())
			if err != nil {
				t.Fatal(err)
			}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if matrix, ok := node.(*parser.MatrixSelector); ok {
					matrix.Range /= hurry
				}
				return nil
			})
			entry := map[string]any{"expr": expr.String(), "labels": rule.Labels, "annotations": rule.Annotations}
			if rule.Alert == "" {
				entry = map[string]any{"record": rule.Record, "expr": expr.String()}
			} else {
				entry["alert"] = rule.Alert
				entry["for"] = duration(t, string(*rule.For)).String()
			}
			quick = append(quick, entry)
		}
		text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": group.Name, "rules": quick}}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, group.Name+".yml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// duration reads one of Prometheus and divides it; Prometheus takes it back in milliseconds.
func duration(t *testing.T, text string) milliseconds {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return milliseconds(d / hurry)
}

type milliseconds time.Duration

func (m milliseconds) String() string { return fmt.Sprintf("%dms", time.Duration(m).Milliseconds()) }

func promQL() parser.Parser { return parser.NewParser(parser.Options{}) }

// prometheus is a running server of Debian's package.
type prometheus struct {
	*process
	base string
}

// observe starts a Prometheus that scrapes the replicas of each job and follows the rules.
func observe(t *testing.T, jobs map[string][]*daemon) *prometheus {
	t.Helper()
	binary := debian(t, "prometheus", "prometheus")
	dir := t.TempDir()
	var scrapes []any
	for job, replicas := range jobs {
		var targets []string
		for _, d := range replicas {
			targets = append(targets, d.address)
		}
		scrapes = append(scrapes, map[string]any{"job_name": job, "static_configs": []any{map[string]any{"targets": targets}}})
	}
	text, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
		"rule_files":     hastened(t, dir),
		"scrape_configs": scrapes,
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{base: "http://" + freeAddress(t)}
	p.process = spawn(t, nil, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(p.base, "http://"), "--log.level=warn")
	p.wait("Prometheus", func() bool { status, _ := ask("GET", p.base+"/-/ready"); return status == 200 })
	return p
}

// sample is one series of an answer, at its newest point.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression now.
func (p *prometheus) query(expr string) []sample {
	p.t.Helper()
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.call("/api/v1/query?query="+url.QueryEscape(expr), &data)
	if data.ResultType != "vector" {
		p.t.Fatalf("%s is a %s, want a vector", expr, data.ResultType)
	}
	var samples []sample
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(r.Value[1].(string), 64)
		if err != nil {
			p.t.Fatal(err)
		}
		samples = append(samples, sample{r.Metric, value})
	}
	return samples
}

// hasData reports whether an expression has a series with a number.
func (p *prometheus) hasData(expr string) bool {
	for _, s := range p.query(expr) {
		if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
			return true
		}
	}
	return false
}

// firing returns the names of the alerts that fire for a job.
func (p *prometheus) firing(job string) map[string]bool {
	p.t.Helper()
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	p.call("/api/v1/alerts", &data)
	names := map[string]bool{}
	for _, alert := range data.Alerts {
		if alert.State == "firing" && alert.Labels["job"] == job {
			names[alert.Labels["alertname"]] = true
		}
	}
	return names
}

func (p *prometheus) call(path string, data any) {
	p.t.Helper()
	status, body := ask("GET", p.base+path)
	var envelope struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &envelope); err != nil || envelope.Status != "success" {
		p.t.Fatalf("%s: status %d, %s", path, status, body)
	}
	if err := json.Unmarshal(envelope.Data, data); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, body)
	}
}
