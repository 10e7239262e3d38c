package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
)

type diffOptions struct {
	*app
	action.Diff
	failOn string
}

func newDiffCmd(a *app) *cobra.Command {
	o := &diffOptions{app: a, failOn: "any"}
	cmd := &cobra.Command{
		Use:   "diff -f PATH [--against store|DIR|git:REV[:PATH]]",
		Short: "Show what apply would change and break",
		Long: `Show what applying the files would create, change and delete, field by field, and
classify each change, with a witness (an example) as proof:

  neutral      no call behaves differently; models may read a different text
  compatible   it is proven that nothing stops working
  unknown      neither a witness nor a proof was found
  risky        only properties that an open object does not declare stop working, or
               calls have less time
  looser       a policy, a hint or a consent allows more; for a policy, the call is shown
  tighter      it allows less; for a policy, the call is shown
  breaking     the witness worked before and no longer does

A text that an override replaces in the store is reported as drift ('!'): apply keeps it.

By default diff compares with the store; --against takes a folder, file or Git revision:
git:main has the same paths as -f, git:main:tools a path within the repository. With -k
the other side is built too, if it has a kustomization.yaml. Against the store, diff
lists the deletions of --prune. It changes, fetches and calls nothing.

The exit code is 0 without differences, 1 with differences, and above 1 after an error, also an
error in the files that it compares with. With --fail-on it is 1 only for changes of that
class or worse; 'breaking' includes 'tighter' if a call proves it.

Output formats (-o): text, json, markdown (for a pull request comment), github
(workflow annotations), sarif (2.1.0, for code scanning), plan (for apply --plan).`,
		Annotations: formats("text", "json", "markdown", "github", "sarif", "plan"),
		Example: `  toolctl diff -f manifests/
  toolctl diff -f manifests/ --against git:origin/main --fail-on breaking -o github
  toolctl diff -f manifests/ --prune -o plan > plan.json`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.run(cmd.Context())
			var differs statusError
			if exitCode(err) == exitFailed && !errors.As(err, &differs) { // 1 means that there are differences
				err = statusError{exitUnavailable, err.Error()}
			}
			return err
		},
	}
	f := cmd.Flags()
	a.bindSet(cmd, &o.Selection)
	f.StringVar(&o.Against, "against", action.AgainstStore, "what to compare with: store, a folder or file, or git:REV[:PATH]")
	bindChoice(cmd, &o.failOn, "fail-on", "exit with code 1 for changes of this class or worse: breaking, risky or any", "breaking", "risky", "any")
	return cmd
}

func (o *diffOptions) run(ctx context.Context) error {
	worst := diff.Class(o.failOn)
	if o.failOn == "any" {
		worst = diff.Neutral
	}
	format := o.format()
	if format == "plan" && o.Against != action.AgainstStore {
		return usagef("--prune, --set, --take-over, --allow-empty and -o plan work only with the store: leave out --against")
	}
	o.Config = o.config(ctx)
	found, err := o.Run(ctx)
	if err != nil {
		return err
	}
	o.printWarnings(found.Warnings)
	o.printKept(found.Kept)
	if found.Left > 0 {
		fmt.Fprintf(o.err, "%s of the set not in the files: only --prune deletes them\n", count(found.Left, "object"))
	}
	report := found.Report
	switch format {
	case "json":
		err = printJSON(o.out, report)
	case "plan":
		err = printJSON(o.out, found.Plan)
	case "sarif":
		err = printJSON(o.out, report.SARIF(buildVersion().Version))
	case "markdown":
		err = report.WriteMarkdown(o.out)
	case "github":
		root, _ := o.env("GITHUB_WORKSPACE")
		err = report.WriteGitHub(o.out, cmp.Or(root, "."))
	default:
		err = report.WriteText(o.out)
	}
	if err == nil && len(found.OtherErrors) > 0 {
		return fmt.Errorf("not everything could be compared, because --against %s has errors: %w", o.Against, v1.NewValidationError(v1.ManifestInvalid, "", found.OtherErrors))
	}
	if err == nil && report.Fails(worst) {
		return statusError{exitFailed, ""}
	}
	return err
}
