package grafana

import (
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/prometheus/common/model"
)

// interval is how often a Prometheus scrapes and evaluates its rules. Here its clock stands between two scrapes, so
// that an alert that needs half an hour is tested in a moment.
const interval = 15 * time.Second

// prometheus scrapes gateways into a store, as Prometheus does.
type prometheus struct {
	t       *testing.T
	db      *tsdb.DB
	engine  *promql.Engine
	began   time.Time
	now     time.Time
	targets []*gateway
	series  map[string]map[string]labels.Labels // of the scrape before, by target
}

func newPrometheus(t *testing.T, targets ...*gateway) *prometheus {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.MinBlockDuration = (24 * time.Hour).Milliseconds() // one block, so that nothing is compacted
	opts.MaxBlockDuration = opts.MinBlockDuration
	db, err := tsdb.Open(t.TempDir(), nil, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &prometheus{t: t, db: db, began: began, now: began, targets: targets, series: map[string]map[string]labels.Labels{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
}

// pass lets a time pass. Before each scrape it calls what happens meanwhile.
func (p *prometheus) pass(d time.Duration, meanwhile func()) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); {
		if meanwhile != nil {
			meanwhile()
		}
		p.now = p.now.Add(interval)
		app := p.db.Appender(p.t.Context())
		for _, g := range p.targets {
			p.scrape(app, g)
		}
		if err := app.Commit(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// scrape stores the metrics of one target. Series that are gone get the mark that says so.
func (p *prometheus) scrape(app storage.Appender, g *gateway) {
	p.t.Helper()
	at, now := g.metrics, map[string]labels.Labels{}
	add := func(l labels.Labels, v float64) {
		b := labels.NewBuilder(l)
		b.Set("job", "toolctl")
		b.Set("instance", at)
		l = b.Labels()
		now[l.String()] = l
		if _, err := app.Append(0, l, timestamp.FromTime(p.now), v); err != nil {
			p.t.Fatalf("%s: %v", l, err)
		}
	}
	up := 0.0
	if page, err := g.page(); err == nil {
		up = 1
		lines, err := textparse.New(page, "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		for {
			entry, err := lines.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				p.t.Fatal(err)
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				lines.Labels(&l)
				_, _, v := lines.Series()
				add(l, v)
			}
		}
	}
	add(labels.FromStrings(labels.MetricName, "up"), up)
	for name, l := range p.series[at] {
		if _, still := now[name]; !still {
			if _, err := app.Append(0, l, timestamp.FromTime(p.now), math.Float64frombits(value.StaleNaN)); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.series[at] = now
}

// query evaluates an expression at a time.
func (p *prometheus) query(expr string, at time.Time) promql.Vector {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.db, nil, expr, at)
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	v, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return append(promql.Vector{}, v...)
}

// alert is one that fires, with its annotations.
type alert struct{ name, summary, description string }

// firing evaluates a rule at each interval, as Prometheus does, and returns what fires at the end: that for which the expression
// had a result all the time that the rule asks for.
func (p *prometheus) firing(r rulefmt.Rule) (all []alert) {
	p.t.Helper()
	since := map[uint64]time.Time{}
	for at := p.began.Add(interval); !at.After(p.now); at = at.Add(interval) {
		still := map[uint64]time.Time{}
		for _, s := range p.query(r.Expr, at) {
			id := s.Metric.Hash()
			if still[id] = at; !since[id].IsZero() {
				still[id] = since[id]
			}
			if at.Equal(p.now) && at.Sub(still[id]) >= time.Duration(r.For) {
				all = append(all, alert{r.Alert, p.expand(r.Annotations["summary"], s), p.expand(r.Annotations["description"], s)})
			}
		}
		since = still
	}
	return all
}

// expand fills in an annotation. A label that is not there is an error.
func (p *prometheus) expand(text string, s promql.Sample) string {
	p.t.Helper()
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
	const names = "{{$labels := .Labels}}{{$value := .Value}}"
	e := template.NewTemplateExpander(p.t.Context(), names+text, "annotation", data, model.TimeFromUnixNano(p.now.UnixNano()), nil, nil, []string{"missingkey=error"})
	out, err := e.Expand()
	if err != nil || out == "" {
		p.t.Errorf("%s: %v", text, err)
	}
	return out
}

// rules are those of alerts.yaml, by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r
		}
	}
	return all
}
