package main

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestLockedStoreIsUnavailable checks that a store that another process keeps locked is unavailable, with advice to
// try again.
func TestLockedStoreIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := sqlite.Open(t.Context(), path, store.Options{Create: true, BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	tool := v1.NewObject(v1.KindTool)
	tool.Head().Metadata.Name = "a"
	_, err = s.Apply(t.Context(), []v1.Object{tool}, store.ApplyOptions{})
	if got := exitCode(err); got != exitUnavailable {
		t.Errorf("exit code %d of %v, want %d", got, err, exitUnavailable)
	}
}
