// Package memory keeps a store in the memory of one process, for as long as that runs: what
// '--store memory:' opens, and tests. It is a database of SQLite that no file holds, but for the counters,
// which every call of a tool uses.
package memory

import (
	"context"
	"io"
	"time"

	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// Options change what a store does. The zero value is all defaults.
type Options struct {
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// KeepChanges is how many changes a watch can go back. Default: 10,000.
	KeepChanges int
	// MaxBytes is how large the store may become without its counters; what would make it larger is
	// refused with [store.ErrLimit]. Default, and at most: 1 GiB.
	MaxBytes int64
}

// Store is [store.Store].
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
	io.Closer
}

var _ store.Store = (*Store)(nil)

// New makes an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{policy.NewMemoryCounters(o.Now), sqlite.InMemory(store.Options{KeepChanges: o.KeepChanges, MaxBytes: o.MaxBytes}, o.Now)}
}

// Open is New for a table of backends.
func Open(_ context.Context, _ string, o store.Options) (store.Store, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return New(Options{KeepChanges: o.KeepChanges, MaxBytes: o.MaxBytes}), nil
}
