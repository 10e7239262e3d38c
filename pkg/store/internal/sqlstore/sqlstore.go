// Package sqlstore implements the methods of a store with statements that SQLite and PostgreSQL both
// understand. [Backend], [Tx] and [Dialect] hold the differences between the two.
//
// Values have numbers in the statements: $1, $2, and so on. Tables have their names in PostgreSQL,
// which begin with toolctl_.
package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Backend is a database: its transactions, its clock and its errors.
type Backend interface {
	// Read runs fn on one unchanging view of the store, perhaps more than once.
	Read(ctx context.Context, fn func(Tx) error) error
	// Write runs fn in one transaction, and commits it when fn returns nil.
	Write(ctx context.Context, fn func(Tx) error) error
	// Now is what time it is by the clock of the store.
	Now(ctx context.Context) (time.Time, error)
	// Explain names the store in an error, as Read and Write do, and says what to do about it.
	Explain(ctx context.Context, err error) error
	// Notify tells the watches of this process of a change.
	Notify()
	// Watched tells of the changes of all processes, and Audited of the lines that they add to the audit.
	Watched() *watch.Source
	Audited() *watch.Source
	// Audit has the methods that differ between the two.
	store.Audit
}

// Tx is a transaction, for the one call that made it.
type Tx interface {
	// Exec carries out a statement and returns how many rows it changed.
	Exec(query string, args ...any) (int64, error)
	Query(query string, args ...any) (Rows, error)
	// Lock keeps others from changing "objects", "approvals", "overrides", "conditions" or "runs" until the end.
	Lock(what string) error
	// Tell notifies all processes of a change once the transaction is committed.
	Tell(what string) error
	// AddAudit adds lines to the audit. They come last.
	AddAudit(lines ...v1.AuditRecord) error
	// Each carries out a statement with each of several lists of values.
	Each(statement string, args iter.Seq[[]any]) error
	// Fill adds rows to a table.
	Fill(t store.Table, rows iter.Seq2[[]any, error]) error
	// Room refuses what made the store larger than it may be, where the database does not do that.
	Room() error
}

// Rows are the rows of a query, to be closed.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close()
}

// Dialect holds the queries and names that differ between the databases.
type Dialect struct {
	// Place is the column of approvals by which they are in the order of their creation.
	Place string
	// Revision is the query of the resourceVersion given out last, LastLine that of the last line
	// of the audit.
	Revision, LastLine string
	// SetRevision sets the resourceVersion to $1, once objects were written.
	SetRevision string
	// LastOverride is the query of the newest version of an override, NextOverride gives out the next.
	LastOverride, NextOverride string
	// Line is the column with the number of a line of the audit, Audit the table and the condition
	// that lines fit, and Namespace the namespace in a record.
	Line, Audit, Namespace string
	// Start is the query of the line that was pruned last before the first that is left, and its hash, which no
	// other process changes until the end of the transaction; SetStart sets both when $3 bytes were removed.
	Start, SetStart string
	// Glob makes a condition for a column, without the number of its value, of a pattern of * and ?.
	Glob func(pattern string) (operator, value string)
	// Copying is for copies of the store.
	Copying Copying
}

// Methods are the shared methods of a store.
type Methods struct {
	b    Backend
	d    Dialect
	keep int64
}

// New makes the shared methods of a store that keeps so many changes for watches.
func New(b Backend, d Dialect, keep int64) Methods { return Methods{b, d, keep} }

// all reads each row of a query.
func all[T any](tx Tx, read func(Rows) (T, error), query string, args ...any) (found []T, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		item, err := read(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, item)
	}
	rows.Close()
	return found, rows.Err()
}

// find reads the row of a query, and reports whether there is one.
func find(tx Tx, into []any, query string, args ...any) (bool, error) {
	found, err := all(tx, func(r Rows) (any, error) { return nil, r.Scan(into...) }, query, args...)
	return len(found) > 0, err
}

// One reads the row of a query that always has one.
func One(tx Tx, into []any, query string, args ...any) error {
	there, err := find(tx, into, query, args...)
	if err == nil && !there {
		return fmt.Errorf("%w: a required row is missing", store.ErrDamaged)
	}
	return err
}

var _ interface {
	store.Objects
	store.Overrides
	store.Approvals
	store.Conditions
	store.Revisions
	store.Runs
	store.Copier
} = Methods{}
