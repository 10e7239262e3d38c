package main

import (
	"slices"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

func newMockCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "mock",
		Short:   "Make mocks of tools",
		Long:    "Make mocks of tools, for scenarios.",
		Example: "  toolctl mock generate get-weather",
	}, newMockGenerateCmd(a))
}

func newMockGenerateCmd(a *app) *cobra.Command {
	var seed int64
	cmd := &cobra.Command{
		Use:   "generate [NAME]...",
		Short: "Print mock results that fit the output schemas of tools",
		Long: `Print a mock result for each tool, made from its output_schema and valid by it, in
the form that spec.mocks of a Scenario takes. Without NAME: for every tool that has
an output schema. The same seed gives the same results.

Output formats (-o): yaml (the default), json.`,
		Annotations: formats("yaml", "json"),
		Example: `  toolctl mock generate -f manifests/weather.yaml get-weather
  toolctl mock generate --seed 7 -o json`,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			format := a.format()
			has, err := a.selected()
			if err != nil {
				return err
			}
			w, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer w.Close()
			a.warnViolations(w)
			tools, err := a.toolsWith(w, args, "an output_schema to make a result of", func(t *v1.Tool) bool { return len(t.Spec.OutputSchema) > 0 && has(t) })
			if err != nil {
				return err
			}
			mocks := map[string]v1.MockResponse{}
			for _, t := range tools {
				result, err := scenario.Generate(t, seed)
				if err != nil {
					return statusError{exitInvalid, err.Error()}
				}
				mocks[shortName(t)] = v1.MockResponse{Result: result}
			}
			if format == "json" {
				return printJSON(a.out, mocks)
			}
			return printYAML(a.out, mocks)
		},
	}
	a.bindSelector(cmd.Flags(), "tools")
	cmd.Flags().Int64Var(&seed, "seed", 0, "the same number makes the same results")
	return cmd
}

// shortName names a tool in a scenario.
func shortName(t *v1.Tool) string {
	if t.Namespace() == v1.DefaultNamespace {
		return t.Metadata.Name
	}
	return t.Namespace() + "/" + t.Metadata.Name
}

// toolsWith returns the named tools; without names, all for which has is true, which what says in words. A
// tool that is not ready is an error when it is named.
func (a *app) toolsWith(w *action.Workspace, names []string, what string, has func(*v1.Tool) bool) ([]*v1.Tool, error) {
	var tools []*v1.Tool
	for _, name := range names {
		it, err := w.Registry.Lookup(a.namespace, name)
		if err != nil {
			return nil, err
		}
		if it.Object.Head().Broken() {
			return nil, v1.NewValidationError(v1.ManifestInvalid, it.Tool().Metadata.Name, it.Reasons)
		}
		tools = append(tools, it.Tool())
	}
	if len(names) > 0 {
		return tools, nil
	}
	page, err := w.Registry.List(registry.Query{Kind: v1.KindTool, Namespace: a.namespace})
	if err != nil {
		return nil, err
	}
	for _, it := range page.Items {
		if t := it.Tool(); !t.Broken() && has(t) {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		return nil, usagef("no tool has %s", what)
	}
	return slices.Clip(tools), nil
}
