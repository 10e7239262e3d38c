package store

import (
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Record is a stored object.
type Record struct {
	// Object is the manifest, with its source and the files that it names.
	Object v1.Object
	// ResourceVersion is the store-wide number of the object's last change.
	ResourceVersion int64
	// Generation starts at 1 and grows by 1 when the spec, the apiVersion, or the content of a file that the manifest
	// names changes.
	Generation int64
	// UID distinguishes the object from an earlier one with the same name.
	UID string
	// Created and Updated are when the object was first applied and last changed, in UTC.
	Created, Updated time.Time
	// Set is the apply set of the object; "" means no set.
	Set string
}

// Key returns the identity of the object.
func (r *Record) Key() v1.Key { return r.Object.Head().Key() }

// ListOptions select what [Store.List] returns. The zero value selects everything.
type ListOptions struct {
	// Kind, Namespace and Set select objects by these fields; "" selects all.
	Kind, Namespace, Set string
	// Name selects objects by name, and Remote selects tools that call a tool with that name on an MCP server; ""
	// selects all. Both use an index.
	Name, Remote string
	// Offset skips that many objects; Limit is the maximum number of objects, 0 for no limit.
	Offset, Limit int
	// Layout keeps Header.Layout of the objects. Default: it is dropped, to save memory.
	Layout bool
}

// List is the result of [Store.List].
type List struct {
	// Records are sorted in the order of [v1.Kinds], then by namespace, then by name.
	Records []Record
	// Total is the number of objects regardless of Offset and Limit.
	Total int
	// ResourceVersion is the version of the store that was read; a watch that starts there misses nothing.
	ResourceVersion int64
}

// Check returns an error for invalid options. Backends call it.
func (o ListOptions) Check() error {
	if o.Offset < 0 || o.Limit < 0 {
		return fmt.Errorf("list: offset %d and limit %d may not be negative", o.Offset, o.Limit)
	}
	return nil
}
