package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
)

func TestBackendsOpen(t *testing.T) {
	opened := errors.New("opened")
	var got string
	backend := func(name string) store.Opener {
		return func(_ context.Context, dsn string, _ store.Options) (store.Store, error) {
			got = name + " " + dsn
			return nil, opened
		}
	}
	all := store.Backends{"": backend("files"), "file": backend("files"), "memory": backend("memory"), "postgres": backend("postgres")}
	for dsn, want := range map[string]string{
		"state.db":              "files state.db",
		"/a/b:c/state.db":       "files /a/b:c/state.db",
		"C:/state.db":           "files C:/state.db",
		"file:state.db":         "files file:state.db",
		":memory:":              "memory memory:",
		"memory:":               "memory memory:",
		"postgres://ann@h/db":   "postgres postgres://ann@h/db",
		"":                      "files ",
		"mysql://ann:secret@h/": `store: unknown kind of store "mysql": expected a file's path or "file:…" or "memory:…" or "postgres:…"`,
	} {
		_, err := all.Open(t.Context(), dsn, store.Options{})
		if !errors.Is(err, opened) {
			got = err.Error()
		}
		if got != want || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
	if _, err := (store.Backends{"memory": backend("memory")}).Open(t.Context(), "state.db", store.Options{}); err == nil || errors.Is(err, opened) {
		t.Errorf("a path, where nothing opens files: %v", err)
	}
}
