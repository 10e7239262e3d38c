package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Table is rows of one kind that [Copy] copies between stores.
type Table struct {
	Name    string
	Columns []string
}

// tables are all data of a store. The table "last" has the last numbers in use that no row shows, such as the
// resourceVersion, and the start of the audit log with the hash before it.
var tables = []Table{
	{"last", []string{"name", "value", "hash"}},
	{"objects", []string{"kind", "namespace", "name", "set_name", "uid", "resource_version", "generation", "created", "updated", "manifest", "origin", "remote"}},
	{"changes", []string{"resource_version", "type", "kind", "namespace", "name", "set_name", "uid", "generation", "created", "updated", "manifest", "origin"}},
	{"counters", []string{"key", "used", "expires"}},
	{"audit", []string{"id", "time", "tool", "session", "status", "principal", "record", "hash"}},
	{"audit_open", []string{"call_id", "line"}},
	{"overrides", []string{"version", "namespace", "tool", "description", "author", "time"}},
	{"conditions", []string{"uid", "type", "status", "since"}},
	{"approvals", []string{"id", "subject", "principal", "session", "state", "created", "expires", "record", "redact", "edited"}},
	{"runs", []string{"id", "prompt", "updated", "state"}},
	{"revisions", []string{"set_name", "number", "record"}},
	{"revision_objects", []string{"kind", "namespace", "name", "set_name", "uid", "resource_version", "generation", "created", "updated", "manifest", "origin", "digest", "first", "last"}},
}

// Names of the rows of the table "last".
const (
	LastVersion = "objects" // the last resourceVersion
	LastLine    = "audit"   // the ID of the last audit record
	LastPruned  = "pruned"  // the ID of the last pruned audit record, and its hash
)

// Rows are the rows of a table, in their order. A value is a string, an int64, a []byte or nil.
type Rows func(Table) iter.Seq2[[]any, error]

// Copier is a store whose rows can be copied to and from a store of another kind.
type Copier interface {
	// CopyOut calls read with a consistent snapshot of all rows.
	CopyOut(ctx context.Context, read func(Rows) error) error
	// CopyIn writes all rows of the tables, or none. It returns [ErrNotEmpty] for a store that is not empty.
	CopyIn(ctx context.Context, tables []Table, rows Rows) error
}

// ErrNotEmpty says that a store is not empty and therefore cannot become a copy.
var ErrNotEmpty = errors.New("the store is not empty")

// ErrNoCopy says that a kind of store does not support copies.
var ErrNoCopy = errors.New("this kind of store ends with its process")

// Copy copies a consistent snapshot of a store to an empty store, possibly of another kind: manifests with their
// versions and revisions, counts, approvals, runs, overrides, and the audit log byte for byte.
func Copy(ctx context.Context, to, from Store) error {
	source, ok := from.(Copier)
	target, ok2 := to.(Copier)
	if !ok || !ok2 {
		return fmt.Errorf("copy: %w", ErrNoCopy)
	}
	var written error
	err := source.CopyOut(ctx, func(rows Rows) error {
		written = target.CopyIn(ctx, tables, rows)
		return written
	})
	if written != nil {
		return written // returned without the name of the source, for a readable message
	}
	return err
}
