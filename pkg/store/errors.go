package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	v1 "toolctl.dev/toolctl/api/v1"
)

var (
	// ErrNewer is returned by [Open] for a store that a newer toolctl has written.
	ErrNewer = errors.New("written by a newer toolctl")
	// ErrDamaged is returned by every method when the file is not a store of
	// toolctl, or no longer one that can be read.
	ErrDamaged = errors.New("not a store of toolctl, or damaged")
	// ErrBusy is returned when another process kept the store locked for the whole
	// of [Options.BusyTimeout]. Nothing was changed.
	ErrBusy = errors.New("locked by another process")
	// ErrFull is returned when the disk has no room. Nothing was changed.
	ErrFull = errors.New("the disk is full")
	// ErrLimit is returned when the store would grow beyond [Options.MaxBytes]. Nothing was
	// changed.
	ErrLimit = errors.New("the store has reached its size limit")
	// ErrReadOnly is returned when the file or its folder cannot be written.
	ErrReadOnly = errors.New("the file or its folder cannot be written")
	// ErrTooOld is returned by [Store.Watch] when the changes it should start with
	// are no longer kept, as Kubernetes answers 410 Gone: list again and watch from there.
	ErrTooOld = errors.New("resourceVersion is too old")
	// ErrClosed is returned after [Store.Close].
	ErrClosed = errors.New("store is closed")
)

// ConflictError says that an object is not at the version that a caller of
// [Store.Apply] expected. Nothing was changed.
type ConflictError struct {
	Key v1.Key
	// Want is the resourceVersion that was expected, Found the one in the store; 0
	// means that there is no such object.
	Want, Found int64
}

func (e *ConflictError) Error() string {
	switch {
	case e.Found == 0:
		return fmt.Sprintf("%s: conflict: expected resourceVersion %d, but the object is gone: read it again", e.Key, e.Want)
	case e.Want == 0:
		return fmt.Sprintf("%s: conflict: expected no such object, found resourceVersion %d: read it again", e.Key, e.Found)
	}
	return fmt.Sprintf("%s: conflict: expected resourceVersion %d, found %d: someone changed it, read it again", e.Key, e.Want, e.Found)
}

// SetError says that an apply would take an object over from another set. Nothing was
// changed.
type SetError struct {
	Key v1.Key
	// Set is that of the apply, Owner the one that the object belongs to.
	Set, Owner string
}

func (e *SetError) Error() string {
	name := strings.NewReplacer("\n", ", ") // of a set that is named by its paths
	return fmt.Sprintf("%s belongs to set %q, and this apply is of set %q", e.Key, name.Replace(e.Owner), name.Replace(e.Set))
}

// explain names the store in an error and says what to do about it. Errors of
// the objects themselves stay as they are.
func (s *Store) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own := new(refusal); errors.As(err, &own) {
		return own.err
	}
	select {
	case <-s.closed:
		return ErrClosed
	default:
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("store %q: %w", s.name, context.Cause(ctx))
	case errors.Is(err, ErrBusy), errors.Is(err, ErrNewer), errors.Is(err, ErrDamaged), errors.Is(err, ErrTooOld):
		return fmt.Errorf("store %q: %w", s.name, err)
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("store %q: %w (%w): move the file away and apply the manifests again", s.name, ErrDamaged, err)
	case sqlite3.SQLITE_FULL:
		if s.atLimit(ctx) {
			return fmt.Errorf("store %q: %w of %d bytes, nothing was changed (%w): remove old lines of the audit with 'toolctl audit prune --before', or raise --store-max-bytes", s.name, ErrLimit, s.max, err)
		}
		return fmt.Errorf("store %q: %w, nothing was changed (%w): make room and try again", s.name, ErrFull, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("store %q: %w (%w): allow writing to both, or choose another with --store", s.name, ErrReadOnly, err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("store %q: cannot be opened (%w): the file and its folder must be readable and writable; choose another with --store", s.name, err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("store %q: the disk failed or is full, or the file may not grow (ulimit -f); nothing was changed (%w)", s.name, err)
	}
	return fmt.Errorf("store %q: %w", s.name, err)
}

// atLimit tells a store that is as large as it may be from a disk that is full.
func (s *Store) atLimit(ctx context.Context) bool {
	const slack = 1 << 20 // what one change may need at once
	var bytes int64
	err := s.db.QueryRowContext(context.WithoutCancel(ctx), "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()").Scan(&bytes)
	return err == nil && s.max > 0 && bytes+slack >= s.max
}

// refusal marks an error that is about objects and not about the store.
type refusal struct{ err error }

func refuse(err error) error     { return &refusal{err} }
func (r *refusal) Error() string { return r.err.Error() }

// code is SQLite's extended result code of an error, 0 for other errors
// (sqlite.org/rescode.html).
func code(err error) int {
	if se := new(sqlite.Error); errors.As(err, &se) {
		return se.Code()
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err) & 0xff
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}
