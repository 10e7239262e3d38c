package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

type diffOptions struct {
	setOptions
	against, failOn string
}

const againstStore = "store"

func newDiffCmd(a *app) *cobra.Command {
	o := &diffOptions{setOptions: setOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "diff -f PATH [--against store|DIR|git:REV[:PATH]]",
		Short: "Say what an apply would change, and what that breaks",
		Long: `Say what an apply of the files would create, change and delete, field by field, and
what each change means, with a witness that proves it:

  neutral      nothing that is called changes; models may read another text
  compatible   it is proven that nothing stops working
  unknown      neither a witness nor a proof was found
  risky        only properties that an open object does not declare stop working, or
               calls have less time
  looser       a policy, a hint or consent allows more; of a policy, the call is shown
  tighter      it allows less; of a policy, the call is shown
  breaking     the witness worked and does not any more

Against the store, what an override gives another text is drift ('!'): an apply leaves it so.

The other side is the store; with --against a folder or file, or a revision of git:
git:main has the same paths as -f, git:main:tools a path within the repository. With -k
the other side is built too, where it has a kustomization.yaml. Against
the store, deletions are those of --prune. Nothing is changed, fetched or called.

The exit code is 0 without differences, 1 with some, and above 1 after an error. With
--fail-on it is 1 only for a change of that class or worse; 'breaking' includes what is
tighter when a call shows it.

Output formats (-o): text, json, markdown (for a comment of a pull request), github
(annotations of a workflow), sarif (2.1.0, for code scanning), plan (for apply --plan).`,
		Annotations: formats("text", "json", "markdown", "github", "sarif", "plan"),
		Example: `  toolctl diff -f manifests/
  toolctl diff -f manifests/ --against git:origin/main --fail-on breaking -o github
  toolctl diff -f manifests/ --prune -o plan > plan.json`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.run(cmd.Context())
			var differs statusError
			if exitCode(err) == exitFailed && !errors.As(err, &differs) { // 1 says that there are differences
				err = statusError{exitUnavailable, err.Error()}
			}
			return err
		},
	}
	f := cmd.Flags()
	o.bind(f)
	f.StringVar(&o.against, "against", againstStore, "the other side: store, a folder or file, or git:REV[:PATH]")
	f.StringVar(&o.failOn, "fail-on", "any", "exit with 1 for changes of this class or worse: breaking, risky or any")
	_ = cmd.RegisterFlagCompletionFunc("set", a.fromStore(noFiles, namedSets))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"breaking", "risky", "any"}, noFiles))
	return cmd
}

