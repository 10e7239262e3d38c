package sqlite_test

import (
	"path/filepath"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

var (
	_ store.Backuper = (*sqlite.Store)(nil)
	_ store.Checker  = (*sqlite.Store)(nil)
)

// A backup during concurrent writes is a consistent store.
func TestBackup(t *testing.T) {
	path := filled(t, 20)
	st, copied := open(t, path), filepath.Join(t.TempDir(), "copy.db")
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := st.Apply(t.Context(), tools(20, "a"), store.ApplyOptions{Set: "s"}); err != nil {
				done <- err
				return
			}
			if err := st.AppendAudit(t.Context(), auditLine(1)); err != nil {
				done <- err
				return
			}
		}
	}()
	if err := open(t, path).Backup(t.Context(), copied); err != nil {
		t.Error(err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if mode := query(t, copied, "PRAGMA journal_mode"); mode != "wal" {
		t.Errorf("the copy has journal_mode %s", mode)
	}
	backup := open(t, copied)
	wholeSet(t, backup, 20, "a")
	r, err := store.Check(t.Context(), backup)
	if err != nil || len(r.Problems) > 0 || r.Objects != 20 || r.Audit.Lines < 20 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, full, err := backup.Reserve(t.Context(), []v1.Counter{{Key: "k", Limit: 1}}); full >= 0 || err != nil {
		t.Errorf("the copy takes no writes: %d, %v", full, err)
	}
}

func TestCheckNamesDamage(t *testing.T) {
	path := filled(t, 3)
	exec(t, path, "UPDATE objects SET manifest = 'x' WHERE name = 'tool-0001'")
	exec(t, path, "DELETE FROM audit WHERE id = 2")
	r, err := store.Check(t.Context(), open(t, path))
	if err != nil || len(r.Problems) != 2 || !contains(errorText(r.Problems[0]), "tool-0001") || !contains(errorText(r.Problems[1]), "audit: line 2: it was removed") {
		t.Errorf("%+v, %v", r, err)
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
