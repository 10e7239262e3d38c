// Package memory keeps a store in the memory of one process, for as long as that runs: what
// a gateway without a store uses, and tests. It keeps nothing else: a restart forgets all.
package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Options change what a store does. The zero value is all defaults.
type Options struct {
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// KeepChanges is how many changes a watch can go back. Default: 10,000.
	KeepChanges int
	// MaxBytes is how large the objects, the audit and the runs may become; what would make them larger
	// is refused with [store.ErrLimit]. Default: no limit.
	MaxBytes int64
}

// Store is [store.Store].
type Store struct {
	counters
	now  func() time.Time
	keep int64
	max  int64

	closed  chan struct{}
	once    sync.Once
	changed watch.Source // objects and overrides
	audited watch.Source

	mu        sync.RWMutex
	rows      map[v1.Key]plan.Row
	log       []plan.Event
	version   int64 // resourceVersion given out last
	trail     trail
	calls     []v1.PendingCall // in the order in which they came
	overrides []store.Override
	turns     []store.Turn        // of conditions
	history   map[string]*history // by set
	leases    map[string]store.Lease
	runs      map[string]store.Run
}

var _ store.Store = (*Store)(nil)

// New makes an empty store.
func New(o Options) *Store {
	s := &Store{now: o.Now, keep: int64(cmp.Or(o.KeepChanges, 10_000)), max: o.MaxBytes, closed: make(chan struct{}), rows: map[v1.Key]plan.Row{}, history: map[string]*history{}, leases: map[string]store.Lease{}, runs: map[string]store.Run{}}
	if s.now == nil {
		s.now = time.Now
	}
	s.changed.Closed, s.audited.Closed = s.closed, s.closed
	s.trail.state.Open = map[string][]int64{}
	s.counters.init(s.now)
	return s
}

// Open is New for a table of backends.
func Open(_ context.Context, _ string, o store.Options) (store.Store, error) {
	return New(Options{KeepChanges: o.KeepChanges, MaxBytes: o.MaxBytes}), nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// check returns why nothing is done: the store is closed, or ctx has ended.
func (s *Store) check(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return fmt.Errorf("store in memory: %w", context.Cause(ctx))
	}
	return nil
}

// read runs f on one unchanging view of the store.
func (s *Store) read(ctx context.Context, f func() error) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return explain(f())
}

// write runs f alone. What f changes, it changes after all that can fail.
func (s *Store) write(ctx context.Context, f func() error) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return explain(f())
}

func explain(err error) error {
	if own, ok := errors.AsType[*plan.Refusal](err); ok {
		return own.Err
	}
	return err
}
