package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

// Options configure a Runner.
type Options struct {
	// Mock is the executor for mocks that manifests of tools declare, such as mock_result.
	// Required unless Live is set.
	Mock registry.Executor
	// Executors and Rules are those that the program adds in Go. Mocked scenarios replace the
	// executors and apply the rules. Default: none.
	Executors []registry.Executor
	Rules     []policy.Rule
	// ToJSON converts a cassette, which is YAML or JSON, to JSON. Required for scenarios with
	// cassettes.
	ToJSON func(name string, data []byte) (json.RawMessage, []v1.Violation)
	// Live plays without mocks. It creates the registry that makes the calls, once for each
	// choice of tools and policies. Its policies must use the counters, which keep scenarios
	// apart. Default: scenarios are mocked.
	Live func(ctx context.Context, objects []v1.Object, counters policy.Counters) (*registry.Registry, error)
	// Responses scripts the model of scenarios that have no script of their own.
	Responses *Responses
	// Judge judges assertions of the type llm_judge. Default: they are not judged.
	Judge *Judge
	// Timeout is the time limit for one scenario. Default: none.
	Timeout time.Duration
	// Parallel is the maximum number of scenarios at once. Default: the number of processors.
	Parallel int
	// Strict fails scenarios with checks that are not judged.
	Strict bool
	// FailFast skips the scenarios after the first one that does not pass.
	FailFast bool
	// Done is called with each finished scenario, one at a time, in any order. Default: none.
	Done func(Result)
}

// Runner plays scenarios over one set of manifests. Its methods are safe for concurrent use.
type Runner struct {
	opts    Options
	objects []v1.Object
	base    *registry.Registry // registry of all objects, to look up names
	schemas *validate.Cache

	judged atomic.Int64 // number of assertions sent to the judge

	mu     sync.Mutex
	shared map[string]*selection // by the chosen tools and policies
}

// New returns a Runner over the objects. It returns an error if both Mock and Live are missing.
func New(objects []v1.Object, o Options) (*Runner, error) {
	if o.Live == nil && o.Mock == nil {
		return nil, errors.New("scenario: neither a mock executor nor a live registry")
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	base, err := registry.New(objects, registry.Options{Executors: o.answerers(nil), Rules: o.Rules})
	if err != nil {
		return nil, err
	}
	return &Runner{opts: o, objects: objects, base: base, schemas: validate.NewCache(validate.Options{}), shared: map[string]*selection{}}, nil
}

// Run plays the scenarios. When ctx ends, unfinished scenarios fail.
func (r *Runner) Run(ctx context.Context, scenarios []*v1.Scenario) *Report {
	results := make([]Result, len(scenarios))
	var mu sync.Mutex
	firstBad := len(scenarios)
	parallel.Limit(len(scenarios), r.opts.Parallel, func(i int) {
		mu.Lock()
		skip := r.opts.FailFast && i > firstBad
		mu.Unlock()
		if skip {
			return
		}
		res := r.one(ctx, scenarios[i])
		mu.Lock()
		defer mu.Unlock()
		results[i] = res
		if res.Status == Failed || res.Status == Invalid {
			firstBad = min(firstBad, i)
		}
		if r.opts.Done != nil {
			r.opts.Done(res)
		}
	})
	report := &Report{Scenarios: results}
	for i := range results {
		if r.opts.FailFast && i > firstBad {
			// The results of later scenarios are dropped, so that the report does not depend on how
			// many ran in parallel.
			results[i] = newResult(scenarios[i])
			results[i].Status, results[i].Reason = Skipped, "not run: an earlier scenario did not pass"
			results[i].Total = total(scenarios[i])
		}
		report.count(&results[i])
	}
	return report
}

func (r *Report) count(res *Result) {
	r.Judged, r.Total = r.Judged+res.Judged, r.Total+res.Total
	if res.Judge != nil {
		if r.Judge == nil {
			r.Judge = &JudgeUse{}
		}
		r.Judge.Calls += res.Judge.Calls
		r.Judge.Add(res.Judge.Usage)
	}
	switch res.Status {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	case Invalid:
		r.Invalid++
	case Skipped:
		r.Skipped++
	}
}

func newResult(s *v1.Scenario) Result {
	return Result{Name: s.Metadata.Name, Namespace: s.Namespace(), Description: s.Spec.Description, Source: s.Source,
		Turns: []Turn{}, Unjudged: []Unjudged{}, Failures: []Failure{}, Warnings: []v1.Violation{}, scenario: s}
}

// one plays one scenario.
func (r *Runner) one(ctx context.Context, s *v1.Scenario) Result {
	p := &player{runner: r, spec: &s.Spec, res: newResult(s), counts: policy.NewMemoryCounters(r.now)}
	r.play(ctx, p)
	p.conceal()
	return p.res
}

// play plays the scenario of a player.
func (r *Runner) play(ctx context.Context, p *player) {
	s := p.res.scenario
	if s.Broken() {
		for _, f := range v1.Errors(s.Violations) {
			p.fail(Failure{What: "scenario", Message: v1.FieldPath(f.Path) + ": " + f.Message, Field: f.Path, Source: f.Source})
		}
		p.res.Status = Invalid
		return
	}
	if r.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.opts.Timeout)
		defer cancel()
	}
	if !p.prepare(ctx) {
		p.res.Status = Invalid
		return
	}
	p.play(context.WithValue(ctx, playerKey{}, p))
	if err := ctx.Err(); err != nil {
		message := "interrupted"
		if errors.Is(err, context.DeadlineExceeded) {
			message = "timed out"
			if r.opts.Timeout > 0 {
				message += " after " + clip.Duration(r.opts.Timeout)
			}
		}
		p.fail(Failure{What: "scenario", Message: message})
	}
	p.finish()
}

// answerers returns a replacement for every executor.
func (o *Options) answerers(mock registry.Executor) []registry.Executor {
	var all []registry.Executor
	for _, name := range v1.ExecutorNames() {
		all = append(all, &answerer{name: name, mock: mock})
	}
	for _, e := range o.Executors {
		if !slices.Contains(v1.ExecutorNames(), e.Name()) {
			all = append(all, &answerer{name: e.Name(), mock: mock, of: e})
		}
	}
	return all
}

// scenarioName returns the name of a scenario for messages.
func scenarioName(s *v1.Scenario) string {
	if s.Namespace() == v1.DefaultNamespace {
		return s.Metadata.Name
	}
	return strings.Join([]string{s.Namespace(), s.Metadata.Name}, "/")
}
