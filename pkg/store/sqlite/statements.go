package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// A connection caches its compiled statements until it is closed, because SQLite takes longer to compile most of them
// than to execute them.

// maxKept is the maximum number of cached statements per connection.
const maxKept = 32

// keeping opens connections that cache their statements.
type keeping struct{ driver.Connector }

func (c keeping) Connect(ctx context.Context) (driver.Conn, error) {
	plain, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := plain.(ableConn)
	if !ok {
		return nil, fmt.Errorf("a connection of the driver is a %T, which lacks a method that toolctl uses", plain)
	}
	return &keeper{able, map[string]ableStmt{}}, nil
}

// ableConn is the interface of the driver's connections.
type ableConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// ableStmt is the interface of the driver's statements.
type ableStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keeper is a connection with its idle statements by text. One goroutine uses it at a time.
type keeper struct {
	ableConn
	idle map[string]ableStmt
}

// keeps reports whether a statement can be cached. Other statements are executed when they are compiled, such as
// PRAGMA, or consist of several.
func keeps(query string) bool {
	verb, _, _ := strings.Cut(query, " ")
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return true
	}
	return false
}

// take returns a statement for exclusive use until put.
func (k *keeper) take(ctx context.Context, query string) (ableStmt, error) {
	if s, ok := k.idle[query]; ok {
		delete(k.idle, query)
		return s, nil
	}
	s, err := k.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	able, ok := s.(ableStmt)
	if !ok {
		return nil, fmt.Errorf("a statement of the driver is a %T, which lacks a method that toolctl uses", s)
	}
	return able, nil
}

// put returns a statement to the cache.
func (k *keeper) put(query string, s ableStmt) error {
	if k.idle[query] != nil { // two rows used the same statement at once
		return s.Close()
	}
	for old, other := range k.idle {
		if len(k.idle) < maxKept {
			break
		}
		delete(k.idle, old)
		if err := other.Close(); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	k.idle[query] = s
	return nil
}

// ExecContext implements [driver.ExecerContext].
func (k *keeper) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !keeps(query) {
		return k.ableConn.ExecContext(ctx, query, args)
	}
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(ctx, args)
	return res, errors.Join(err, k.put(query, s))
}

// QueryContext implements [driver.QueryerContext].
func (k *keeper) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !keeps(query) {
		return k.ableConn.QueryContext(ctx, query, args)
	}
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, k.put(query, s))
	}
	return &keptRows{rows, func() error { return k.put(query, s) }}, nil
}

// keptRows return their statement to the cache when they are closed.
type keptRows struct {
	driver.Rows
	done func() error
}

func (r *keptRows) Close() error { return errors.Join(r.Rows.Close(), r.done()) }

// Close closes the statements and the connection.
func (k *keeper) Close() error {
	var errs []error
	for _, s := range k.idle {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, k.ableConn.Close())...)
}
