package grafana

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard is what the test reads of dashboard.json.
type dashboard struct {
	Panels []struct {
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

// variables puts values where Grafana does.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$job", "toolctl", "$instance", ".*")

// Each expression of the dashboard and of the alerts has a result on a gateway that uses everything, and no name or
// label in it is one that the gateway does not have.
func TestExpressions(t *testing.T) {
	full := serve(t, "--store", applied(t, echo), "--store-max-bytes", "1000000")
	for !strings.Contains(full.call("echo", large), "audit log cannot be written") {
		continue
	}
	p := newPrometheus(t, everything(t), full)
	p.pass(2*time.Minute, func() {
		for _, tool := range []string{"echo", "pay", "once", "broken", "notes__echo"} {
			p.targets[0].call(tool, nil)
		}
		full.call("echo", large)
	})
	metrics, known := map[string]bool{}, map[string]bool{"job": true, "instance": true}
	for _, all := range p.series {
		for _, l := range all {
			metrics[l.Get("__name__")] = true
			maps.Copy(known, maps.Collect(func(yield func(string, bool) bool) {
				for name := range l.Map() {
					if !yield(name, true) {
						return
					}
				}
			}))
		}
	}
	check := func(where, text string) {
		t.Helper()
		expr, err := parser.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %s: %v", where, text, err)
			return
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			var names []string
			switch n := n.(type) {
			case *parser.VectorSelector:
				if !metrics[n.Name] {
					t.Errorf("%s: there is no metric %s", where, n.Name)
				}
				for _, m := range n.LabelMatchers {
					names = append(names, m.Name)
				}
			case *parser.AggregateExpr:
				names = n.Grouping
			case *parser.BinaryExpr:
				if n.VectorMatching != nil {
					names = slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
				}
			}
			for _, l := range names {
				if !known[l] {
					t.Errorf("%s: no metric has the label %s", where, l)
				}
			}
			return nil
		})
	}
	for _, r := range rules(t) {
		check(r.Alert, r.Expr)
	}

	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, panel := range d.Panels {
		if panel.GridPos.X+panel.GridPos.W > 24 || (len(panel.Targets) == 0) != (panel.Type == "row") {
			t.Errorf("%s: it is too wide or shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			expr := variables.Replace(target.Expr)
			check(panel.Title, expr)
			found := p.query(expr, p.now)
			if len(found) == 0 {
				t.Errorf("%s: %s has no result", panel.Title, target.Expr)
			}
			for _, name := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.ContainsFunc(found, func(s promql.Sample) bool { return s.Metric.Get(name[1]) != "" }) {
					t.Errorf("%s: the legend names %s, which no result has", panel.Title, name[1])
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if selector, _, ok := strings.Cut(strings.TrimPrefix(v.Definition, "label_values("), ", "); ok {
			check("variable "+v.Name, variables.Replace(selector))
		}
	}
}

// everything starts a gateway that has every metric.
func everything(t *testing.T) *gateway {
	t.Helper()
	upstream := serve(t, "-f", write(t, echo))
	dir := write(t, careful+fmt.Sprintf(`
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: once}
spec: {description: May be called once, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: once}
spec: {limits: [{tools: [once], max_calls: 1, per: session}]}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: broken}
spec: {description: Asks what is not there, input_schema: {type: object}, http: {url: "http://127.0.0.1:1/"}}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {url: %q}
`, upstream.url))
	commit(t, dir)
	g := serve(t, "--allow-private-network", "--source", "git+file://"+dir, "--store", filepath.Join(t.TempDir(), "state.db"), "--replica-key-file", key(t), "--ui")
	if _, err := get(strings.TrimSuffix(g.url, "mcp") + "ui/"); err != nil {
		t.Fatal(err)
	}
	return g
}
