package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
	"toolctl.dev/toolctl/pkg/scenario/update"
)

// Suite runs the scenarios of files.
type Suite struct {
	*Config
	// Paths are the files and folders.
	Paths []string
	// Only is a regular expression for the names of scenarios, Selector selects their labels, and Shard selects
	// one part of the result, as I/N. Default: all.
	Only, Selector, Shard string
	// Update writes the observed results into the expectations of calls that differ.
	Update bool
	// Live calls the real tools instead of mocks.
	Live bool
	// Timeout is the time limit of one scenario. Parallel is the number of scenarios that run at once; 0 means
	// the number of processors.
	Timeout          time.Duration
	Parallel         int
	FailFast, Strict bool
	// Responses is a file of PromptKit's mock responses. Default: none.
	Responses string
	Judge     Judge
	// Cover computes the coverage, which must reach MinCoverage percent.
	Cover       bool
	MinCoverage float64
	// Report is the file for the report that the console shows. Default: a file beside the store, if there is
	// one.
	Report string
	// Problems is called with violations outside of scenarios. Begun is called with the number of scenarios and
	// returns functions that are called with each result and at the end. Updated is called for each file that
	// Update has changed or failed to change.
	Problems func([]v1.Violation)
	Begun    func(scenarios int) (played func(scenario.Result), ended func())
	Updated  func(file string, expectations int, err error)

	has          func(*v1.Scenario) bool
	part, shards int // the parts of Shard, from 1; 0 means no shard
}

// Judge selects the model that judges assertions of the type llm_judge. Default: none.
type Judge struct {
	Model    string // written as PROVIDER:MODEL
	Script   string // file with the replies of a scripted judge
	MaxCalls int
}

// Tested is the result of a [Suite].
type Tested struct {
	*scenario.Report
	// Coverage is nil unless Cover is set.
	Coverage *scenario.Coverage
	// NotKept is the error of writing a report that was not requested.
	NotKept error

	set *manifest.Set
	min float64
}

// Check checks the options.
func (s *Suite) Check() error {
	only, err := regexp.Compile(s.Only)
	if err != nil {
		return usagef("--run %q: %w", s.Only, err)
	}
	labels, err := Labeled(s.Selector)
	if err != nil {
		return err
	}
	s.has = func(o *v1.Scenario) bool { return only.MatchString(o.Metadata.Name) && labels(o) }
	if s.Shard != "" {
		i, n, ok := strings.Cut(s.Shard, "/")
		part, err1 := strconv.Atoi(i)
		parts, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || part < 1 || part > parts {
			return usagef("--shard %q: expected I/N with I from 1 to N, such as 2/4", s.Shard)
		}
		s.part, s.shards = part, parts
	}
	switch {
	case s.Timeout <= 0:
		return usagef("--timeout %s: expected a time above 0", s.Timeout)
	case s.Judge.MaxCalls < 1:
		return usagef("--max-judge-calls %d: expected a number above 0", s.Judge.MaxCalls)
	case s.Parallel < 0:
		return usagef("--parallel %d: expected a number above 0", s.Parallel)
	case s.MinCoverage < 0 || s.MinCoverage > 100:
		return usagef("--min-coverage %g: expected a percentage from 0 to 100", s.MinCoverage)
	case s.Update && s.Live:
		return usagef("--update and --live cannot be used together: record the results of real tools with 'toolctl record'")
	}
	return nil
}

// Run runs the scenarios, and runs them again when Update has changed a file. A scenario that fails is not an
// error: see [Tested.Verdict].
func (s *Suite) Run(ctx context.Context) (*Tested, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	t, err := s.play(ctx)
	if err == nil && s.Update && s.update(t.Report) {
		t, err = s.play(ctx)
	}
	if err == nil {
		err = s.keep(t)
	}
	return t, err
}

