package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"sync"
	"time"

	"modernc.org/sqlite"

	"toolctl.dev/toolctl/pkg/store"
)

// MaxMemory is the maximum size in bytes of a store in memory (SQLITE_MEMDB_DEFAULT_MAXSIZE, sqlite.org/compile.html).
const MaxMemory = 1 << 30

// InMemory returns an empty store in the memory of this process, with its own clock. The first use creates its
// database; no other process can open it.
func InMemory(opts store.Options, now func() time.Time) *Store {
	if opts.MaxBytes <= 0 || opts.MaxBytes > MaxMemory {
		opts.MaxBytes = MaxMemory
	}
	s := newStore("", opts)
	s.shown, s.now = "store in memory", now
	s.changed.Interval, s.audited.Interval = 0, 0 // no other process changes the store
	connector, err := sqlite.NewConnector("file:/" + rand.Text() + "?vfs=memdb&" + settings(s.max))
	s.db = sql.OpenDB(&inMemory{Connector: keeping{connector}, err: err})
	// In memory SQLite has no WAL, so readers would block writers. With one connection they take short turns.
	s.db.SetMaxOpenConns(1)
	return s
}

// inMemory opens connections to an in-memory database, which lives as long as one of them.
type inMemory struct {
	driver.Connector
	err  error // why there is no Connector
	mu   sync.Mutex
	kept *sql.DB // its idle connection keeps the database alive
}

func (m *inMemory) Connect(ctx context.Context) (driver.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	if m.kept == nil {
		kept := sql.OpenDB(m.Connector)
		if err := migrateUp(ctx, kept); err != nil {
			_ = kept.Close()
			return nil, err
		}
		m.kept = kept
	}
	return m.Connector.Connect(ctx)
}

// Close is called when the store is closed.
func (m *inMemory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		return nil
	}
	return m.kept.Close()
}
