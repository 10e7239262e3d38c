package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
)

// database is the PostgreSQL server of the tests of this package. The first test that needs it starts it.
var database struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func startDatabase() (*pgtest.Server, error) {
	database.once.Do(func() { database.server, database.err = pgtest.Start() })
	return database.server, database.err
}

// withDatabase ends the server after the tests.
type withDatabase struct{ *testing.M }

func (m withDatabase) Run() int {
	code := m.M.Run()
	if database.server != nil {
		if err := database.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// newDatabase returns the address of a store that does not exist yet.
func newDatabase(t testing.TB) string {
	t.Helper()
	server, err := startDatabase()
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dsn, err := server.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// postgresStore is a command of scripts that sets a variable to the address of a new store. Without a server, the
// script is skipped.
func postgresStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: postgres-store VARIABLE")
	}
	t := ts.Value(scriptTest{}).(testing.TB)
	ts.Setenv(args[0], newDatabase(t))
}

// scriptTest is the key of the test that runs a script.
type scriptTest struct{}
