package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newMockCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "mock",
		Short:   "Generate mock results",
		Long:    "Generate mock results of tools for scenarios.",
		Example: "  toolctl mock generate get-weather",
	}, newMockGenerateCmd(a))
}

func newMockGenerateCmd(a *app) *cobra.Command {
	var verb action.Mock
	cmd := &cobra.Command{
		Use:   "generate [NAME]...",
		Short: "Print mock results that match the output schemas of tools",
		Long: `Print a mock result for each tool, generated from its output_schema and valid against it,
in the form of spec.mocks of a Scenario. Without NAME, the command covers every tool with
an output schema. The same seed gives the same results.`,
		Annotations: formats("yaml", "json"),
		Example: `  toolctl mock generate -f manifests/weather.yaml get-weather
  toolctl mock generate --seed 7 -o json`,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb.Config, verb.Tools.Names = a.reaching(cmd.Context()), args
			mocks, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			if a.format() == "json" {
				return printJSON(a.out, mocks)
			}
			return printYAML(a.out, mocks)
		},
	}
	bindSelector(cmd.Flags(), &verb.Tools.Selector, "tools")
	cmd.Flags().Int64Var(&verb.Seed, "seed", 0, "seed of random values; the same seed gives the same results")
	return cmd
}
