package postgres_test

import (
	"errors"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// shared is the server for the tests that do not stop it.
var shared struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

func server(t testing.TB) *pgtest.Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = pgtest.Start() })
	if errors.Is(shared.err, pgtest.ErrNotInstalled) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// newStore returns the address of a store that does not exist yet.
func newStore(t testing.TB) string {
	t.Helper()
	dsn, err := server(t).NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

func open(t testing.TB, dsn string, opts store.Options) *postgres.Store {
	t.Helper()
	opts.Create = true
	st, err := postgres.OpenStore(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{New: func(t testing.TB) func(store.Options) (store.Store, error) {
		dsn := newStore(t)
		return func(opts store.Options) (store.Store, error) { return postgres.Open(t.Context(), dsn, opts) }
	}})
}
