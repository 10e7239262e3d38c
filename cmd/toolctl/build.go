package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
)

func newBuildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "build DIR",
		Short: "Print the manifests of an environment from its kustomization.yaml",
		Long: `Print what DIR builds to: the manifests of a base with what its kustomization.yaml
changes for one environment. A documented subset of kustomize is read (resources,
namespace, namePrefix, nameSuffix, labels, commonLabels, commonAnnotations, patches,
configMapGenerator, replacements); any other field is refused by its name. Nothing
is fetched.

Who is renamed is renamed in policies, prompts, scenarios and bound servers too.
Numbers keep every digit, and comments stay. 'toolctl validate -k DIR' checks the
result, with the places of the files it came from. docs/overlays.md has the details.

Output formats (-o): yaml (the default), json (one List).`,
		Annotations: formats("yaml", "json"),
		Example: `  toolctl build overlays/prod
  toolctl build overlays/prod | toolctl apply -f -`,
		Args: exactArgs(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := overlay.Build(cmd.Context(), args[0], "")
			if err != nil {
				return usageError{err}
			}
			if err := a.printBuildErrors(res); err != nil {
				return err
			}
			if a.format() == "json" {
				set := manifest.ReadTrees(res.Trees, manifest.Options{})
				return printJSON(a.out, manifest.List{APIVersion: v1.APIVersion, Kind: "List", Items: set.Objects})
			}
			text, err := overlay.Write(res.Trees)
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
}

func (a *app) printBuildErrors(res *manifest.Built) error {
	for _, v := range res.Violations {
		fmt.Fprintln(a.err, v)
	}
	if n := len(res.Violations); n > 0 {
		return statusError{exitInvalid, count(n, "error")}
	}
	return nil
}
