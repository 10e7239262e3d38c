// Package memory keeps a store in the memory of one process, as long as it runs, for '--store memory:' and tests. It is
// an in-memory SQLite database, except for the counters, which every call of a tool uses.
package memory

import (
	"context"
	"io"
	"time"

	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// Options configure a store. The zero value selects the defaults.
type Options struct {
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// KeepChanges is the number of changes that a watch can go back. Default: 10,000.
	KeepChanges int
	// MaxBytes is the maximum size of the store without its counters. A larger change fails with [store.ErrLimit].
	// Default and maximum: 1 GiB.
	MaxBytes int64
}

// Store is an in-memory [store.Store].
type Store struct {
	*policy.MemoryCounters
	rest
}

// rest is [store.Store] without its counters.
type rest interface {
	store.Objects
	store.Approvals
	store.Audit
	store.Overrides
	store.Revisions
	store.Leases
	store.Conditions
	store.Runs
	store.Vectors
	io.Closer
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{policy.NewMemoryCounters(o.Now), sqlite.InMemory(store.Options{KeepChanges: o.KeepChanges, MaxBytes: o.MaxBytes}, o.Now)}
}

// Open is New as a [store.Opener].
func Open(_ context.Context, _ string, o store.Options) (store.Store, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return New(Options{KeepChanges: o.KeepChanges, MaxBytes: o.MaxBytes}), nil
}
