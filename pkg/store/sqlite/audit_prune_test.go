package sqlite_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestVerifyAuditOfWhatWasPruned: changes next to records that were pruned from the middle are detected too.
func TestVerifyAuditOfWhatWasPruned(t *testing.T) {
	for name, q := range map[string]string{
		"nothing":                     "",
		"a line between removed":      "DELETE FROM audit WHERE id = 3",
		"a line between blanked":      "UPDATE audit SET record = 'pruned', time = -9000000000000000000 WHERE id = 7",
		"the last line blanked":       "UPDATE audit SET record = 'pruned' WHERE id = 10",
		"a line between changed":      "UPDATE audit SET record = replace(CAST(record AS TEXT), '\"n\":6', '\"n\":9') WHERE id = 6",
		"the hash of a link changed":  "UPDATE audit SET hash = zeroblob(32) WHERE id = 5",
		"a link removed":              "DELETE FROM audit WHERE id = 5",
		"the line on the prune taken": "UPDATE audit SET record = 'pruned' WHERE id = 11",
		"a link moved":                "UPDATE audit SET id = 4 WHERE id = 5",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			st := create(t, path)
			before := auditLine(30).Time
			for i, second := range []int{1, 2, 31, 3, 4, 36, 32, 5, 33, 34} { // records 3, 6, 7, 9 and 10 stay
				l := auditLine(i + 1)
				l.Time = auditLine(second).Time
				if err := st.AppendAudit(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: before}); err != nil {
				t.Fatal(err)
			}
			if q != "" {
				exec(t, path, q)
			}
			check, err := st.VerifyAudit(t.Context(), "")
			if err != nil || (check.Broken == nil) != (q == "") {
				t.Errorf("%+v, %v, %v", check, check.Broken, err)
			} else {
				t.Log(check.Broken)
			}
		})
	}
}

// longStore creates a closed store with a large audit log, with one record per minute until now.
func longStore(t *testing.T, bytes int) (path string, newest time.Time, lines int) {
	t.Helper()
	path, newest = filepath.Join(t.TempDir(), "state.db"), time.Now().UTC()
	st, err := sqlite.OpenStore(t.Context(), path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := st.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare("INSERT INTO audit (time, tool, session, status, principal, record, hash) VALUES (?, 'get', 's', 'complete', 'me', ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	const size = 1000
	lines = bytes / size
	var head [sha256.Size]byte
	for i := range lines {
		at := newest.Add(time.Duration(i-lines) * time.Minute).Truncate(time.Microsecond)
		text := fmt.Sprintf(`{"time":%q,"call_id":"%d","principal":"me","session":"s","tool":"get","namespace":"default","args":{"text":%q},"status":"complete","duration_ms":1}`,
			at.Format(time.RFC3339Nano), i, strings.Repeat("x", size-200))
		head = sha256.Sum256(append(head[:], text...))
		if _, err := insert.Exec(at.UnixMicro(), []byte(text), head[:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return path, newest, lines
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestPruneAuditNeedsLittleRoom: for any number of removed records, the journal next to the file stays small, and the
// file becomes smaller. A prune that needs as much space again would be impossible on a full disk.
func TestPruneAuditNeedsLittleRoom(t *testing.T) {
	path, newest, lines := longStore(t, 64<<20)
	before := sizeOf(t, path)
	st := open(t, path)
	p, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: newest.Add(-time.Duration(lines/8) * time.Minute)})
	if err != nil || p.Lines < int64(lines)*7/8-1 || p.Kept > int64(lines)/8+1 {
		t.Fatalf("%+v of %d lines, %v", p, lines, err)
	}
	// SQLite never shortens the journal while the file is in use, so this is its maximum size.
	if wal := sizeOf(t, path+"-wal"); wal > 16<<20 {
		t.Errorf("the journal took %d bytes", wal)
	} else {
		t.Logf("the journal took %d bytes; the file had %d, and has %d", wal, before, sizeOf(t, path))
	}
	if after := sizeOf(t, path); after > before/4 {
		t.Errorf("the file has %d bytes, of %d before", after, before)
	}
	if check, err := st.VerifyAudit(t.Context(), ""); err != nil || check.Broken != nil || check.Pruned != p.Lines {
		t.Errorf("%+v, %v, %v", check, check.Broken, err)
	}
}

// TestPruneAuditOfAFullStore: if there is no space for one step, smaller steps succeed.
func TestPruneAuditOfAFullStore(t *testing.T) {
	path, newest, lines := longStore(t, 8<<20)
	st := openWith(t, path, store.Options{MaxBytes: 1 << 20})
	if err := st.AppendAudit(t.Context(), auditLine(1)); !strings.Contains(fmt.Sprint(err), "has reached its size limit") {
		for i := 0; err == nil && i < 100; i++ { // the last page may have space
			err = st.AppendAudit(t.Context(), auditLine(1))
		}
		if !strings.Contains(fmt.Sprint(err), "has reached its size limit") {
			t.Fatal(err)
		}
	}
	p, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: newest})
	if err != nil || p.Lines < int64(lines) {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := st.AppendAudit(t.Context(), auditLine(1)); err != nil {
		t.Error(err)
	}
}

// TestCompact: a file of an older version of toolctl keeps its size after a prune, until it is compacted.
func TestCompact(t *testing.T) {
	path, newest, _ := longStore(t, 8<<20)
	exec(t, path, "PRAGMA auto_vacuum=NONE; VACUUM")
	st := open(t, path)
	before := sizeOf(t, path)
	if _, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: newest.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if after := sizeOf(t, path); after < before {
		t.Fatalf("the file has %d bytes, of %d before", after, before)
	}
	for range 2 { // the second time there is nothing to do
		if err := st.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := sizeOf(t, path); after > 1<<20 {
			t.Errorf("the file has %d bytes, of %d before", after, before)
		}
	}
	var mode int
	if err := st.DB().QueryRow("PRAGMA auto_vacuum").Scan(&mode); err != nil || mode != 2 {
		t.Errorf("auto_vacuum %d, %v", mode, err)
	}
	if check, err := st.VerifyAudit(t.Context(), ""); err != nil || check.Broken != nil {
		t.Errorf("%+v, %v", check, err)
	}
}
