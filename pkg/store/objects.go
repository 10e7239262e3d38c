package store

import (
	"context"
	"iter"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Objects are the applied manifests.
//
// As in Kubernetes, every change of an object takes the next number of one store-wide
// count, its resourceVersion, and an object's generation starts at 1 and grows when its
// spec changes. [Objects.List] returns the resourceVersion of what it read;
// [Objects.Watch] goes on from there.
type Objects interface {
	// Apply makes the store hold the objects, all of them or, when it returns an
	// error, none. The changes are in the order of the objects; then come those that
	// were pruned, in the order of List. The objects must not change meanwhile. Each change
	// is a line of the audit.
	Apply(ctx context.Context, objects []v1.Object, opts ApplyOptions) ([]Change, error)
	// Delete removes objects, all of them or, when it returns an error, none, and
	// returns them as they were, in the order of the keys. A missing object is a
	// *[v1.NotFoundError]; when several are missing the error holds one for each.
	// A key that is given twice counts once.
	Delete(ctx context.Context, keys []v1.Key, opts DeleteOptions) ([]Record, error)
	// Get returns one object. A missing one is a *[v1.NotFoundError] with near names.
	Get(ctx context.Context, key v1.Key) (Record, error)
	// List returns the objects that opts choose, all of one version of the store.
	List(ctx context.Context, opts ListOptions) (List, error)
	// Revision returns the resourceVersion of the last change in the store, 0 when
	// nothing was ever applied.
	Revision(ctx context.Context) (int64, error)
	// Watch yields every change after resourceVersion from, in order, those of other
	// processes too, and waits for more until ctx ends or the loop is left:
	//
	//	for event, err := range st.Watch(ctx, list.ResourceVersion) {
	//
	// An error ends it: [ErrTooOld] when changes after from are no longer kept, or
	// when from is not of this store, and [ErrClosed]. The end of ctx is no error.
	Watch(ctx context.Context, from int64) iter.Seq2[Event, error]
}

// EventType is what happened to an object.
type EventType string

// The types of an [Event], in Kubernetes' words.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is one change of one object.
type Event struct {
	Type EventType
	// Record is the object after the change; for a deleted one as it was, with the
	// resourceVersion and the time of the deletion.
	Record Record
}
