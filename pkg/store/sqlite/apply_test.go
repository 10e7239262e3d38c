package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

func TestDryRunWritesNothing(t *testing.T) {
	path := filled(t, 50)
	before := readFile(t, path)
	st := open(t, path)
	mustApply(t, st, append(tools(20, "b"), tools(60, "a")[20:]...), store.ApplyOptions{Set: "s", Prune: true, DryRun: true})
	if wal := readFile(t, path+"-wal"); len(wal) != 0 {
		t.Errorf("a dry run wrote %d bytes to the log", len(wal))
	}
	if string(readFile(t, path)) != string(before) {
		t.Error("a dry run changed the file")
	}
}

func TestApplyFullDisk(t *testing.T) {
	path := filled(t, 100)
	st := open(t, path)
	st.DB().SetMaxOpenConns(1)
	if _, err := st.DB().Exec("PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	_, err := st.Apply(t.Context(), tools(2000, "b"), store.ApplyOptions{Set: "s"})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the disk is full, nothing was changed") {
		t.Fatal(err)
	}
	wholeSet(t, st, 100, "a")
}

func TestApplyCancelled(t *testing.T) {
	const rounds = 12
	st := open(t, filled(t, 300))
	start := time.Now()
	mustApply(t, st, tools(300, "b"), store.ApplyOptions{Set: "s"})
	whole := time.Since(start)

	mark, cancelled := "b", 0
	for i := range rounds { // later and later in the apply
		next := fmt.Sprint(i)
		ctx, cancel := context.WithTimeout(t.Context(), whole*time.Duration(i)/rounds)
		_, err := st.Apply(ctx, tools(300, next), store.ApplyOptions{Set: "s"})
		cancel()
		switch {
		case err == nil:
			mark = next
		case errors.Is(err, context.DeadlineExceeded):
			cancelled++
		default:
			t.Fatal(err)
		}
		wholeSet(t, st, 300, mark)
	}
	if cancelled < 3 {
		t.Errorf("only %d of %d applies were cancelled", cancelled, rounds)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
