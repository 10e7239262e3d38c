package sqlite_test

import (
	"path/filepath"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
		path := filepath.Join(t.TempDir(), "state.db")
		return func(opts store.Options) (store.Store, error) { return sqlite.Open(t.Context(), path, opts) }
	}})
}
