package store

import (
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Record is an object as the store keeps it.
type Record struct {
	// Object is the manifest, with the place it came from and the files it names.
	Object v1.Object
	// ResourceVersion is the store-wide number of the object's last change.
	ResourceVersion int64
	// Generation starts at 1 and grows by 1 when the spec, the apiVersion by which
	// it is read, or the content of a file that it names changes.
	Generation int64
	// UID tells the object from an earlier one of the same name.
	UID string
	// Created and Updated are when the object was first applied and last changed, in UTC.
	Created, Updated time.Time
	// Set is the apply set that the object belongs to; "" is none.
	Set string
}

// Key returns the identity of the object.
func (r *Record) Key() v1.Key { return r.Object.Head().Key() }

// ListOptions choose what [Store.List] returns. The zero value is everything.
type ListOptions struct {
	// Kind, Namespace and Set keep the objects that have them; "" keeps all.
	Kind, Namespace, Set string
	// Name keeps the objects of that name, and Remote the tools that call a tool of that name of
	// an MCP server; "" keeps all. Both are found without reading the others.
	Name, Remote string
	// Offset skips that many objects; Limit is the most to return, 0 for all.
	Offset, Limit int
	// Layout keeps Header.Layout of the objects. Default: it is dropped, for the memory
	// it takes.
	Layout bool
}

// List is the result of [Store.List].
type List struct {
	// Records are in the order of [v1.Kinds], then of namespace, then of name.
	Records []Record
	// Total is how many objects there are without Offset and Limit.
	Total int
	// ResourceVersion is the version of the store that was read; a watch that
	// starts there misses nothing.
	ResourceVersion int64
}

// Check refuses options that make no sense. Backends ask it.
func (o ListOptions) Check() error {
	if o.Offset < 0 || o.Limit < 0 {
		return fmt.Errorf("list: offset %d and limit %d may not be negative", o.Offset, o.Limit)
	}
	return nil
}
