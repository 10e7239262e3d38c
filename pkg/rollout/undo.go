package rollout

import (
	"context"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
)

// Options change what an [Undo] does.
type Options struct {
	// By is who asks for it.
	By string
	// TakeOver takes objects back that belong to other sets by now. Default: they are refused.
	TakeOver bool
	// Force undoes what was changed by something else than the set, too. Default: it is a
	// *[ConflictError].
	Force bool
	// History is how many earlier revisions are kept; see [store.ApplyOptions].
	History int
}

// Undo applies the manifests of an earlier revision of a set again.
type Undo struct {
	// From is the newest revision of the set, To the one whose manifests are applied.
	From, To store.Revision
	// Objects are those manifests.
	Objects []v1.Object
	// Changes are what the undo changes.
	Changes []store.Change

	options store.ApplyOptions
}

// ConflictError says that an undo would undo what something else than the set changed.
type ConflictError struct {
	Set      string
	Revision int64
	// Conflicts is a sentence for each object.
	Conflicts []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("set %q is not as revision %d applied it, and nothing was undone:\n  %s", Name(e.Set), e.Revision, strings.Join(e.Conflicts, "\n  "))
}

// NoEarlierError says that a set has no revision to go back to.
type NoEarlierError struct {
	Set      string
	Revision int64
}

func (e *NoEarlierError) Error() string {
	return fmt.Sprintf("set %q has no revision before %d with other manifests", Name(e.Set), e.Revision)
}

// NewUndo plans an undo, and changes nothing. Without a number it is to the newest revision
// whose manifests are others than those of the last.
func NewUndo(ctx context.Context, st store.Store, set string, number int64, o Options) (*Undo, error) {
	revisions, err := st.Revisions(ctx, store.RevisionQuery{Set: set})
	if err != nil {
		return nil, err
	}
	if len(revisions) == 0 {
		return nil, &v1.NotFoundError{Kind: "Set", Name: Name(set)}
	}
	u := &Undo{From: revisions[len(revisions)-1]}
	for _, r := range revisions {
		if number == r.Number || number == 0 && r.Digest != u.From.Digest {
			u.To = r
		}
	}
	switch {
	case u.To.Number == 0 && number == 0:
		return nil, &NoEarlierError{set, u.From.Number}
	case u.To.Number == 0:
		return nil, store.NoRevision(set, number, revisions)
	}
	records, err := st.RevisionObjects(ctx, set, u.To.Number)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		u.Objects = append(u.Objects, r.Object)
	}
	u.options = store.ApplyOptions{
		Set: set, Prune: true, Keep: plan.KeepsObject, By: o.By, Command: "rollout undo", Source: u.To.Source, Commit: u.To.Commit,
		UndoOf: u.To.Number, History: o.History, DryRun: true,
	}
	if o.TakeOver {
		u.options.Others = store.TakeOthers
	}
	if u.Changes, err = st.Apply(ctx, u.Objects, u.options); err != nil {
		return nil, err
	}
	if !o.Force {
		if err := u.conflicts(ctx, st); err != nil {
			return nil, err
		}
	}
	u.options.DryRun, u.options.Expect = false, make(map[v1.Key]int64, len(u.Changes))
	for _, c := range u.Changes {
		var at int64
		if c.Before != nil {
			at = c.Before.ResourceVersion
		}
		u.options.Expect[c.Key] = at
	}
	return u, nil
}

// Needed reports whether the undo changes anything.
func (u *Undo) Needed() bool {
	for _, c := range u.Changes {
		if c.Action != store.Unchanged || c.TakenFrom != "" {
			return true
		}
	}
	return false
}

// Apply carries out the undo, all of it or, when an object was changed meanwhile, nothing;
// then the error holds a *[store.ConflictError] for each.
func (u *Undo) Apply(ctx context.Context, st store.Store) ([]store.Change, error) {
	return st.Apply(ctx, u.Objects, u.options)
}

// conflicts names what the undo would change and something else has changed already.
func (u *Undo) conflicts(ctx context.Context, st store.Store) error {
	state, err := Inspect(ctx, st, u.From)
	if err != nil {
		return err
	}
	e := &ConflictError{Set: u.From.Set, Revision: u.From.Number}
	changed, gone := keySet(state.Changed), keySet(state.Gone)
	for _, c := range u.Changes {
		switch {
		case c.Action == store.Unchanged:
		case changed[c.Key]:
			e.Conflicts = append(e.Conflicts, fmt.Sprintf("%s: it was changed since, at resourceVersion %d", c.Key, c.Before.ResourceVersion))
		case gone[c.Key]:
			e.Conflicts = append(e.Conflicts, fmt.Sprintf("%s: it was removed since", c.Key))
		}
	}
	if e.Conflicts != nil {
		return e
	}
	return nil
}
