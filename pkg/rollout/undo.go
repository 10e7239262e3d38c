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
	// By is the name of the person or program that makes the undo.
	By string
	// TakeOver moves objects back that now belong to other sets. Default: the undo is refused.
	TakeOver bool
	// Force also undoes changes made outside the set. Default: such a change is a *[ConflictError].
	Force bool
	// History is the number of earlier revisions to keep; see [store.ApplyOptions].
	History int
}

// Undo applies the manifests of an earlier revision of a set again.
type Undo struct {
	// From is the newest revision of the set, and To the revision to restore.
	From, To store.Revision
	// Objects are the manifests of To.
	Objects []v1.Object
	// Changes are the changes of the undo.
	Changes []store.Change

	options store.ApplyOptions
}

// ConflictError reports that an undo would revert changes made outside the set.
type ConflictError struct {
	Set      string
	Revision int64
	// Conflicts has one sentence for each object.
	Conflicts []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("set %q is not as revision %d applied it, and nothing was undone:\n  %s", Name(e.Set), e.Revision, strings.Join(e.Conflicts, "\n  "))
}

// NoEarlierError reports that a set has no earlier revision with other manifests.
type NoEarlierError struct {
	Set      string
	Revision int64
}

func (e *NoEarlierError) Error() string {
	return fmt.Sprintf("set %q has no revision before %d with other manifests", Name(e.Set), e.Revision)
}

// NewUndo plans an undo and changes nothing. Without a number, it takes the newest revision with other
// manifests.
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

// Apply makes the changes of the undo, or no change if an object has changed in the meantime. The error then holds a
// *[store.ConflictError] for each changed object.
func (u *Undo) Apply(ctx context.Context, st store.Store) ([]store.Change, error) {
	return st.Apply(ctx, u.Objects, u.options)
}

// conflicts lists the changes of the undo to objects that were changed outside the set.
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
