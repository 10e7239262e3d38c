package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Revisions are the applies of each set. [Objects.Apply] with a Set writes a revision in the transaction of the apply,
// even if nothing changes. A dry run, [Objects.Delete] and the apply of a set that never had objects write no revision.
// The number of stored revisions per set is limited.
type Revisions interface {
	// Revisions returns the revisions that the query selects, by set, oldest first.
	Revisions(ctx context.Context, q RevisionQuery) ([]Revision, error)
	// RevisionObjects returns the objects of a set after one of its revisions, in the order of List. A missing revision
	// is a *[v1.NotFoundError].
	RevisionObjects(ctx context.Context, set string, number int64) ([]Record, error)
}

// RevisionQuery selects revisions. The zero value selects all.
type RevisionQuery struct {
	// Set and Number select revisions by these fields; zero values select all.
	Set    string
	Number int64
	// Newest selects the newest revision of each set.
	Newest bool
}

// Revision is one apply of a set.
type Revision struct {
	Set string `json:"set"`
	// Number numbers the revisions of the set, from 1.
	Number int64 `json:"revision"`
	// Time is when the set was applied, in microseconds. By is the user and Command the command.
	Time    time.Time `json:"time"`
	By      string    `json:"by,omitempty"`
	Command string    `json:"command"`
	// Source is where the manifests were read from, and Commit their Git commit. The commit ends in "-dirty" if files
	// of the work tree were modified.
	Source string `json:"source,omitempty"`
	Commit string `json:"commit,omitempty"`
	// UndoOf is the revision whose manifests were applied again.
	UndoOf int64 `json:"undo_of,omitempty"`
	// Digest is equal for sets with the same manifests; Objects is their number.
	Digest  string `json:"digest"`
	Objects int    `json:"objects"`
	// ResourceVersion is the version of the store after the apply. An object of the set with a larger one was changed
	// later by something else.
	ResourceVersion int64 `json:"resource_version"`
	// Changes are the changes of the apply, in its order.
	Changes []RevisionChange `json:"changes"`
	// Left are the objects of the set that were neither applied nor pruned.
	Left []LeftObject `json:"left,omitempty"`
}

// RevisionChange is what an apply did to one object.
type RevisionChange struct {
	Action    Action `json:"action"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// TakenFrom is the previous set of the object.
	TakenFrom string `json:"taken_from,omitempty"`
}

// LeftObject is an object of a set that was not part of an apply, with the last revision that contained it; 0 if that
// is unknown.
type LeftObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  int64  `json:"revision"`
	Commit    string `json:"commit,omitempty"`
	Source    string `json:"source,omitempty"`
}

// Key returns the identity of the object.
func (c RevisionChange) Key() v1.Key {
	return v1.Key{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// Key returns the identity of the object.
func (l LeftObject) Key() v1.Key { return v1.Key{Kind: l.Kind, Namespace: l.Namespace, Name: l.Name} }

// Drifted reports whether something other than an apply of its set changed an object after r, which must be the newest
// revision of the set.
func (r *Revision) Drifted(rec *Record) bool { return rec.ResourceVersion > r.ResourceVersion }

// Of returns the last revision that contained an object of the set, and its commit. r must be the newest revision.
func (r *Revision) Of(key v1.Key) (number int64, commit string) {
	for _, l := range r.Left {
		if l.Key() == key {
			return l.Revision, l.Commit
		}
	}
	return r.Number, r.Commit
}

// DefaultHistory is the default of [ApplyOptions.History].
const DefaultHistory = 10

// NoRevision returns the error for a missing revision; kept are the stored revisions of the set.
func NoRevision(set string, number int64, kept []Revision) *v1.NotFoundError {
	e := &v1.NotFoundError{Kind: "Revision", Name: fmt.Sprintf("%d of set %s", number, set)}
	for _, r := range slices.Backward(kept) {
		if e.Candidates = append(e.Candidates, fmt.Sprint(r.Number)); len(e.Candidates) == 5 {
			break
		}
	}
	return e
}
