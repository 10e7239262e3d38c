// Package rollout says how the sets of a store stand, and takes a set back to an earlier
// revision.
//
//	u, err := rollout.NewUndo(ctx, st, "payments", 0, rollout.Options{By: "ann"})
//	...
//	changes, err := u.Apply(ctx, st)
//
// A revision is written by each apply of a set, see [store.Revisions]. What changes an object
// without applying its set, such as an edit or a delete, makes the set drift from its newest
// revision until the next apply.
package rollout