// Watch runs the scenarios now and after each change of a file, until ctx ends. It passes the results to played, and
// errors of following the files to missed.
func (s *Suite) Watch(ctx context.Context, played func(*Tested, error), missed func(error)) error {
	if err := s.Check(); err != nil {
		return err
	}
	for _, path := range s.Paths {
		if path == "-" {
			return usagef("--watch needs files or folders, not stdin")
		}
		if _, err := os.Stat(path); err != nil {
			return &UsageError{err}
		}
	}
	news, err := gateway.Files(s.manifests(), s.Paths...).Watch(ctx, missed)
	if err != nil {
		return err
	}
	for range news {
		played(s.Run(ctx))
	}
	return nil
}

func (s *Suite) play(ctx context.Context) (*Tested, error) {
	set, scenarios, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	o := scenario.Options{Timeout: s.Timeout, Parallel: s.Parallel, FailFast: s.FailFast, Strict: s.Strict}
	if o.Responses, err = s.readResponses(); err != nil {
		return nil, err
	}
	if o.Judge, err = s.judge(); err != nil {
		return nil, err
	}
	if s.Judge.Script != "" { // its replies have a fixed order
		o.Parallel = 1
	}
	if s.Begun != nil {
		var ended func()
		o.Done, ended = s.Begun(len(scenarios))
		defer ended()
	}
	t := &Tested{set: set, min: s.MinCoverage}
	if t.Report, err = s.playLive(ctx, s.Live, Test{set.Objects, scenarios, o}); err == nil && (s.Cover || s.MinCoverage > 0) {
		t.Coverage = scenario.Cover(set.Objects, t.Report)
	}
	return t, err
}

// playLive runs scenarios, with real executors if live is set.
func (c *Config) playLive(ctx context.Context, live bool, t Test) (_ *scenario.Report, err error) {
	if live {
		opts, err := c.reaching()
		if err != nil {
			return nil, err
		}
		var mu sync.Mutex // scenarios run in parallel
		var all []*gateway.Gateway
		defer func() {
			for _, g := range all {
				err = errors.Join(err, g.Close())
			}
		}()
		t.Options.Live = func(ctx context.Context, objects []v1.Object, counters policy.Counters) (*registry.Registry, error) {
			o := opts
			o.Objects, o.Counters = objects, counters
			g, err := gateway.Open(ctx, o)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			all = append(all, g)
			mu.Unlock()
			if states := g.Discover(ctx); c.Asked != nil {
				c.Asked(states)
			}
			return g.Registry(), nil
		}
	}
	return t.Run(ctx)
}

// load reads the manifests and selects the scenarios.
func (s *Suite) load(ctx context.Context) (*manifest.Set, []*v1.Scenario, error) {
	set, err := manifest.Load(ctx, s.Paths, s.manifests())
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	var scenarios []*v1.Scenario
	found, chosen := 0, 0
	for _, obj := range set.Objects {
		o, ok := obj.(*v1.Scenario)
		if !ok || s.Namespace != "" && o.Namespace() != s.Namespace {
			continue
		}
		found++
		if !s.has(o) {
			continue
		}
		if s.shards == 0 || chosen%s.shards == s.part-1 {
			scenarios = append(scenarios, o)
		}
		chosen++
	}
	if s.Problems != nil {
		s.Problems(slices.DeleteFunc(slices.Clone(set.Violations), func(v v1.Violation) bool { // the report has those of scenarios
			return v.IsWarning() || slices.ContainsFunc(scenarios, func(o *v1.Scenario) bool { return slices.Contains(o.Violations, v) })
		}))
	}
	switch {
	case found == 0 && set.Failed():
		return nil, nil, invalidf("no scenario can be read")
	case found == 0:
		return nil, nil, usagef("no Scenario manifest in %s", strings.Join(s.Paths, ", "))
	case chosen == 0:
		return nil, nil, usagef("--run %q matches none of %s", s.Only, clip.Count(found, "scenario"))
	}
	return set, scenarios, nil
}

