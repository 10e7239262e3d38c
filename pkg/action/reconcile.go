package action

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// Reconcile keeps a set of the store in sync with a repository.
type Reconcile struct {
	*Config
	// Selection names the set, and takes objects over; it prunes always. Default of the set: the
	// address without its ref.
	Selection
	// Pull is the source. Logger is told which revision is used in the place of a bad one. Default: nobody is.
	Pull   Pull
	Logger *slog.Logger
	// Overrides is [KeepOverrides], [ReportOverrides] or [RemoveOverrides].
	Overrides string
	DryRun    bool
}

// Reconciled is the result of one [Reconcile].
type Reconciled struct {
	Changes []Change
	// Kept are objects of the set that were not pruned, because their annotation says so.
	Kept []v1.Key
	// Overrides are those of objects of the set of which something else is served than the source says.
	Overrides []Overridden
}

// Run reconciles once.
func (r *Reconcile) Run(ctx context.Context) (_ *Reconciled, err error) {
	g, kept, end, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	did, err := g.Once(ctx)
	if errors.As(err, new(*store.SetError)) {
		err = &UsageError{err}
	}
	if err != nil {
		return nil, err
	}
	return &Reconciled{Changes: Changes(did.Changes), Kept: kept.keys(), Overrides: did.Overrides}, nil
}

// Follow reconciles with each revision of the source until ctx ends, and tells Logger what it did.
func (r *Reconcile) Follow(ctx context.Context) (err error) {
	g, _, end, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return g.Follow(ctx, r.Logger)
}

func (r *Reconcile) open(ctx context.Context) (_ *reconciler, _ keptObjects, end func() error, err error) {
	at, err := r.Pull.Check(r.Files)
	if err != nil {
		return nil, nil, nil, err
	}
	r.Set = cmp.Or(r.Set, at.Set())
	st, err := r.OpenStore(ctx, !r.DryRun)
	if r.DryRun && missing(err) {
		st, err = emptyStore(ctx) // all would be created
	}
	if err != nil {
		return nil, nil, nil, err
	}
	remote, err := r.Pull.open(r.Config, func(ctx context.Context) ([]v1.Object, error) { return besideSet(ctx, st, r.Set) },
		source.RemoteOptions{Manifests: manifest.Options{Layout: true, AllowEmpty: r.AllowEmpty}, Logger: r.Logger})
	if err != nil {
		return nil, nil, nil, errors.Join(err, st.Close())
	}
	kept := keptObjects{}
	g := &reconciler{Remote: remote, Store: st, Set: r.Set, Overrides: cmp.Or(r.Overrides, KeepOverrides), Options: func(set *manifest.Set) store.ApplyOptions {
		options := store.ApplyOptions{By: r.By, Keep: kept.keep(set, r.Namespace), DryRun: r.DryRun}
		if r.TakeOver {
			options.Others = store.TakeOthers
		}
		return options
	}}
	return g, kept, func() error { return errors.Join(remote.Close(), st.Close()) }, nil
}
