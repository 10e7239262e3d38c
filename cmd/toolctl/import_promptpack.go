package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newImportPromptPackCmd(a *app) *cobra.Command {
	w := &manifestWriter{app: a}
	cmd := &cobra.Command{
		Use:   "promptpack FILE",
		Short: "Make Tool and Prompt manifests of a PromptPack file",
		Long: `Make Tool and Prompt manifests of a PromptPack file (promptpack.org): its tools, and
its prompts with their variables, tools, tool policies, fragments and validators. The
tools answer as mocks until they get spec.http or spec.mcp. Workflows, agents, skills and
evals are not read, nor are validators that need a model: warnings name them.`,
		Example: `  toolctl import promptpack support.pack.json --out tools/`,
		Args:    exactArgs(1, "one file, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.convert(cmd.Context(), args[0], action.PromptPack)
		},
	}
	w.flags(cmd)
	return cmd
}
