package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newImportPromptPackCmd(a *app) *cobra.Command {
	i := &importing{app: a}
	return i.bindNew(&cobra.Command{
		Use:   "promptpack FILE",
		Short: "Generate Tool and Prompt manifests from a PromptPack file",
		Long: `Generate Tool and Prompt manifests from a PromptPack file (promptpack.org): its tools, and
its prompts with their variables, tools, tool policies, fragments and validators. The
tools return mocks until you give them spec.http or spec.mcp. toolctl does not import
workflows, agents, skills, evals and validators that need a model: warnings name them.`,
		Example: `  toolctl import promptpack support.pack.json --out tools/`,
		Args:    exactArgs(1, "one file, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return i.run(cmd.Context(), action.ImportFile{File: args[0], As: action.PromptPack})
		},
	})
}
