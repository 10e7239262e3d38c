// Package sqlstore has the methods of a store whose statements SQLite and PostgreSQL both
// understand, so that they are written once. What differs between the two is [Backend],
// [Tx] and [Dialect].
//
// Values have numbers in the statements: $1, $2, and so on. Tables have their names in PostgreSQL,
// which begin with toolctl_.
package sqlstore

import (
	"context"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Backend is what a store brings.
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
	// Watched tells of the changes of all processes.
	Watched() *watch.Source
}

// Tx is a transaction, for the one call that made it.
type Tx interface {
	// Exec carries out a statement and returns how many rows it changed.
	Exec(query string, args ...any) (int64, error)
	Query(query string, args ...any) (Rows, error)
	// Lock keeps others from changing "objects", "approvals" or "conditions" until the end.
	Lock(what string) error
	// Tell has all processes told of a change once the transaction is committed.
	Tell(what string) error
	// AddAudit adds lines to the audit. They come last.
	AddAudit(lines ...v1.AuditRecord) error
	// Rows returns those of the rows of some keys that are there, in any order.
	Rows(keys []v1.Key) ([]plan.Row, error)
	// CarryOut writes what a plan says.
	CarryOut(p *plan.Plan) error
}

// Rows are the rows of a query, to be closed.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close()
}

// Dialect is what the same thing is called in a database.
type Dialect struct {
	// Place is the column of approvals by which they are in the order of their creation.
	Place string
	// Revision is the query of the resourceVersion given out last, LastLine that of the last line
	// of the audit.
	Revision, LastLine string
	// Line is the column with the number of a line of the audit, Audit the table and the condition
	// that lines fit, and Namespace the namespace in a record.
	Line, Audit, Namespace string
	// Start is the query of the line that was pruned last before the first that is left, and its hash, which no
	// other process changes until the end of the transaction; SetStart sets both when $3 bytes were removed.
	Start, SetStart string
	// Glob makes a condition for a column, without the number of its value, of a pattern of * and ?.
	Glob func(pattern string) (operator, value string)
}

// Methods are the shared methods of a store.
type Methods struct {
	b Backend
	d Dialect
}

// New makes the shared methods.
func New(b Backend, d Dialect) Methods { return Methods{b, d} }

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

// Columns are the columns of a row, in the order of [Fields] and [Values].
const Columns = "kind, namespace, name, set_name, uid, resource_version, generation, created, updated, manifest, origin"

// Fields are what the columns are scanned into.
func Fields(r *plan.Row) []any {
	return []any{&r.Key.Kind, &r.Key.Namespace, &r.Key.Name, &r.Set, &r.UID, &r.Version, &r.Generation, &r.Created, &r.Updated, &r.Manifest, &r.Origin}
}

// Values are what the columns are filled with.
func Values(r *plan.Row) []any {
	return []any{r.Key.Kind, r.Key.Namespace, r.Key.Name, r.Set, r.UID, r.Version, r.Generation, r.Created, r.Updated, r.Manifest, r.Origin}
}

// Objects reads the rows of a query for Columns.
func Objects(tx Tx, query string, args ...any) ([]plan.Row, error) {
	return all(tx, func(r Rows) (row plan.Row, err error) {
		err = r.Scan(Fields(&row)...)
		return row, err
	}, query, args...)
}

var _ interface {
	store.Approvals
	store.Conditions
	store.Revisions
} = Methods{}
