package store

import (
	v1 "toolctl.dev/toolctl/api/v1"
)

// ApplyOptions configure [Store.Apply].
type ApplyOptions struct {
	// Set is the apply set that the objects join. Default: they stay in their sets.
	Set string
	// Others says what happens to objects that belong to another set. Default: nothing is changed, and the error holds
	// a *[SetError] for each.
	Others Others
	// Keep selects objects of the set that are not pruned although they are not applied. Default: no objects.
	Keep func(Record) bool
	// Prune removes the objects of Set that are not applied. It needs a Set.
	Prune bool
	// DryRun computes the changes without making them.
	DryRun bool
	// By is the user who applies and Command the command, for the audit log. Default of Command: "apply".
	By, Command string
	// Source and Commit say where the objects come from, and UndoOf which revision of the set they restore. They are
	// stored in the new revision; see [Revision].
	Source, Commit string
	UndoOf         int64
	// History is the number of earlier revisions of the set to keep in addition to the new one; a negative number keeps
	// no earlier revision. Default: [DefaultHistory].
	History int
	// NoRevision creates no revision. It is for sets that are applied object by object, which would get one revision
	// for each and have their history elsewhere.
	NoRevision bool
	// ChangesOnly creates no revision if nothing changes, the newest revision has the same Source and Commit, and the
	// commit is unmodified. Otherwise every run of a pipeline would create a revision and push out useful ones.
	ChangesOnly bool
	// Expect maps objects to the resourceVersion that they must have; 0 means that the object must not exist. If one
	// differs, nothing is changed, and the error holds a *[ConflictError] for each.
	Expect map[v1.Key]int64
}

// Others says what an apply does with objects that belong to another set.
type Others int

// The values of [ApplyOptions.Others].
const (
	RefuseOthers Others = iota // they are refused
	TakeOthers                 // they join the set of the apply
	LeaveOthers                // they are changed and stay in their sets
)

// Action is what an apply does to an object.
type Action string

// The actions of an apply, in the words of kubectl.
const (
	Created Action = "created"
	// Configured: the object existed, and its labels, annotations, spec, apiVersion
	// or files changed.
	Configured Action = "configured"
	// Unchanged: the meaning of the object is the same. Its position in the manifest and its set are updated without a
	// new resourceVersion.
	Unchanged Action = "unchanged"
	// Pruned: the object was removed, because its set no longer contains it.
	Pruned Action = "pruned"
)

// Change is what an apply did to one object.
type Change struct {
	Key    v1.Key
	Action Action
	// Before is the object before the apply, nil if it was created. After is the object after the apply, nil if it was
	// pruned; its Object is the given one, which is also the Object of Before if the two do not differ.
	Before, After *Record
	// TakenFrom is the previous set of the object, if the apply moved it.
	TakenFrom string
}

// DeleteOptions configure [Store.Delete].
type DeleteOptions struct {
	// By is the user who deletes and Command the command, for the audit log. Default of Command: "delete".
	By, Command string
}
