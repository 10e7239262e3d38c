package storetest_test

import (
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// A backend runs the suite in a test of its own.
func ExampleRun() {
	_ = func(t *testing.T) { // TestStore
		storetest.Run(t, storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
			st := memory.New(memory.Options{})
			t.Cleanup(func() { st.Close() })
			return func(store.Options) (store.Store, error) { return st, nil }
		}})
	}
}
