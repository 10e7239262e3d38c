package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// AgainstStore makes a [Diff] compare with the store.
const AgainstStore = "store"

// Diff compares manifests with the store, with other files or with a Git revision.
type Diff struct {
	*Config
	Selection
	// Against is [AgainstStore] (the default), a file or folder, or git:REV[:PATH].
	Against string
}

// Differences is the result of a [Diff].
type Differences struct {
	Report *diff.Report
	// Plan lists the changes that an apply would make; nil if the comparison is not with the store.
	Plan *plan.Plan
	// Left is the number of objects of the set that the files no longer contain and that stay without Prune.
	Left int
	// Kept are the objects of the set that --prune would leave because of their annotation.
	Kept     []v1.Key
	Warnings []v1.Violation
	// OtherErrors are errors on the other side. Objects that could not be read there are missing in Report, and
	// with them possibly a breaking change.
	OtherErrors []v1.Violation
}

// Run compares. The report has the positions of the changes.
func (d *Diff) Run(ctx context.Context) (*Differences, error) {
	var r *Differences
	var err error
	if cmp.Or(d.Against, AgainstStore) == AgainstStore {
		r, err = d.withStore(ctx)
	} else {
		r, err = d.withFiles(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, d.locate(ctx, r.Report)
}

// placed reports whether the positions of fields must be read at once, because overlays and stdin cannot be read
// again.
func (d *Diff) placed() bool { return len(d.Overlays) > 0 || slices.Contains(d.Files, "-") }

// locate finds the positions of the changes. The positions of all fields take more memory than the objects, so
// it reads only the changed files again, in groups.
func (d *Diff) locate(ctx context.Context, report *diff.Report) error {
	if d.placed() {
		return nil
	}
	changed := map[string]bool{}
	for _, c := range report.Changes {
		if c.Action != diff.Deleted && c.Source.File != "" {
			changed[c.Source.File] = true
		}
	}
	const some = 500
	options := d.manifests()
	options.Fields = true
	for files := range slices.Chunk(slices.Sorted(maps.Keys(changed)), some) {
		set, err := manifest.Load(ctx, files, options)
		if err != nil {
			return &UsageError{err}
		}
		if _, err := d.intoNamespace(set.Objects); err != nil {
			return err
		}
		report.Locate(set.Objects)
	}
	return nil
}

func (d *Diff) withStore(ctx context.Context) (*Differences, error) {
	in, err := d.read(ctx, d.Config, compare)
	if err != nil {
		return nil, err
	}
	defer in.store.Close()
	in.options.DryRun = true
	changes, err := in.store.Apply(ctx, in.set.Objects, in.options)
	if owned := new(store.SetError); errors.As(err, &owned) {
		return nil, usagef("%w: use its set, or take it over with --take-over", err)
	}
	if err != nil {
		return nil, err
	}
	r := &Differences{Kept: in.kept.keys(), Warnings: in.warnings}
	if !d.Prune && d.Selector == "" {
		left, err := plan.Left(ctx, in, in.options.Set, in.set.Objects)
		if err != nil {
			return nil, err
		}
		r.Left = len(left)
	}
	if r.Report, err = plan.Compare(ctx, in, in.set.Objects, changes); err != nil {
		return nil, err
	}
	if err := plan.Overridden(ctx, in.store, in.set.Objects, r.Report); err != nil {
		return nil, err
	}
	if r.Plan, err = plan.New(r.Report, changes); err != nil {
		return nil, err
	}
	p := r.Plan
	p.Files, p.Overlays, p.Namespace, p.Selector = d.Files, d.Overlays, d.Namespace, d.Selector
	p.Set, p.Named, p.TakeOver, p.Prune = in.options.Set, d.Set != "", d.TakeOver, d.Prune
	return r, nil
}

func (d *Diff) withFiles(ctx context.Context) (*Differences, error) {
	if d.Prune || d.Set != "" || d.TakeOver || d.AllowEmpty {
		return nil, usagef("--prune, --set, --take-over, --allow-empty and -o plan work only with the store: leave out --against")
	}
	if len(d.Files) == 0 {
		return nil, usagef("name the manifests to compare with -f")
	}
	has, err := Labeled(d.Selector)
	if err != nil {
		return nil, err
	}
	options := d.manifests()
	options.Fields = d.placed()
	set, err := manifest.Load(ctx, d.Files, options)
	if err != nil {
		return nil, &UsageError{err}
	}
	elsewhere, err := d.intoNamespace(set.Objects)
	if err != nil {
		return nil, err
	}
	if errs := v1.Errors(set.Violations, elsewhere); len(errs) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, "", errs)
	}
	other, err := d.otherSide(ctx, options)
	if err != nil {
		return nil, &UsageError{err}
	}
	if _, err := d.intoNamespace(other.Objects); err != nil {
		return nil, err
	}
	report, err := Compare{Before: other.Objects, After: set.Objects, Only: has}.Run(ctx)
	return &Differences{Report: report, OtherErrors: v1.Errors(other.Violations)}, err
}

// otherSide reads the manifests that Against names.
func (d *Diff) otherSide(ctx context.Context, options manifest.Options) (*manifest.Set, error) {
	options.Stdin = nil
	rev, ok := strings.CutPrefix(d.Against, "git:")
	if !ok {
		options.Build = func(ctx context.Context, dir string) (*manifest.Built, error) {
			if len(d.Overlays) == 0 || !overlay.Is(dir) {
				return nil, nil
			}
			return overlay.Build(ctx, dir, "")
		}
		set, err := manifest.Load(ctx, []string{d.Against}, options)
		if err != nil && !strings.ContainsAny(d.Against, `/\.`) {
			err = fmt.Errorf("--against %w: write a Git revision as --against git:%s", err, d.Against)
		}
		return set, err
	}
	options.AllowEmpty = true // the folder may not exist in that revision
	rev, in, ok := strings.Cut(rev, ":")
	g := source.Git{Rev: rev, Overlays: d.Overlays}
	if ok {
		g.InTree = []string{cmp.Or(in, ".")}
		return source.LoadGit(ctx, g, options)
	}
	if slices.Contains(d.Files, "-") {
		return nil, errors.New("--against git:REV of stdin needs a path: git:REV:PATH")
	}
	g.Paths = d.Files
	return source.LoadGit(ctx, g, options)
}
