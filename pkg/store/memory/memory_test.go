package memory_test

import (
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// handle is a store that ignores Close, because a process has only one handle.
type handle struct{ store.Store }

func (handle) Close() error { return nil }

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
		var first store.Store
		return func(opts store.Options) (_ store.Store, err error) {
			if first != nil {
				return handle{first}, nil
			}
			first, err = memory.Open(t.Context(), "memory:", opts)
			return first, err
		}
	}})
}
