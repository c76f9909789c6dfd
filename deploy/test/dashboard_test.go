package deploytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const dashboardFile = "deploy/grafana/nudged.json"

// dashboard is what these tests read of the model of Grafana.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Datasource             struct{ UID string }
		}
	}
	Links  []struct{ URL string }
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               *struct{ Type, UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Links                    []struct{ URL string }
	Options                  struct{ Content string }
	Targets                  []struct {
		Datasource struct{ Type, UID string }
		Expr       string
		RefID      string
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled is an expression of the dashboard with its variables replaced, as Grafana does.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "5m", "$job", "nudged", "$instance", ".+").Replace(expr)
}

func TestDashboardRows(t *testing.T) {
	want := []string{
		"Is it alive?", "Is it on time?", "What went out, what did not, and why?",
		"What is unknown?", "Is the mail server well?", "Is the database well?",
	}
	var got []string
	ids, taken := map[int]bool{}, map[string]string{}
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			got = append(got, p.Title)
		}
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: the id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				place := fmt.Sprintf("%d/%d", x, y)
				if other, is := taken[place]; is || x > 23 {
					t.Errorf("%s lies on %s, or outside", p.Title, other)
				}
				taken[place] = p.Title
			}
		}
		if p.Type == "row" || p.Type == "text" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s has no description, no unit or no query", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || p.Datasource == nil || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s does not ask the data source that is chosen", p.Title)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
}

func TestDashboardVariables(t *testing.T) {
	var got []string
	for _, v := range readDashboard(t).Templating.List {
		got = append(got, v.Name)
		if v.Type == "query" && (v.Datasource.UID != "${datasource}" || !strings.HasPrefix(v.Definition, "label_values(nudged_build_info")) {
			t.Errorf("$%s is %s of %s", v.Name, v.Definition, v.Datasource.UID)
		}
	}
	if want := []string{"datasource", "job", "instance"}; !slices.Equal(got, want) {
		t.Errorf("the variables are %v, want %v", got, want)
	}
}

func TestDashboardLinksToTheRunbook(t *testing.T) {
	anchors := headings(read(t, "docs/runbook.md"))
	d := readDashboard(t)
	var urls []string
	for _, link := range d.Links {
		urls = append(urls, link.URL)
	}
	for _, p := range d.Panels {
		for _, link := range p.Links {
			urls = append(urls, link.URL)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(p.Options.Content, -1) {
			urls = append(urls, m[1])
		}
	}
	linked := map[string]bool{}
	for _, url := range urls {
		page, anchor, has := strings.Cut(url, "#")
		if !strings.HasSuffix(page, "/runbook.md") || has && !slices.Contains(anchors, anchor) {
			t.Errorf("%s leads nowhere", url)
		}
		linked[anchor] = true
	}
	_, alerts := rules(t)
	for _, alert := range alerts {
		if !linked[strings.ToLower(alert.Alert)] {
			t.Errorf("no panel links to what the runbook says about %s", alert.Alert)
		}
	}
}

// fromDatabase are the gauges that say the same on every replica.
var fromDatabase = []string{
	"nudged_requests_open", "nudged_slots_due", "nudged_oldest_due_slot_timestamp_seconds",
	"nudged_unknown_outcomes", "nudged_requests_misconfigured",
}

// Every query parses, obeys the variables, names only metrics that are there, and adds up what may
// be added up.
func TestDashboardQueries(t *testing.T) {
	kinds := exposed(t)
	recorded := map[string]bool{}
	recordings, _ := rules(t)
	for _, rule := range recordings {
		recorded[rule.Record] = true
	}
	shown := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "rate(") && !strings.Contains(target.Expr, "$__rate_interval") {
				t.Errorf("%s: a rate is not taken over $__rate_interval: %s", p.Title, target.Expr)
			}
			expr, err := promQL().ParseExpr(filled(target.Expr))
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
				continue
			}
			parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				family := familyOf(selector.Name, kinds)
				shown[family] = true
				if kinds[family] == "" && !recorded[selector.Name] && selector.Name != "up" {
					t.Errorf("%s: no daemon exposes %s", p.Title, selector.Name)
				}
				for _, label := range []string{"job", "instance"} {
					if !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label }) {
						t.Errorf("%s: %s does not obey $%s", p.Title, selector.Name, label)
					}
				}
				op := innermost(path)
				switch kind := kinds[family]; {
				case slices.Contains(fromDatabase, family):
					if op != parser.MAX {
						t.Errorf("%s: %s is the same on every replica: want max", p.Title, selector.Name)
					}
				case (kind == "counter" || kind == "histogram") && strings.HasPrefix(family, "nudged_"):
					if op != parser.SUM {
						t.Errorf("%s: %s is each replica's own: want sum", p.Title, selector.Name)
					}
				}
				return nil
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if strings.HasPrefix(name, "nudged_") && !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// innermost returns the operator of the aggregation just around a selector.
func innermost(path []parser.Node) parser.ItemType {
	for _, node := range slices.Backward(path) {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			return aggregate.Op
		}
	}
	return 0
}

// The rules name only metrics that are there, too.
func TestRulesNameMetricsThatExist(t *testing.T) {
	kinds := exposed(t)
	recordings, alerts := rules(t)
	recorded := map[string]bool{"up": true}
	for _, rule := range recordings {
		recorded[rule.Record] = true
	}
	for _, rule := range slices.Concat(recordings, alerts) {
		expr, err := promQL().ParseExpr(rule.Expr.String())
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok && !recorded[selector.Name] && kinds[familyOf(selector.Name, kinds)] == "" {
				t.Errorf("%s%s: no daemon exposes %s", rule.Alert, rule.Record, selector.Name)
			}
			return nil
		})
	}
}

// exposed returns name and type of every metric of a running daemon.
func exposed(t *testing.T) map[string]string {
	t.Helper()
	s := newSite(t, "")
	s.due("r", 1, time.Minute)
	d := s.start().ready()
	s.waitReminders("sent", 1)
	_, text := d.get("/metrics")
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	return kinds
}

// familyOf is the name of the metric that a series belongs to.
func familyOf(series string, kinds map[string]string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && kinds[name] == "histogram" {
			return name
		}
	}
	return series
}

// everyQueryReturnsData asks a Prometheus what the dashboard would ask it.
func everyQueryReturnsData(t *testing.T, p *prometheus) {
	t.Helper()
	queries := 0
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			queries++
			expr := filled(target.Expr)
			wait(t, fmt.Sprintf("data for %q: %s", panel.Title, expr), func() bool { return p.hasData(expr) })
		}
	}
	t.Logf("%d queries of the dashboard return data", queries)
}
