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
	// Selection names the set, by default the address without its ref. Objects that the source no longer has
	// are always deleted.
	Selection
	// Pull is the source. The Logger gets a message when a revision replaces a bad one. Default: no messages.
	Pull   Pull
	Logger *slog.Logger
	// Overrides is [KeepOverrides], [ReportOverrides] or [RemoveOverrides].
	Overrides string
	DryRun    bool
}

// Reconciled is the result of one [Reconcile].
type Reconciled struct {
	Changes []Change
	// Kept are the objects of the set that were not deleted because of their annotation.
	Kept []v1.Key
	// Overrides are those that make the served text of the set differ from the source.
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

// Follow reconciles with each revision of the source until ctx ends, and logs the results to Logger.
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
		st, err = emptyStore(ctx) // a dry run would create everything
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
