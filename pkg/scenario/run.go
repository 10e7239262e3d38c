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
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

// Options say how scenarios are played.
type Options struct {
	// Mock answers a tool from what its manifest declares: mock_result and the like.
	// Required unless Live is set.
	Mock registry.Executor
	// Executors and Rules are what the program adds in Go: a mocked scenario answers for such
	// executors, and asks such rules. Default: none.
	Executors []registry.Executor
	Rules     []policy.Rule
	// ToJSON reads a file of one YAML or JSON value, for cassettes. The violations say what
	// cannot be read. Required for scenarios with cassettes.
	ToJSON func(name string, data []byte) (json.RawMessage, []v1.Violation)
	// Live plays without mocks: it makes the registry that carries out the calls, once
	// for each choice of tools and policies. Its policies must count in counters, which
	// keep scenarios apart. Default: scenarios are mocked.
	Live func(ctx context.Context, objects []v1.Object, counters policy.Counters) (*registry.Registry, error)
	// Responses scripts the model of scenarios that have no script of their own.
	Responses *Responses
	// Judge is asked about assertions of the type llm_judge. Default: they are not judged.
	Judge *Judge
	// Timeout is the time for one scenario. Default: none.
	Timeout time.Duration
	// Parallel is how many scenarios are played at once. Default: the number of processors.
	Parallel int
	// Strict fails scenarios of which something is not judged.
	Strict bool
	// FailFast skips what comes after the first scenario that does not pass.
	FailFast bool
	// Done is told of each scenario that has ended, in no fixed order, one at a time.
	// Default: nobody is told.
	Done func(Result)
}

// Runner plays scenarios over one set of manifests. Its methods may be called by
// many goroutines at once.
type Runner struct {
	opts    Options
	objects []v1.Object
	base    *registry.Registry // of all objects, to find names in
	schemas *validate.Cache

	judged atomic.Int64 // how many assertions the judge was asked about

	mu     sync.Mutex
	shared map[string]*selection // by what is chosen
}

// New returns a Runner over the objects. The error says that the options
// contradict each other.
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

// Run plays the scenarios. When ctx ends, those that have not ended fail.
func (r *Runner) Run(ctx context.Context, scenarios []*v1.Scenario) *Report {
	results := make([]Result, len(scenarios))
	var mu sync.Mutex
	firstBad := len(scenarios)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(r.opts.Parallel, len(scenarios)) {
		wg.Go(func() {
			for i := range next {
				mu.Lock()
				skip := r.opts.FailFast && i > firstBad
				mu.Unlock()
				if skip {
					continue
				}
				results[i] = r.one(ctx, scenarios[i])
				if bad(results[i].Status) {
					mu.Lock()
					firstBad = min(firstBad, i)
					mu.Unlock()
				}
				if r.opts.Done != nil {
					mu.Lock()
					r.opts.Done(results[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range scenarios {
		next <- i
	}
	close(next)
	wg.Wait()
	report := &Report{Scenarios: results}
	for i := range results {
		if r.opts.FailFast && i > firstBad {
			// What ran beside the one that failed is forgotten, so that the report does not
			// depend on how many ran at once.
			results[i] = newResult(scenarios[i])
			results[i].Status, results[i].Reason = Skipped, "not played: an earlier scenario did not pass"
			results[i].Total = total(scenarios[i])
		}
		report.count(&results[i])
	}
	return report
}

func bad(status string) bool { return status == Failed || status == Invalid }

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

// play has a player play its scenario.
func (r *Runner) play(ctx context.Context, p *player) {
	s := p.res.scenario
	if s.Broken() {
		for _, f := range s.Violations {
			if !f.IsWarning() {
				p.fail(Failure{What: "scenario", Message: v1.FieldPath(f.Path) + ": " + f.Message, Field: f.Path, Source: f.Source})
			}
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

// answerers answer for every executor that a tool may ask for.
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

// scenarioName names a scenario in messages.
func scenarioName(s *v1.Scenario) string {
	if s.Namespace() == v1.DefaultNamespace {
		return s.Metadata.Name
	}
	return strings.Join([]string{s.Namespace(), s.Metadata.Name}, "/")
}
