package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Verify makes the calls in spec.examples of tools and compares the results.
type Verify struct {
	*Config
	Tools
	// Live calls the real tools instead of mocks, and compares their servers with the lock.
	Live bool
	// Timeout is the time limit for the examples of one tool. Default: the timeouts of the tools.
	Timeout time.Duration
}

// Verified is the result of a [Verify].
type Verified struct {
	*scenario.Report
	// Drift are the differences of servers from the lock.
	Drift []lock.Drift
}

// Run makes the calls. Drift is not an error: see [Verified.Verdict].
func (v *Verify) Run(ctx context.Context) (r *Verified, err error) {
	err = v.with(ctx, v.Config, "spec.examples", func(t *v1.Tool) bool { return len(t.ExampleCalls()) > 0 }, func(w *Workspace, tools []*v1.Tool) error {
		if err := v.placeFields(ctx, tools); err != nil {
			return err
		}
		var scenarios []*v1.Scenario
		for _, t := range tools {
			s := scenario.FromExamples(t)
			if s == nil {
				return usagef("tool %q has no call in spec.examples to verify", t.Metadata.Name)
			}
			scenarios = append(scenarios, s)
		}
		r = &Verified{}
		r.Report, err = v.playLive(ctx, v.Live, Test{scenario.HoldResults(w.Registry.Objects()), scenarios, scenario.Options{Timeout: v.Timeout}})
		if err == nil && v.Live {
			r.Drift, err = lockDrift(ctx, w, tools)
		}
		return err
	})
	return r, err
}

// Verdict returns an error if something drifted.
func (r *Verified) Verdict() error {
	switch {
	case r.Failed+r.Invalid > 0:
		return fmt.Errorf("%s drifted from the examples", clip.Count(r.Failed+r.Invalid, "tool"))
	case len(r.Drift) > 0:
		return fmt.Errorf("%s from %s", clip.Count(len(r.Drift), "difference"), lock.Name)
	}
	return nil
}

// placeFields gives tools of files the positions of their fields, so that a difference names the line of the
// example.
func (v *Verify) placeFields(ctx context.Context, tools []*v1.Tool) error {
	if len(v.Files) == 0 || slices.Contains(v.Files, "-") {
		return nil
	}
	opts := v.manifests()
	opts.Fields = true
	set, err := manifest.Load(ctx, v.Files, opts)
	if err != nil {
		return err
	}
	for _, obj := range set.Objects {
		for _, t := range tools {
			if obj.Head().Key() == t.Key() {
				t.Fields = obj.Head().Fields
			}
		}
	}
	return nil
}

// lockDrift compares the MCP servers of the tools with the lock, if there is one.
func lockDrift(ctx context.Context, w *Workspace, tools []*v1.Tool) ([]lock.Drift, error) {
	var keys []v1.Key
	for _, t := range tools {
		if k, ok := t.Server(); ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	path, err := lock.Find(w.LockFile)
	if err != nil {
		return nil, err
	}
	old, err := lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now, _ := LockServers(w.Discover(ctx, keys...)) // the examples of a server that is not ready have failed
	return old.Drift(now), nil
}

// Tools selects tools of a workspace.
type Tools struct {
	// Names are the tools, which must be ready. Default: all that the verb can use.
	Names    []string
	Selector string
}

// with opens a workspace and calls do with the named tools, or with all tools for which has is true. what describes
// these tools in messages.
func (q *Tools) with(ctx context.Context, c *Config, what string, has func(*v1.Tool) bool, do func(*Workspace, []*v1.Tool) error) error {
	labels, err := Labeled(q.Selector)
	if err != nil {
		return err
	}
	return c.within(ctx, func(w *Workspace) error {
		var tools []*v1.Tool
		for _, name := range q.Names {
			it, err := w.Registry.Lookup(c.Namespace, name)
			if err != nil {
				return err
			}
			if it.Object.Head().Broken() {
				return v1.NewValidationError(v1.ManifestInvalid, it.Tool().Metadata.Name, it.Reasons)
			}
			tools = append(tools, it.Tool())
		}
		if len(q.Names) > 0 {
			return do(w, tools)
		}
		page, err := w.Registry.List(registry.Query{Kind: v1.KindTool, Namespace: c.Namespace})
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			if t := it.Tool(); !t.Broken() && has(t) && labels(t) {
				tools = append(tools, t)
			}
		}
		if len(tools) == 0 {
			return usagef("no tool has %s", what)
		}
		return do(w, tools)
	})
}

// Mock generates results that match the output schemas of tools.
type Mock struct {
	*Config
	Tools
	// Seed makes the results reproducible.
	Seed int64
}

// Run returns the results by the names of the tools in scenarios.
func (m *Mock) Run(ctx context.Context) (map[string]v1.MockResponse, error) {
	mocks := map[string]v1.MockResponse{}
	return mocks, m.with(ctx, m.Config, "an output_schema", func(t *v1.Tool) bool { return len(t.Spec.OutputSchema) > 0 }, func(_ *Workspace, tools []*v1.Tool) error {
		for _, t := range tools {
			result, err := scenario.Generate(t, m.Seed)
			if err != nil {
				return &InvalidError{err}
			}
			name := t.Metadata.Name
			if t.Namespace() != v1.DefaultNamespace {
				name = t.Namespace() + "/" + name
			}
			mocks[name] = v1.MockResponse{Result: result}
		}
		return nil
	})
}