func (s *Suite) readResponses() (*scenario.Responses, error) {
	if s.Responses == "" {
		return nil, nil
	}
	data, err := regular.ReadFile(s.Responses)
	if err != nil {
		return nil, &UsageError{err}
	}
	raw, place, violations := manifest.ToJSONPlaced(s.Responses, data)
	var responses *scenario.Responses
	if raw != nil {
		var more []v1.Violation
		responses, more = scenario.ReadResponses(raw)
		for _, v := range more {
			v.Source = place(v.Path)
			violations = append(violations, v)
		}
	}
	manifest.SortViolations(violations)
	if s.Problems != nil {
		s.Problems(violations)
	}
	if bad := slices.DeleteFunc(violations, v1.Violation.IsWarning); len(bad) > 0 {
		return nil, invalidf("%s in %s", clip.Count(len(bad), "error"), s.Responses)
	}
	return responses, nil
}

// judge returns the model that judges; nil if the options name no model.
func (s *Suite) judge() (*scenario.Judge, error) {
	provider, name, named := strings.Cut(s.Judge.Model, ":")
	switch {
	case s.Judge.Script != "" && (s.Judge.Model == "" || provider == scripted.Provider):
		provider = scripted.Provider
	case s.Judge.Script != "":
		return nil, usagef("--judge-script replaces the model: leave out --judge-model")
	case s.Judge.Model == "":
		return nil, nil
	case !named || name == "":
		return nil, usagef("--judge-model %q: expected PROVIDER:MODEL, such as openai:gpt-5-mini, with a provider of %s", s.Judge.Model, strings.Join(Providers(), ", "))
	}
	model, err := newModel(provider, modelOptions{env: s.env, script: s.Judge.Script, flag: "--judge-script"})
	if err != nil {
		return nil, err
	}
	return &scenario.Judge{Model: model, Name: name, MaxCalls: s.Judge.MaxCalls}, nil
}

// update writes the observed results into the expectations of the scenarios. It reports whether a file has
// changed.
func (s *Suite) update(r *scenario.Report) (changed bool) {
	byFile := map[string][]*scenario.Result{}
	for i := range r.Scenarios {
		if res := &r.Scenarios[i]; len(res.Updates()) > 0 {
			byFile[res.Source.File] = append(byFile[res.Source.File], res)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		n, err := update.File(file, byFile[file])
		changed = changed || err == nil
		if s.Updated != nil {
			s.Updated(file, n, err)
		}
	}
	return changed
}

// keep writes the report with its coverage for the console.
func (s *Suite) keep(t *Tested) error {
	at := s.Report
	if at == "" {
		dir := s.StoreFolder()
		if info, err := os.Stat(dir); dir == "" || err != nil || !info.IsDir() {
			return nil //nolint:nilerr // without that folder there is no store
		}
		at = filepath.Join(dir, report.KeptFile)
	}
	cov := t.Coverage
	if cov == nil {
		cov = scenario.Cover(t.set.Objects, t.Report)
	}
	err := report.Keep(at, &report.Kept{Time: time.Now().UTC().Truncate(time.Second), Paths: s.Paths, Report: t.Report, Coverage: cov})
	if s.Report == "" { // the report was not requested
		t.NotKept, err = err, nil
	}
	return err
}

// Verdict returns an error if a scenario did not pass or the coverage is too low.
func (t *Tested) Verdict() error {
	switch {
	case t.Invalid > 0:
		text := clip.Count(t.Invalid, "scenario") + " cannot be played"
		if !slices.ContainsFunc(t.set.Objects, func(o v1.Object) bool { return o.Head().Kind == v1.KindTool }) {
			text += ": no Tool manifest was read; also name the files of the tools (the store is not used)"
		}
		return invalidf("%s", text)
	case t.set.Failed():
		return invalidf("manifests have errors: see 'toolctl validate'")
	case t.Failed > 0:
		return fmt.Errorf("%s failed", clip.Count(t.Failed, "scenario"))
	case t.Coverage != nil && t.Coverage.Percent < t.min:
		return fmt.Errorf("coverage is %.1f%%, below %g%%", t.Coverage.Percent, t.min)
	}
	return nil
}
