// Package rollout compares the sets of a store with their revisions, and takes a set back to an earlier one.
//
//	u, err := rollout.NewUndo(ctx, st, "payments", 0, rollout.Options{By: "ann"})
//	...
//	changes, err := u.Apply(ctx, st)
//
// Each apply of a set writes a revision, see [store.Revisions]. A change of an object by other means, such as
// an edit or a delete, makes the set drift from its newest revision until the next apply.
package rollout
