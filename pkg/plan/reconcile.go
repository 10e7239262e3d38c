package plan

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/store"
)

// Reconcile makes a set of the store equal to the objects: it creates a plan, and applies the whole plan or nothing.
// If the set is already equal and has the commit of the options, Reconcile writes nothing: the report is nil, and all
// changes are "unchanged".
func Reconcile(ctx context.Context, st store.Store, objects []v1.Object, opts store.ApplyOptions) (*diff.Report, []store.Change, error) {
	dry := opts
	dry.DryRun, dry.Prune = true, true
	changes, err := st.Apply(ctx, objects, dry)
	if err != nil {
		return nil, nil, err
	}
	report, err := Compare(ctx, st, objects, changes)
	if err != nil {
		return nil, nil, err
	}
	if opts.DryRun {
		return report, changes, nil
	}
	p, err := New(report, changes)
	if err != nil {
		return nil, nil, err
	}
	if len(p.Steps) == 0 {
		newest, err := st.Revisions(ctx, store.RevisionQuery{Set: opts.Set, Newest: true})
		if err != nil {
			return nil, nil, err
		}
		if len(newest) == 1 && newest[0].Commit == opts.Commit && newest[0].Source == opts.Source {
			return nil, changes, nil
		}
	}
	opts.Prune, opts.DryRun, opts.Expect = true, false, expected(changes)
	changes, err = st.Apply(ctx, objects, opts)
	return report, changes, err
}

// expected returns the versions that the objects had in the store when the changes were planned.
func expected(changes []store.Change) map[v1.Key]int64 {
	expect := make(map[v1.Key]int64, len(changes))
	for _, c := range changes {
		expect[c.Key] = 0
		if c.Before != nil {
			expect[c.Key] = c.Before.ResourceVersion
		}
	}
	return expect
}
