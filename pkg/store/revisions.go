package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Revisions are the applies of each set. [Objects.Apply] with a Set writes one, in the
// transaction of the apply, also when it changes nothing; a dry run, [Objects.Delete] and the
// apply of a set to which nothing ever belonged write none. The number of revisions of a set that are kept is bounded.
type Revisions interface {
	// Revisions returns the revisions that the query chooses, by set, the oldest first.
	Revisions(ctx context.Context, q RevisionQuery) ([]Revision, error)
	// RevisionObjects returns the objects that a set had after one of its revisions, in the
	// order of List. A revision that is not there is a *[v1.NotFoundError].
	RevisionObjects(ctx context.Context, set string, number int64) ([]Record, error)
}

// RevisionQuery chooses revisions. The zero value is all.
type RevisionQuery struct {
	// Set keeps those of a set, and Number that of a number; zero values keep all.
	Set    string
	Number int64
	// Newest keeps the newest of each set.
	Newest bool
}

// Revision is one apply of a set.
type Revision struct {
	Set string `json:"set"`
	// Number counts the revisions of the set, from 1.
	Number int64 `json:"revision"`
	// Time is when it was applied, to the microsecond, by whom and by what.
	Time    time.Time `json:"time"`
	By      string    `json:"by,omitempty"`
	Command string    `json:"command"`
	// Source is where the manifests were read from, and Commit the commit of git that they
	// are of; it ends in "-dirty" when files of the work tree had changed since.
	Source string `json:"source,omitempty"`
	Commit string `json:"commit,omitempty"`
	// UndoOf is the revision whose manifests were applied again.
	UndoOf int64 `json:"undo_of,omitempty"`
	// Digest is the same for sets that hold the same manifests; Objects is how many.
	Digest  string `json:"digest"`
	Objects int    `json:"objects"`
	// ResourceVersion is that of the store after the apply: an object of the set with a
	// larger one was changed since, by something else.
	ResourceVersion int64 `json:"resource_version"`
	// Changes are what the apply changed, in its order.
	Changes []RevisionChange `json:"changes"`
	// Left are the objects of the set that the apply did not have, and did not prune.
	Left []LeftObject `json:"left,omitempty"`
}

// RevisionChange is what an apply did to one object.
type RevisionChange struct {
	Action    Action `json:"action"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// TakenFrom is the set that the object belonged to before.
	TakenFrom string `json:"taken_from,omitempty"`
}

// LeftObject is an object of a set that was not part of an apply, and the last revision that
// it was part of; 0 when that is not known.
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

// Drifted reports whether something else than its set changed an object after r, which is the
// newest revision of the set.
func (r *Revision) Drifted(rec *Record) bool { return rec.ResourceVersion > r.ResourceVersion }

// Of returns the last revision that an object of the set was part of, and its commit, when r
// is the newest.
func (r *Revision) Of(key v1.Key) (number int64, commit string) {
	for _, l := range r.Left {
		if l.Key() == key {
			return l.Revision, l.Commit
		}
	}
	return r.Number, r.Commit
}

// DefaultHistory is how many revisions of a set are kept beside the newest when
// [ApplyOptions] do not say.
const DefaultHistory = 10

// NoRevision is the error for a revision that is not there; kept are those of the set.
func NoRevision(set string, number int64, kept []Revision) *v1.NotFoundError {
	e := &v1.NotFoundError{Kind: "Revision", Name: fmt.Sprintf("%d of set %s", number, set)}
	for _, r := range slices.Backward(kept) {
		if e.Candidates = append(e.Candidates, fmt.Sprint(r.Number)); len(e.Candidates) == 5 {
			break
		}
	}
	return e
}
