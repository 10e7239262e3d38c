package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/update"
)

// live plays scenarios with real executors; the function that it returns ends those.
func (a *app) live(ctx context.Context, opts *scenario.Options) (end func(), err error) {
	o, err := a.gatewayOptions(ctx)
	if err != nil {
		return nil, err
	}
	var all action.Group
	opts.Live = func(ctx context.Context, objects []v1.Object, counters policy.Counters) (*registry.Registry, error) {
		o := o
		o.Objects, o.Counters = objects, counters
		g, err := all.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		a.warnStates(g.Discover(ctx))
		return g.Registry(), nil
	}
	return func() { a.closing(&all) }, nil
}

// judgeFlags choose the model that judges.
type judgeFlags struct {
	model, script string
	maxCalls      int
}

// newJudge makes the model that judges; nil when the flags name none.
func (o *testOptions) newJudge() (*scenario.Judge, error) {
	provider, name, named := strings.Cut(o.judge.model, ":")
	switch {
	case o.judge.script != "" && (o.judge.model == "" || provider == scriptedProvider):
		provider = scriptedProvider
	case o.judge.script != "":
		return nil, usagef("--judge-script takes the place of a model: leave --judge-model out")
	case o.judge.model == "":
		return nil, nil
	case !named || name == "":
		return nil, usagef("--judge-model %q: expected PROVIDER:MODEL, such as openai:gpt-5-mini, with a provider of %s", o.judge.model, strings.Join(providerNames(), ", "))
	}
	model, err := newModel(provider, modelOptions{env: o.env, script: o.judge.script, flag: "--judge-script"})
	if err != nil {
		return nil, err
	}
	return &scenario.Judge{Model: model, Name: name, MaxCalls: o.judge.maxCalls}, nil
}

// progress is one line on a terminal that says how far a run is.
type progress struct {
	w          io.Writer // nil when nobody watches
	n, of, bad int
}

func (o *testOptions) newProgress(of int) *progress {
	p := &progress{of: of}
	if isTerminal(o.err) && isTerminal(o.out) {
		p.w = o.err
		if s, ok := p.w.(screen); ok {
			p.w = s.w // it moves the cursor, and holds nothing foreign
		}
	}
	return p
}

func (p *progress) done(r scenario.Result) {
	if p.w == nil {
		return
	}
	p.n++
	if r.Status == scenario.Failed || r.Status == scenario.Invalid {
		p.bad++
	}
	fmt.Fprintf(p.w, "\r%d/%d played, %d failed", p.n, p.of, p.bad)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// writeUpdates writes what was observed into the expectations of the scenarios. It
// reports whether a file was changed.
func (o *testOptions) writeUpdates(r *scenario.Report) (changed bool) {
	byFile := map[string][]*scenario.Result{}
	for i := range r.Scenarios {
		if s := &r.Scenarios[i]; len(s.Updates()) > 0 {
			byFile[s.Source.File] = append(byFile[s.Source.File], s)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		n, err := update.File(file, byFile[file])
		if err != nil {
			fmt.Fprintf(o.err, "warning: %s is not updated: %v\n", file, err)
			continue
		}
		changed = true
		fmt.Fprintf(o.err, "updated %s: %s\n", file, count(n, "expectation"))
	}
	return changed
}
