package store

import (
	"context"
	"iter"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Objects are the applied manifests.
//
// As in Kubernetes, every change of an object takes the next number of one store-wide count, its resourceVersion, and
// an object's generation starts at 1 and grows when its spec changes. [Objects.List] returns the resourceVersion of the
// data that it read; pass it to [Objects.Watch] to continue from there.
type Objects interface {
	// Apply creates or updates the objects in the store: all of them, or none if it returns an error. The changes are
	// in the order of the objects, followed by pruned objects in the order of List. The caller must not change the
	// objects during the call. Each change adds an audit record.
	Apply(ctx context.Context, objects []v1.Object, opts ApplyOptions) ([]Change, error)
	// Delete removes objects: all of them, or none if it returns an error. It returns their last state, in the order of
	// the keys. A missing object is a *[v1.NotFoundError]; if several are missing, the error holds one for each.
	// Duplicate keys count once.
	Delete(ctx context.Context, keys []v1.Key, opts DeleteOptions) ([]Record, error)
	// Get returns one object. A missing object is a *[v1.NotFoundError] with similar names.
	Get(ctx context.Context, key v1.Key) (Record, error)
	// List returns the objects that opts select, all at the same version of the store.
	List(ctx context.Context, opts ListOptions) (List, error)
	// Revision returns the resourceVersion of the last change in the store, or 0 if nothing was ever applied.
	Revision(ctx context.Context) (int64, error)
	// Watch yields every change after resourceVersion from, in order and including those
	// of other processes, and waits for more until ctx ends or the loop ends:
	//
	//	for event, err := range st.Watch(ctx, list.ResourceVersion) {
	//
	// An error ends it: [ErrTooOld] if changes after from are no longer stored or
	// from belongs to another store, and [ErrClosed]. The end of ctx is not an error.
	Watch(ctx context.Context, from int64) iter.Seq2[Event, error]
}

// EventType is what happened to an object.
type EventType string

// The types of an [Event], in the words of Kubernetes.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is one change of one object.
type Event struct {
	Type EventType
	// Record is the object after the change. For a deleted object it is the last state, with the resourceVersion and
	// the time of the deletion.
	Record Record
}
