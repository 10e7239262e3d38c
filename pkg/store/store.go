// Package store defines the data that outlive a process: the applied manifests, the counters of policies,
// the calls and agent runs pending approval, the audit log, the overrides of descriptions, the revisions of
// sets, the leases of processes, and the vectors of texts. It has the interfaces and their types; each backend is a folder
// below it and passes the suite of pkg/store/storetest.
//
//	st, err := sqlite.Open(ctx, ".toolctl/state.db", store.Options{Create: true})
//	if err != nil {
//		return err
//	}
//	defer st.Close()
//	changes, err := st.Apply(ctx, objects, store.ApplyOptions{Set: "tools"})
//
// # All or nothing
//
// [Objects.Apply] and [Objects.Delete] run in one transaction each. A process that is
// killed, a full disk or a cancelled context leaves either the old or the new state. Several processes may
// use one store at once: writers take turns and wait for at most [Options.BusyTimeout]; readers do not wait
// for writers.
package store

import (
	"context"
	"io"
)

// Store is an open store. Its methods are safe for concurrent use.
type Store interface {
	Objects
	Counters
	Approvals
	Audit
	Overrides
	Revisions
	Leases
	Conditions
	Runs
	Vectors
	// Close ends every watch and closes the store. Later method calls return
	// [ErrClosed].
	io.Closer
}

// Sized is a store that reports its size in bytes: of its files, or of its tables with their indexes.
type Sized interface {
	Size(ctx context.Context) (bytes int64, err error)
}

// Ping returns why a store does not answer now. It returns nil for a store that is not [Shared].
func Ping(ctx context.Context, s Store) error {
	if p, ok := s.(interface{ Ping(context.Context) error }); ok {
		return p.Ping(ctx)
	}
	return nil
}

// Shared reports whether processes on several machines can use a store.
func Shared(s Objects) bool {
	d, ok := s.(interface{ Shared() bool })
	return ok && d.Shared()
}
