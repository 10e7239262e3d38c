package postgres_test

import (
	"path/filepath"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
	"toolctl.dev/toolctl/pkg/store/sqlite"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

func TestCopy(t *testing.T) {
	database := storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
		dsn := newStore(t)
		return func(opts store.Options) (store.Store, error) { return postgres.Open(t.Context(), dsn, opts) }
	}}
	file := storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
		path := filepath.Join(t.TempDir(), "state.db")
		return func(opts store.Options) (store.Store, error) { return sqlite.Open(t.Context(), path, opts) }
	}}
	t.Run("FileToDatabase", func(t *testing.T) { storetest.TestCopyBetween(t, file, database) })
	t.Run("DatabaseToFile", func(t *testing.T) { storetest.TestCopyBetween(t, database, file) })
}
