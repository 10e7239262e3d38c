package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Table is rows of one kind, as [Copy] takes them from store to store.
type Table struct {
	Name    string
	Columns []string
}

// tables are all that a store holds. Of a number given out last that no row shows, such as the
// resourceVersion, "last" has a row; and of the audit's start, which has the hash before it.
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
	LastVersion = "objects" // the resourceVersion that was given out last
	LastLine    = "audit"   // the line of the audit that was written last
	LastPruned  = "pruned"  // the line that was pruned last, and its hash
)

// Rows are the rows of a table, in their order. A value is a string, an int64, a []byte or nil.
type Rows func(Table) iter.Seq2[[]any, error]

// Copier is a store whose rows can be taken to a store of another kind, and from one.
type Copier interface {
	// CopyOut calls read with all rows, as they are at one moment.
	CopyOut(ctx context.Context, read func(Rows) error) error
	// CopyIn writes all rows of the tables, or none. A store that is not empty is refused with
	// [ErrNotEmpty].
	CopyIn(ctx context.Context, tables []Table, rows Rows) error
}

// ErrNotEmpty says that a store has something in it, and so cannot become a copy of another.
var ErrNotEmpty = errors.New("the store is not empty")

// ErrNoCopy says that a kind of store can neither be copied nor become a copy.
var ErrNoCopy = errors.New("this kind of store ends with its process")

// Copy makes an empty store a copy of another one, of another kind too, as that is at one
// moment: manifests with their versions and revisions, counts, approvals, runs, overrides, and the
// audit byte for byte.
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
		return written // without the name of the source, which reads well
	}
	return err
}
