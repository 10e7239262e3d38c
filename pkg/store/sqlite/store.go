// Package sqlite keeps a store in one SQLite file. Several processes of one machine may use
// it at once.
//
// # Durability
//
// Once Apply or Delete returned, the change is on the disk (SQLite's synchronous
// FULL). Counters and audit lines are written with synchronous NORMAL, which in
// WAL mode costs a call no wait for the disk: they survive the death of the
// process, kill -9 included, and the file stays intact in any case, but when the
// machine loses power the last of them may be missing.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Store is an open store.
type Store struct {
	sqlstore.Methods

	name  string // the path of the file; empty in memory
	shown string // for messages
	db    *sql.DB
	busy  time.Duration
	max   int64
	now   func() time.Time

	gate    chan struct{} // holds the token of the only writer of this process
	closed  chan struct{}
	once    sync.Once
	changed watch.Source // objects and overrides
	audited watch.Source
	sweep   sweeper
	shorts  *sqlstore.Batch[*shortWrite]
	gap     gap
}

// Open opens the store that dsn names: a file path, "file:PATH" or "sqlite:PATH".
func Open(ctx context.Context, dsn string, opts store.Options) (store.Store, error) {
	s, err := open(ctx, dsn, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, dsn string, opts store.Options) (*Store, error) {
	path, err := parseDSN(dsn)
	if err != nil {
		return nil, &store.NameError{Err: err}
	}
	if err := opts.Check(); err != nil {
		return nil, err
	}
	s := newStore(path, opts)
	if err := prepareFile(path, opts.Create); err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(driverDSN(path, s.max))
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	s.db = sql.OpenDB(keeping{connector})
	s.db.SetMaxOpenConns(8)
	s.db.SetMaxIdleConns(8)
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(s.explain(ctx, err), s.db.Close())
	}
	s.adoptGaps(ctx)
	return s, nil
}

// newStore returns a store without a database.
func newStore(path string, opts store.Options) *Store {
	keep := int64(cmp.Or(opts.KeepChanges, 10_000))
	s := &Store{
		name:   path,
		shown:  fmt.Sprintf("store %q", path),
		busy:   cmp.Or(opts.BusyTimeout, 10*time.Second),
		max:    opts.MaxBytes,
		now:    time.Now,
		gate:   make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	s.Methods = sqlstore.New(backend{s}, dialect, keep)
	s.shorts = sqlstore.NewBatch(s.gate, s.closed, s.writeTogether)
	interval := cmp.Or(opts.WatchInterval, 250*time.Millisecond)
	s.changed.Interval, s.changed.Closed, s.audited.Interval, s.audited.Closed = interval, s.closed, interval, s.closed
	return s
}

// prepareFile checks or creates the file. SQLite creates its other files with the same permissions.
func prepareFile(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return &store.NameError{Err: fmt.Errorf("store %q: is a folder: name a file in it, for example %q", path, filepath.Join(path, "state.db"))}
	case err == nil && !info.Mode().IsRegular():
		return &store.NameError{Err: fmt.Errorf("store %q: is a device or a pipe, not a file", path)}
	case err == nil:
		if err := checkMagic(path); err != nil {
			return err
		}
		return protect(path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("store %q: %w", path, regular.Reason(err))
	case !create:
		return fmt.Errorf("store %q: %w: create it with \"toolctl apply -f PATH\", or pass manifests with -f", path, fs.ErrNotExist)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("store %q: cannot create its folder: %w", path, err)
	}
	if err := protect(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("store %q: cannot create the file: %w", path, regular.Reason(err))
	}
	return f.Close()
}

// protect refuses a store that others can write: they could change what runs, and its audit log. SQLite's own files
// next to it hold the same data.
func protect(path string) error {
	for range 40 { // the number of symlinks that Linux follows; the file may not exist yet
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	err := perm.Folder(filepath.Dir(path))
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err == nil {
			err = perm.File(path + suffix)
		}
	}
	if err != nil {
		return fmt.Errorf("store %w; or choose another store with --store", err)
	}
	return nil
}

// checkMagic refuses a file that is not an SQLite database. SQLite would treat a file shorter than one of its pages as
// an empty database and overwrite it.
func checkMagic(path string) error {
	const magic = "SQLite format 3\x00" // sqlite.org/fileformat2.html, section 1.3
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store %q: %w", path, regular.Reason(err))
	}
	defer f.Close()
	var head [len(magic)]byte
	n, err := io.ReadFull(f, head[:])
	switch {
	case errors.Is(err, io.EOF), string(head[:n]) == magic:
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("store %q: %w", path, regular.Reason(err))
	}
	return fmt.Errorf("store %q: %w: it is not a database: move the file away and apply the manifests again, or choose another with --store", path, store.ErrDamaged)
}

// Close ends every watch and closes the store. Methods called later return
// [store.ErrClosed].
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closed)
		err = s.db.Close()
	})
	if err != nil {
		return fmt.Errorf("%s: close: %w", s.shown, err)
	}
	return nil
}
