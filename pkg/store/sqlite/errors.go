package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// explain adds the name of the store and advice to an error. Errors about objects stay unchanged.
func (s *Store) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own := new(plan.Refusal); errors.As(err, &own) {
		return own.Err
	}
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.shown, context.Cause(ctx))
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrTooOld):
		return fmt.Errorf("%s: %w", s.shown, err)
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s: %w (%w): put a backup in its place, or move the file away and apply the manifests again, which begins a new audit and new counts", s.shown, store.ErrDamaged, err)
	case sqlite3.SQLITE_FULL:
		if s.atLimit(ctx) {
			return fmt.Errorf("%s: %w of %d bytes, nothing was changed (%w): delete old audit records with 'toolctl audit prune --before', or raise --store-max-bytes", s.shown, store.ErrLimit, s.max, err)
		}
		return fmt.Errorf("%s: %w, nothing was changed (%w): free disk space and try again", s.shown, store.ErrFull, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %w (%w): allow writing to both, or choose another with --store", s.shown, store.ErrReadOnly, err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%s: cannot be opened (%w): the file and its folder must be readable and writable; choose another with --store", s.shown, err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: the disk failed or is full, or the file may not grow (ulimit -f); nothing was changed (%w)", s.shown, err)
	}
	return fmt.Errorf("%s: %w", s.shown, err)
}

// atLimit reports whether the store is at its limit, to distinguish this from a full disk.
func (s *Store) atLimit(ctx context.Context) bool {
	const slack = 1 << 20 // the size of a large change
	var bytes int64
	err := s.db.QueryRowContext(context.WithoutCancel(ctx), "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()").Scan(&bytes)
	return err == nil && s.max > 0 && bytes+slack >= s.max
}

// code returns SQLite's extended result code of an error, or 0 for other errors (sqlite.org/rescode.html).
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
