package action

import (
	"context"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// RevisionReport returns the changes of a revision since the one before it; nil if the store no longer has that
// one.
func RevisionReport(ctx context.Context, st store.Store, set string, number int64) (store.Revision, *diff.Report, error) {
	all, err := st.Revisions(ctx, store.RevisionQuery{Set: set})
	if err != nil {
		return store.Revision{}, nil, err
	}
	at := slices.IndexFunc(all, func(r store.Revision) bool { return r.Number == number })
	if at < 0 {
		return store.Revision{}, nil, store.NoRevision(set, number, all)
	}
	if at == 0 && number > 1 {
		return all[at], nil, nil
	}
	var sides [2][]v1.Object
	for i, n := range []int64{number - 1, number} {
		if n == 0 {
			continue
		}
		records, err := st.RevisionObjects(ctx, set, n)
		if err != nil {
			return all[at], nil, err
		}
		for _, r := range records {
			sides[i] = append(sides[i], r.Object)
		}
	}
	report, err := Compare{Before: sides[0], After: sides[1]}.Run(ctx)
	return all[at], report, err
}

// PlanUndo returns the changes that an undo to an earlier revision of a set would make. Without a number, it selects
// the newest revision with other manifests. The error for a set that could not be served together with the other
// objects is a [v1.ValidationError].
func PlanUndo(ctx context.Context, st store.Store, set string, number int64, by string, o gateway.Options) (*rollout.Undo, *diff.Report, error) {
	u, err := rollout.NewUndo(ctx, st, set, number, rollout.Options{By: by})
	if err != nil {
		return nil, nil, err
	}
	if err := checkUndo(ctx, st, u, o); err != nil {
		return nil, nil, err
	}
	report, err := plan.Compare(ctx, st, u.Objects, u.Changes)
	return u, report, err
}
