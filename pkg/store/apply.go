package store

import (
	v1 "toolctl.dev/toolctl/api/v1"
)

// ApplyOptions change what [Store.Apply] does.
type ApplyOptions struct {
	// Set names the apply set that the objects belong to from now on. Without it they stay
	// in the sets that they are in.
	Set string
	// Others says what happens to objects that belong to another set. Default: nothing is
	// changed, and the error holds a *[SetError] for each.
	Others Others
	// Keep says which objects of the set are not pruned although they are not among those
	// applied. Default: none.
	Keep func(Record) bool
	// Prune removes the objects of Set that are not among those applied. It needs a Set.
	Prune bool
	// DryRun computes the changes and makes none.
	DryRun bool
	// By is who applies and Command by what, for the audit. Default of the latter: "apply".
	By, Command string
	// Source and Commit say where the objects come from, and UndoOf which revision of the
	// set they are, for the revision that the apply makes; see [Revision].
	Source, Commit string
	UndoOf         int64
	// History is how many earlier revisions of the set are kept beside the new one; below 0
	// none are. Default: [DefaultHistory].
	History int
	// NoRevision makes no revision: a set that is applied object by object would have one for
	// each, and its history is kept elsewhere.
	NoRevision bool
	// ChangesOnly makes no revision either when nothing changes and the newest revision has the same
	// Source and Commit, and the commit is as it was committed: one for each run of a pipeline would push out those to go back to.
	ChangesOnly bool
	// Expect is the resourceVersion that an object must have, 0 for an object that
	// must not exist. When one differs nothing is changed, and the error holds a
	// *[ConflictError] for each.
	Expect map[v1.Key]int64
}

// Others is what an apply does with objects that belong to another set than its own.
type Others int

// The choices for [ApplyOptions].
const (
	RefuseOthers Others = iota // they are refused
	TakeOthers                 // they belong to the set of the apply from now on
	LeaveOthers                // they are changed, and stay in their sets
)

// Action is what an apply does to an object.
type Action string

// The actions of an apply, in kubectl's words.
const (
	Created Action = "created"
	// Configured: the object existed, and its labels, annotations, spec, apiVersion
	// or files changed.
	Configured Action = "configured"
	// Unchanged: the object means what it meant. Its place in the manifest and its
	// set are brought up to date without a new resourceVersion.
	Unchanged Action = "unchanged"
	// Pruned: the object was removed, because its set no longer has it.
	Pruned Action = "pruned"
)

// Change is what an apply did to one object.
type Change struct {
	Key    v1.Key
	Action Action
	// Before is the object as it was, nil when it was created. After is the object
	// as it is, nil when it was pruned; its Object is the one that was given, and so
	// is that of Before when the two do not differ.
	Before, After *Record
	// TakenFrom is the set that the object belonged to, when the apply took it over.
	TakenFrom string
}

// DeleteOptions say who removes objects.
type DeleteOptions struct {
	// By is who does it and Command by what, for the audit. Default of the latter: "delete".
	By, Command string
}
