package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/promptpack"
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
			const limit = 4 << 20
			data, err := a.readInput(cmd.Context(), args[0], limit)
			switch {
			case err != nil:
				return err
			case len(data) > limit:
				return usagef("%s: over %d bytes", args[0], limit)
			}
			objects, notes, err := promptpack.Read(data)
			if err != nil {
				return invalidInput(err)
			}
			a.printNotes(notes)
			return w.write(objects)
		},
	}
	w.flags(cmd)
	return cmd
}
