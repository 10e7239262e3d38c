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
	// Read runs fn on a consistent snapshot of the store, possibly more than once.
	Read(ctx context.Context, fn func(Tx) error) error
	// Write runs fn in one transaction and commits it if fn returns nil.
	Write(ctx context.Context, fn func(Tx) error) error
	// Now returns the present time by the clock of the store.
	Now(ctx context.Context) (time.Time, error)
	// Explain adds the name of the store and advice to an error, as Read and Write do.
	Explain(ctx context.Context, err error) error
	// Notify wakes the watches of this process after a change.
	Notify()
	// Watched returns the source of changes by all processes, and Audited that of new audit records.
	Watched() *watch.Source
	Audited() *watch.Source
	// Audit has the methods that differ between SQLite and PostgreSQL.
	store.Audit
}

// Tx is a transaction. It belongs to the call that created it.
type Tx interface {
	// Exec executes a statement and returns the number of changed rows.
	Exec(query string, args ...any) (int64, error)
	Query(query string, args ...any) (Rows, error)
	// Lock prevents others from changing "objects", "approvals", "overrides", "conditions", "runs" or "vectors" until the
	// transaction ends.
	Lock(what string) error
	// Tell notifies all processes of a change when the transaction is committed.
	Tell(what string) error
	// AddAudit adds audit records. It must be the last operation of the transaction.
	AddAudit(lines ...v1.AuditRecord) error
	// Each executes a statement with each of several lists of values.
	Each(statement string, args iter.Seq[[]any]) error
	// Fill adds rows to a table.
	Fill(t store.Table, rows iter.Seq2[[]any, error]) error
	// Room returns an error if the transaction made the store exceed its limit and the database does not check that
	// itself.
	Room() error
}

// Rows are the rows of a query. The caller must close them.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close()
}

// Dialect holds the queries and names that differ between the databases.
type Dialect struct {
	// Place is the column that orders approvals by their creation.
	Place string
	// Revision is the query of the last resourceVersion, LastLine that of the last audit record.
	Revision, LastLine string
	// SetRevision sets the resourceVersion to $1 after objects were written.
	SetRevision string
	// LastOverride is the query of the newest version of an override, NextOverride allocates the next.
	LastOverride, NextOverride string
	// Line is the column with the number of an audit record, Audit the table with the condition for its records, and
	// Namespace the namespace in a record.
	Line, Audit, Namespace string
	// Start is the query of the last pruned record before the first remaining one, and its hash. It locks the row until
	// the end of the transaction. SetStart sets both after $3 bytes were removed.
	Start, SetStart string
	// Glob converts a pattern of * and ? to an operator and its value.
	Glob func(pattern string) (operator, value string)
	// Copying has the statements for copies of the store.
	Copying Copying
}

// Methods are the shared methods of a store.
type Methods struct {
	b    Backend
	d    Dialect
	keep int64
}

// New returns the shared methods of a store that keeps the last keep changes for watches.
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

// find reads the row of a query, and reports whether it exists.
func find(tx Tx, into []any, query string, args ...any) (bool, error) {
	found, err := all(tx, func(r Rows) (any, error) { return nil, r.Scan(into...) }, query, args...)
	return len(found) > 0, err
}

// One reads the row of a query that always has one row.
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
	store.Vectors
	store.Copier
} = Methods{}
