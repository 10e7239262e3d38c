// Package postgres keeps a store in a PostgreSQL database, which any number of processes on
// any number of machines may use at once.
//
// The names of its tables and functions begin with toolctl_, in the first schema of the search path. So a store
// can share a database with other programs, and several stores can share one database.
//
// # Durability
//
// Once a method that changes manifests, overrides or approvals returned, the change is on
// the database's disk. So are counters and audit lines, unless the DSN says synchronous_commit=off:
// then, as with the synchronous NORMAL of the SQLite store, the last fraction of a second of them may
// be missing after the database itself crashed. They survive the death of any process that
// uses the store, and of its connections, in either case.
package postgres

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Store is an open store.
type Store struct {
	sqlstore.Methods

	name  string // for messages
	pool  *pgxpool.Pool
	conns int // maximum connections of the pool
	max   int64

	closed  chan struct{}
	once    sync.Once
	changed watch.Source // all changes reported by NOTIFY
	audited watch.Source

	reserving *sqlstore.Batch[*reservation]
	releasing *sqlstore.Batch[[]v1.Counter]
	auditing  *sqlstore.Batch[chain.Line]
	// When expired counters and leases were last removed, by the clock of this process.
	swept, sweptLeases atomic.Int64
	silent             atomic.Bool // the last statement of a call was not answered

	mu        sync.Mutex // protects the fields below
	listening bool
	listener  sync.WaitGroup
	deaf      atomic.Bool // NOTIFY does not arrive
}

// Open opens the store in the database that dsn names: postgres://USER@HOST:PORT/DATABASE, with the parameters of libpq
// after a "?". Missing parts come from the PG variables of the environment.
func Open(ctx context.Context, dsn string, opts store.Options) (store.Store, error) {
	s, err := open(ctx, dsn, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, dsn string, opts store.Options) (*Store, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	busy := cmp.Or(opts.BusyTimeout, 10*time.Second)
	keep := int64(cmp.Or(opts.KeepChanges, 10_000))
	s := &Store{max: opts.MaxBytes, closed: make(chan struct{})}
	s.Methods = sqlstore.New(backend{s}, dialect, keep)
	// NOTIFY reports changes at once. The intervals are needed for the rest: poolers silently drop LISTEN, and audit
	// records are not notified, because every call writes them.
	s.changed.Interval, s.audited.Interval = cmp.Or(opts.WatchInterval, 5*time.Second), cmp.Or(opts.WatchInterval, 250*time.Millisecond)
	s.changed.Closed, s.audited.Closed = s.closed, s.closed
	config, err := parseDSN(dsn, busy, opts.MaxConnections)
	if err != nil {
		return nil, &store.NameError{Err: err}
	}
	s.name, s.conns = nameOf(config.ConnConfig), int(config.MaxConns)
	s.reserving = sqlstore.NewBatch(make(chan struct{}, 1), s.closed, s.reserveAll)
	s.releasing = sqlstore.NewBatch(make(chan struct{}, 1), s.closed, s.releaseAll)
	s.auditing = sqlstore.NewBatch(make(chan struct{}, 1), s.closed, s.appendAll)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.explain(ctx, err)
	}
	if err := s.migrate(ctx, opts.Create); err != nil {
		s.pool.Close()
		return nil, s.explain(ctx, err)
	}
	return s, nil
}

// Shared returns true, because other machines may use the store: see [store.Shared].
func (s *Store) Shared() bool { return true }

// Close ends every watch and closes the store. Methods called later return
// [store.ErrClosed].
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		close(s.closed)
		s.mu.Unlock()
		s.listener.Wait()
		closed := make(chan struct{})
		go func() { s.pool.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(closeTimeout): // connections to a frozen server end by themselves after 15 seconds
		}
	})
	return nil
}
