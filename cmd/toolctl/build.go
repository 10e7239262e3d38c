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
		Short: "Print the manifests that a kustomization.yaml builds",
		Long: `Print the manifests that DIR builds: a base with the changes that its kustomization.yaml
makes for one environment. toolctl supports a documented subset of kustomize (resources,
namespace, namePrefix, nameSuffix, labels, commonLabels, commonAnnotations, patches,
configMapGenerator, replacements) and refuses every other field by name. It fetches nothing.

A renamed object is also renamed in policies, toolsets, prompts, scenarios and bound servers.
Numbers keep every digit, and comments stay. 'toolctl validate -k DIR' checks the
result and reports errors at their place in the source files. See docs/overlays.md.

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