func (o *diffOptions) run(ctx context.Context) error {
	worst := diff.Class(o.failOn)
	switch worst {
	case diff.Breaking, diff.Risky:
	case "any":
		worst = diff.Neutral
	default:
		return usagef("--fail-on %q: expected breaking, risky or any", o.failOn)
	}
	format := o.format()
	o.places = len(o.overlays) > 0 || slices.Contains(o.files, "-") // see locate
	var report *diff.Report
	var changes *plan.Plan
	var err error
	if o.against == againstStore {
		report, changes, err = o.againstStore(ctx)
	} else {
		if o.prune || o.set != "" || o.takeOver || o.allowEmpty || format == "plan" {
			return usagef("--prune, --set, --take-over, --allow-empty and -o plan are for the store: leave --against out")
		}
		report, err = o.againstFiles(ctx)
	}
	if err == nil {
		err = o.locate(ctx, report)
	}
	if err != nil {
		return err
	}
	switch format {
	case "json":
		err = printJSON(o.out, report)
	case "plan":
		err = printJSON(o.out, changes)
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
	if err == nil && report.Fails(worst) {
		return statusError{exitFailed, ""}
	}
	return err
}

// locate finds the places of what changed. Those of all fields of all files take more memory than the
// objects, so the files with a change are read once more, some at a time; what is built or comes from stdin
// has its places.
func (o *diffOptions) locate(ctx context.Context, report *diff.Report) error {
	if o.places {
		return nil
	}
	changed := map[string]bool{}
	for _, c := range report.Changes {
		if c.Action != diff.Deleted && c.Source.File != "" {
			changed[c.Source.File] = true
		}
	}
	const some = 500
	options := o.manifestOptions(ctx)
	options.Fields = true
	for files := range slices.Chunk(slices.Sorted(maps.Keys(changed)), some) {
		set, err := manifest.Load(ctx, files, options)
		if err != nil {
			return usageError{err}
		}
		if _, err := o.intoNamespace(set.Objects); err != nil {
			return err
		}
		report.Locate(set.Objects)
	}
	return nil
}

func (o *diffOptions) againstStore(ctx context.Context) (*diff.Report, *plan.Plan, error) {
	in, err := o.open(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	defer o.closing(in.store)
	in.options.DryRun = true
	changes, err := in.store.Apply(ctx, in.set.Objects, in.options)
	if owned := new(store.SetError); errors.As(err, &owned) {
		return nil, nil, usagef("%w: use its set, or take it over with --take-over", err)
	}
	if err != nil {
		return nil, nil, err
	}
	in.warnKept(o.err)
	if !o.prune && o.selector == "" {
		left, err := plan.Left(ctx, in, in.options.Set, in.set.Objects)
		if err != nil {
			return nil, nil, err
		}
		if len(left) > 0 {
			fmt.Fprintf(o.err, "%s of the set not in the files: --prune would delete what an apply leaves\n", count(len(left), "object"))
		}
	}
	report, err := plan.Compare(ctx, in, in.set.Objects, changes)
	if err != nil {
		return nil, nil, err
	}
	if err := plan.Overridden(ctx, in.store, in.set.Objects, report); err != nil {
		return nil, nil, err
	}
	p, err := plan.New(report, changes)
	if err != nil {
		return nil, nil, err
	}
	p.Files, p.Overlays, p.Namespace, p.Selector = o.files, o.overlays, o.namespace, o.selector
	p.Set, p.Named, p.TakeOver, p.Prune = in.options.Set, in.named, o.takeOver, o.prune
	return report, p, nil
}

func (o *diffOptions) againstFiles(ctx context.Context) (*diff.Report, error) {
	if len(o.files) == 0 {
		return nil, usagef("name the manifests to compare with -f")
	}
	has, err := o.selected()
	if err != nil {
		return nil, err
	}
	options := o.manifestOptions(ctx)
	options.Fields = o.places
	collect := collectLess()
	set, err := manifest.Load(ctx, o.files, options)
	collect() // what comes now leaves much that can be collected
	if err != nil {
		return nil, usageError{err}
	}
	elsewhere, err := o.intoNamespace(set.Objects)
	if err != nil {
		return nil, err
	}
	if errs := slices.DeleteFunc(slices.Concat(set.Violations, elsewhere), v1.Violation.IsWarning); len(errs) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, "", errs)
	}
	other, err := o.otherSide(ctx, options)
	if err != nil {
		return nil, usageError{err}
	}
	if _, err := o.intoNamespace(other.Objects); err != nil {
		return nil, err
	}
	if other.Failed() {
		fmt.Fprintf(o.err, "warning: %s has errors: what cannot be read there counts as it is\n", o.against)
	}
	return action.Diff{Before: other.Objects, After: set.Objects, Only: has}.Run(ctx)
}

// otherSide reads what --against names.
func (o *diffOptions) otherSide(ctx context.Context, options manifest.Options) (*manifest.Set, error) {
	options.Stdin = nil
	rev, ok := strings.CutPrefix(o.against, "git:")
	if !ok {
		options.Build = func(ctx context.Context, dir string) (*manifest.Built, error) {
			if len(o.overlays) == 0 || !overlay.Is(dir) {
				return nil, nil
			}
			return overlay.Build(ctx, dir, "")
		}
		set, err := manifest.Load(ctx, []string{o.against}, options)
		if err != nil && !strings.ContainsAny(o.against, `/\.`) {
			err = fmt.Errorf("--against %w: a revision of git is written --against git:%s", err, o.against)
		}
		return set, err
	}
	options.AllowEmpty = true // the folder may be new
	rev, in, ok := strings.Cut(rev, ":")
	g := source.Git{Rev: rev, Overlays: o.overlays}
	if ok {
		g.InTree = []string{cmp.Or(in, ".")}
		return source.LoadGit(ctx, g, options)
	}
	if slices.Contains(o.files, "-") {
		return nil, errors.New("--against git:REV of stdin needs a path: git:REV:PATH")
	}
	g.Paths = o.files
	return source.LoadGit(ctx, g, options)
}
