package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

type verifyOptions struct {
	testOptions
	names []string
}

func newVerifyCmd(a *app) *cobra.Command {
	o := &verifyOptions{testOptions: testOptions{app: a, noun: "tool", step: "example"}}
	cmd := &cobra.Command{
		Use:   "verify [NAME]...",
		Short: "Make the calls of spec.examples, and say what drifted",
		Long: `Make the calls that Tool manifests give as spec.examples and compare what comes
back: with --live from the real upstreams, without it from mocks. A result that no
longer fits output_schema is a failure, and so is an MCP server that differs from
toolctl.lock. Without NAME: every tool that has examples.

The exit code is 1 when something drifted. Output formats (-o): table, json, junit,
tap, github.`,
		Annotations: formats("table", "json", "junit", "tap", "github"),
		Example: `  toolctl verify -f manifests/
  toolctl verify --live get-weather`,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.live, "live", false, "call the real tools instead of mocks")
	a.bindNetwork(cmd.Flags(), "with --live, ")
	a.bindSelector(cmd.Flags(), "tools")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "time for the examples of one tool (default: the tools' own)")
	return cmd
}

func (o *verifyOptions) run(ctx context.Context) error {
	format := o.format()
	has, err := o.selected()
	if err != nil {
		return err
	}
	w, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	o.warnViolations(w)
	tools, err := o.toolsWith(w, o.names, "spec.examples to verify", func(t *v1.Tool) bool { return len(t.Spec.Examples) > 0 && has(t) })
	if err != nil {
		return err
	}
	if err := o.placeFields(ctx, tools); err != nil {
		return err
	}
	var scenarios []*v1.Scenario
	for _, t := range tools {
		s := scenario.FromExamples(t)
		if s == nil {
			return usagef("tool %q has no spec.examples to verify", t.Metadata.Name)
		}
		scenarios = append(scenarios, s)
	}
	report, err := o.playExamples(ctx, w, scenarios)
	if err != nil {
		return err
	}
	if err := o.printReport(format, report); err != nil {
		return err
	}
	drift, err := o.lockDrift(ctx, w, tools)
	if err != nil {
		return err
	}
	for _, d := range drift {
		fmt.Fprintln(o.err, clip.Line(d.String()))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Failed+report.Invalid > 0:
		return statusError{exitFailed, fmt.Sprintf("%s drifted from the examples", count(report.Failed+report.Invalid, "tool"))}
	case len(drift) > 0:
		return statusError{exitFailed, fmt.Sprintf("%s from %s", count(len(drift), "difference"), lock.Name)}
	}
	return nil
}

// placeFields gives tools the places of their fields, so that a difference names the
// line of the example. What comes from the store has none.
func (o *verifyOptions) placeFields(ctx context.Context, tools []*v1.Tool) error {
	if len(o.files) == 0 || slices.Contains(o.files, "-") {
		return nil
	}
	opts := o.manifestOptions(ctx)
	opts.Fields = true
	set, err := manifest.Load(ctx, o.files, opts)
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

func (o *verifyOptions) playExamples(ctx context.Context, w *action.Workspace, scenarios []*v1.Scenario) (*scenario.Report, error) {
	opts := scenario.Options{Timeout: o.timeout}
	if o.live {
		end, err := o.app.live(ctx, &opts)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return action.Test{Objects: scenario.HoldResults(w.Registry.Objects()), Scenarios: scenarios, Options: opts}.Run(ctx)
}

// lockDrift says what the MCP servers of the tools say otherwise than the lock; there
// is nothing to say without a lock or without --live.
func (o *verifyOptions) lockDrift(ctx context.Context, w *action.Workspace, tools []*v1.Tool) ([]lock.Drift, error) {
	var keys []v1.Key
	for _, t := range tools {
		if k, ok := t.Server(); ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if !o.live || len(keys) == 0 {
		return nil, nil
	}
	path, err := lock.Find(o.lockFile)
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
	now, _ := action.LockServers(w.Discover(ctx, keys...)) // a server that is not ready has failed its examples
	return old.Drift(now), nil
}
