package deploytest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes/base/prometheusrule.yaml from deploy/prometheus")

const (
	prometheusDir  = "deploy/prometheus"
	prometheusRule = "deploy/kubernetes/base/prometheusrule.yaml"
)

// ruleFiles are the files of rules as prometheus.yml names them.
func ruleFiles() []string { return []string{"recording.yml", "alerts.yml"} }

// ruleGroups reads the rules, in the order of the files.
func ruleGroups(t *testing.T) (groups []monitoringv1.RuleGroup) {
	t.Helper()
	for _, file := range ruleFiles() {
		var spec monitoringv1.PrometheusRuleSpec
		if err := decode([]byte(read(t, filepath.Join(prometheusDir, file))), &spec); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		groups = append(groups, spec.Groups...)
	}
	return groups
}

// rules returns the rules of all groups: those that record and those that alert.
func rules(t *testing.T) (recordings, alerts []monitoringv1.Rule) {
	t.Helper()
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				recordings = append(recordings, rule)
			} else {
				alerts = append(alerts, rule)
			}
		}
	}
	return recordings, alerts
}

func TestPromtool(t *testing.T) {
	promtool := debian(t, "promtool", "prometheus")
	dir := filepath.Join(root, prometheusDir)
	for _, arguments := range [][]string{
		append([]string{"check", "rules"}, ruleFiles()...),
		{"check", "config", "prometheus.yml"},
		{"test", "rules", "tests.yml"},
	} {
		if got := execute(t, dir, nil, promtool, arguments...); got.status != 0 {
			t.Errorf("promtool %v ends with %d:\n%s%s", arguments, got.status, got.stdout, got.stderr)
		}
	}
}

// The PrometheusRule of Kubernetes has the rules of deploy/prometheus and no others.
func TestPrometheusRule(t *testing.T) {
	want, err := yaml.Marshal(map[string]any{
		"apiVersion": monitoringv1.SchemeGroupVersion.String(),
		"kind":       monitoringv1.PrometheusRuleKind,
		"metadata":   metav1.ObjectMeta{Name: "nudged"},
		"spec":       monitoringv1.PrometheusRuleSpec{Groups: ruleGroups(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want = append([]byte("# Written from deploy/prometheus: cd deploy/test && go test -run PrometheusRule -update\n"), want...)
	want = bytes.ReplaceAll(want, []byte("  creationTimestamp: null\n"), nil)
	if *update {
		if err := os.WriteFile(filepath.Join(root, prometheusRule), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, prometheusRule); got != string(want) {
		t.Errorf("%s is not what deploy/prometheus says: run this test with -update", prometheusRule)
	}
}

// wantAlerts are the alerts that other things rely on.
func wantAlerts() []string {
	return []string{
		"NudgedDown", "NudgedPassStalled", "NudgedBehindSchedule", "NudgedRelayDown", "NudgedSendsFailing",
		"NudgedUnknownOutcomes", "NudgedConfigReloadFailed", "NudgedClockSkew",
	}
}

func TestAlerts(t *testing.T) {
	_, alerts := rules(t)
	anchors := headings(read(t, "docs/runbook.md"))
	var names []string
	for _, alert := range alerts {
		names = append(names, alert.Alert)
		for _, key := range []string{"summary", "description", "runbook_url"} {
			if alert.Annotations[key] == "" {
				t.Errorf("%s has no %s", alert.Alert, key)
			}
		}
		if !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
			t.Errorf("%s has the severity %q", alert.Alert, alert.Labels["severity"])
		}
		page, anchor, _ := strings.Cut(alert.Annotations["runbook_url"], "#")
		if filepath.Base(page) != "runbook.md" || anchor != strings.ToLower(alert.Alert) || !slices.Contains(anchors, anchor) {
			t.Errorf("%s: the runbook has no heading for %s", alert.Alert, alert.Annotations["runbook_url"])
		}
		if alert.For == nil {
			t.Errorf("%s fires at the first sample", alert.Alert)
		}
	}
	for _, name := range wantAlerts() {
		if !slices.Contains(names, name) {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// headings returns what links call the headings of a document.
func headings(text string) (anchors []string) {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			title = strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#")))
			title = regexp.MustCompile(`[^\pL\pN\- _]`).ReplaceAllString(title, "")
			anchors = append(anchors, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return anchors
}

// ruleTests is what this test reads of a file for `promtool test rules`.
type ruleTests struct {
	Tests []struct {
		Name           string `json:"name"`
		AlertRuleTests []struct {
			AlertName string `json:"alertname"`
			ExpAlerts []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// Every alert has a test in which it must fire, and one in which it must never.
func TestAlertsAreTestedBothWays(t *testing.T) {
	var file ruleTests
	if err := yaml.Unmarshal([]byte(read(t, prometheusDir+"/tests.yml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]int{}, map[string]int{}
	for _, test := range file.Tests {
		fired := map[string]bool{}
		for _, c := range test.AlertRuleTests {
			fired[c.AlertName] = fired[c.AlertName] || len(c.ExpAlerts) > 0
		}
		for name, did := range fired {
			word := "is silent"
			if did {
				fires[name]++
				word = "fires"
			} else {
				silent[name]++
			}
			if !strings.HasPrefix(test.Name, name+" "+word) {
				t.Errorf("%q: the test is about %s, which %s", test.Name, name, word)
			}
		}
	}
	_, alerts := rules(t)
	for _, alert := range alerts {
		if fires[alert.Alert] == 0 || silent[alert.Alert] == 0 {
			t.Errorf("%s must fire in %d tests and keep silent in %d, want both", alert.Alert, fires[alert.Alert], silent[alert.Alert])
		}
	}
}

// Recording rules are called level:metric:operations, and something uses each.
func TestRecordingRules(t *testing.T) {
	recordings, alerts := rules(t)
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*:nudged_[a-z_]+[a-z]:[a-z0-9]+(_[a-z0-9]+)*$`)
	used := read(t, dashboardFile)
	for _, rule := range slices.Concat(recordings, alerts) {
		used += "\n" + rule.Expr.String()
	}
	for _, rule := range recordings {
		if !name.MatchString(rule.Record) || strings.Contains(rule.Record, "_total") {
			t.Errorf("%s is not called level:metric:operations", rule.Record)
		}
		if !strings.Contains(used, rule.Record) {
			t.Errorf("nothing uses %s", rule.Record)
		}
	}
}
