package main

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

// changedStore is a store with one truncated manifest in its copy.
type changedStore struct{ store.Store }

func (c changedStore) CopyIn(ctx context.Context, tables []store.Table, rows store.Rows) error {
	return c.Store.(store.Copier).CopyIn(ctx, tables, rows)
}

func (c changedStore) CopyOut(ctx context.Context, read func(store.Rows) error) error {
	return c.Store.(store.Copier).CopyOut(ctx, func(rows store.Rows) error {
		return read(func(t store.Table) iter.Seq2[[]any, error] {
			return func(yield func([]any, error) bool) {
				for row, err := range rows(t) {
					if t.Name == "objects" && err == nil {
						row[9] = []byte("{")
					}
					if !yield(row, err) {
						return
					}
				}
			}
		})
	})
}

// TestCopyOfADamagedStore checks that a damaged store is not copied, and that the message names the store and the
// damage.
func TestCopyOfADamagedStore(t *testing.T) {
	dir := t.TempDir()
	whole, damaged, copied := filepath.Join(dir, "whole.db"), filepath.Join(dir, "damaged.db"), filepath.Join(dir, "copied.db")
	writeFile(t, filepath.Join(dir, "tool.yaml"), "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: pay}\nspec: {description: Pay, input_schema: {type: object}, mock_result: {}}\n")
	toolctl(t, exitOK, "apply", "-f", filepath.Join(dir, "tool.yaml"), "--store", whole)
	open := func(path string) store.Store {
		st, err := backends.All().Open(t.Context(), path, store.Options{Create: true, BusyTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	from, to := open(whole), open(damaged)
	if err := store.Copy(t.Context(), to, changedStore{from}); err != nil {
		t.Fatal(err)
	}
	_, _ = from.Close(), to.Close()
	_, stderr := toolctl(t, exitFailed, "store", "copy", damaged, copied)
	for _, want := range []string{"the store to copy, ", "damaged.db", "nothing was copied", "tool default/pay"} {
		if !strings.Contains(strings.ToLower(stderr), want) {
			t.Errorf("%s: it does not say %q", stderr, want)
		}
	}
	if _, err := os.Stat(copied); err == nil {
		t.Error("a copy was made")
	}
}
