package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// What is said of changes of the manifests.
type (
	// SourceStatus says which revision of a source is served.
	SourceStatus = source.Status
	// Revision is one apply of a set.
	Revision = store.Revision
	// Report is what changes, with class, reason and witness.
	Report = diff.Report
	// UndoConflictError says that an undo would undo what something else changed.
	UndoConflictError = rollout.ConflictError
	// ChangedError says that an object was changed meanwhile.
	ChangedError = store.ConflictError
	// SetError says that an object belongs to another set.
	SetError = store.SetError
	// NoEarlierError says that there is no earlier revision.
	NoEarlierError = rollout.NoEarlierError
	// Undo is the way back to an earlier revision of a set.
	Undo = rollout.Undo
)

// SetName is a set as one line.
func SetName(set string) string { return rollout.Name(set) }

// Pulled returns which revision of its source is served; nil when the manifests are not pulled.
func (g *Gateway) Pulled() *SourceStatus {
	p, ok := g.opts.Source.(pulled)
	if !ok {
		return nil
	}
	s := p.Status()
	return &s
}

// Revisions returns those of the sets of the store that are kept, by set, the oldest first;
// none without a store.
func (g *Gateway) Revisions(ctx context.Context, set string) ([]Revision, error) {
	if g.opts.Store == nil {
		return nil, nil
	}
	return g.opts.Store.Revisions(ctx, store.RevisionQuery{Set: set})
}

// compareTime is how long a comparison may take.
const compareTime = 30 * time.Second

func compare(ctx context.Context, before, after []v1.Object) (*Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, compareTime, errors.New("there is too much to compare: use 'toolctl diff'"))
	defer cancel()
	nameless := func(o v1.Object) bool { return o.Head().Metadata.Name == "" }
	before, after = slices.DeleteFunc(slices.Clone(before), nameless), slices.DeleteFunc(slices.Clone(after), nameless)
	return diff.NewChecker().Manifests(ctx, diff.Pairs(before, after), slices.Concat(after, before))
}

// RevisionReport says what a revision of a set changed of the one before it; nil when that one
// is not kept.
func (g *Gateway) RevisionReport(ctx context.Context, set string, number int64) (Revision, *Report, error) {
	all, err := g.Revisions(ctx, set)
	if err != nil {
		return Revision{}, nil, err
	}
	at := slices.IndexFunc(all, func(r Revision) bool { return r.Number == number })
	if at < 0 {
		return Revision{}, nil, store.NoRevision(set, number, all)
	}
	if at == 0 && number > 1 {
		return all[at], nil, nil
	}
	var sides [2][]v1.Object
	for i, n := range []int64{number - 1, number} {
		if n == 0 {
			continue
		}
		records, err := g.opts.Store.RevisionObjects(ctx, set, n)
		if err != nil {
			return all[at], nil, err
		}
		for _, r := range records {
			sides[i] = append(sides[i], r.Object)
		}
	}
	report, err := compare(ctx, sides[0], sides[1])
	return all[at], report, err
}

// Pending is what the source holds and is not served.
type Pending struct {
	// Revision is that of a source that is pulled; empty for others.
	Revision string
	// Violations keep it from being served.
	Violations []v1.Violation
	// Problem is what else does.
	Problem string
	// Report is what it would change; nil when nothing could be read.
	Report *Report
}

// PendingChanges reads the source anew and says what serving it would change. Nothing is changed.
func (g *Gateway) PendingChanges(ctx context.Context) (*Pending, error) {
	p := &Pending{}
	var set *manifest.Set
	var err error
	if newest, ok := g.opts.Source.(interface {
		Newest(context.Context) (string, *manifest.Set, error)
	}); ok {
		p.Revision, set, err = newest.Newest(ctx)
	} else {
		set, err = g.opts.Source.Load(ctx)
	}
	bad := new(source.RevisionError)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &bad):
		p.Violations = bad.Violations
		if bad.Err != nil {
			p.Problem = bad.Err.Error()
		}
	case err != nil:
		p.Problem = err.Error()
	default:
		p.Violations = g.keepBack(ctx, set)
	}
	if set == nil {
		return p, nil
	}
	g.reload.mu.Lock()
	served := g.reload.served
	g.reload.mu.Unlock()
	p.Report, err = compare(ctx, served, set.Objects)
	return p, err
}

// PlanUndo says what going back to an earlier revision of a set changes, and changes nothing.
// Without a number it is to the newest with other manifests. What its manifests would be beside
// is checked: the error of a set that could not be served is a [v1.ValidationError].
func (g *Gateway) PlanUndo(ctx context.Context, set string, number int64, by string) (*Undo, *Report, error) {
	st := g.opts.Store
	if st == nil {
		return nil, nil, &v1.NotFoundError{Kind: "Set", Name: SetName(set)}
	}
	u, err := rollout.NewUndo(ctx, st, set, number, rollout.Options{By: by})
	if err != nil {
		return nil, nil, err
	}
	if err := CheckUndo(ctx, st, u, g.opts); err != nil {
		return nil, nil, err
	}
	report, err := plan.Compare(ctx, st, u.Objects, u.Changes)
	return u, report, err
}

// CarryOut carries out an undo, all of it or nothing.
func (g *Gateway) CarryOut(ctx context.Context, u *Undo) error {
	_, err := u.Apply(ctx, g.opts.Store)
	return err
}
