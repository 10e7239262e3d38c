package sqlite_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// audited creates a closed store with n records and returns their hashes, including the one before the first record.
func audited(t testing.TB, n int) (path string, hashes []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	st, err := sqlite.OpenStore(t.Context(), path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= n; i++ {
		if err := st.AppendAudit(t.Context(), auditLine(i)); err != nil {
			t.Fatal(err)
		}
	}
	hashes = append(hashes, strings.Repeat("0", 64))
	if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error {
		hashes = append(hashes, l.Hash)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return path, hashes
}

func TestVerifyAuditFindsTampering(t *testing.T) {
	// rehash rebuilds the chain from a record on, as an attacker who knows the algorithm would.
	rehash := func(t *testing.T, path string) {
		st := open(t, path)
		prev := make([]byte, 32)
		sums := map[int64]string{}
		if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error {
			sum := sha256.Sum256(append(prev, l.Text...))
			prev = sum[:]
			sums[l.ID] = hex.EncodeToString(prev)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for id, h := range sums {
			exec(t, path, fmt.Sprintf("UPDATE audit SET hash = x'%s' WHERE id = %d", h, id))
		}
	}
	const edit = "UPDATE audit SET record = replace(CAST(record AS TEXT), '\"complete\"', '\"failed\"')"
	for _, tc := range []struct {
		name string
		sql  []string
		do   func(*testing.T, string)
		head int // the record whose hash was noted; 0 for no record
		line int64
		says string
	}{
		{name: "untouched", head: 6},
		{name: "an argument", sql: []string{"UPDATE audit SET record = replace(CAST(record AS TEXT), '\"n\":3', '\"n\":4') WHERE id = 3"}, line: 3, says: `line 3 (call "c3" at 2026-11-21T07:00:03Z): its hash does not match: it was changed, or a line before it was removed or moved`},
		{name: "white space", sql: []string{"UPDATE audit SET record = CAST(record AS TEXT) || ' ' WHERE id = 6"}, line: 6, says: "its hash does not match"},
		{name: "an added field", sql: []string{"UPDATE audit SET record = replace(CAST(record AS TEXT), '{\"time\"', '{\"x\":1,\"time\"') WHERE id = 1"}, line: 1, says: "its hash does not match"},
		{name: "a record that is no record", sql: []string{"UPDATE audit SET record = 'x' WHERE id = 2"}, line: 2, says: "line 2: its hash does not match"},
		{name: "a hash", sql: []string{"UPDATE audit SET hash = zeroblob(32) WHERE id = 4"}, line: 4, says: "its hash does not match"},
		{name: "a hash cut short", sql: []string{"UPDATE audit SET hash = substr(hash, 1, 31) WHERE id = 4"}, line: 4, says: "its hash does not match"},
		{name: "a hash taken away", sql: []string{"UPDATE audit SET hash = NULL WHERE id = 4"}, line: 4, says: "it has no hash: it was added, or its hash was removed"},
		{name: "the first hash taken away", sql: []string{"UPDATE audit SET hash = NULL WHERE id = 1"}, line: 1, says: "it has no hash"},
		{name: "one in the middle removed", sql: []string{"DELETE FROM audit WHERE id = 3"}, line: 3, says: "line 3: it was removed"},
		{name: "two in the middle removed", sql: []string{"DELETE FROM audit WHERE id IN (3, 4)"}, line: 3, says: "line 3: it and those up to line 4 were removed"},
		{name: "one removed and the others moved up", sql: []string{"DELETE FROM audit WHERE id = 3", "UPDATE audit SET id = 3 WHERE id = 4", "UPDATE audit SET id = 4 WHERE id = 5", "UPDATE audit SET id = 5 WHERE id = 6", "UPDATE sqlite_sequence SET seq = 5"}, line: 3, says: `(call "c4"`},
		{name: "the first removed", sql: []string{"DELETE FROM audit WHERE id = 1"}, line: 2, says: "a line before it was removed"},
		{name: "two swapped", sql: []string{"UPDATE audit SET id = -1 WHERE id = 2", "UPDATE audit SET id = 2 WHERE id = 4", "UPDATE audit SET id = 4 WHERE id = -1"}, line: 2, says: `(call "c4"`},
		{name: "one added in front", sql: []string{"INSERT INTO audit (id, time, tool, session, status, record, hash) VALUES (0, 1, '', '', '', '{}', x'00')"}, line: 0, says: "its hash does not match"},
		{name: "one added at the end", sql: []string{"INSERT INTO audit (time, tool, session, status, record) VALUES (1, '', '', '', '{}')"}, line: 7, says: "it has no hash: it was added, or its hash was removed"},
		{name: "all of the chain taken away", sql: []string{"UPDATE audit SET hash = NULL"}, head: 2, line: 1, says: "it has no hash"},
		{name: "the tail cut off", sql: []string{"DELETE FROM audit WHERE id > 4"}, line: 5, says: "it and those up to line 6 were removed at the end"},
		{name: "everything removed", sql: []string{"DELETE FROM audit"}, line: 1, says: "it and those up to line 6 were removed at the end"},
		{name: "the tail cut off, and its count", sql: []string{"DELETE FROM audit WHERE id > 4", "UPDATE sqlite_sequence SET seq = 4"}, head: 6, line: 5, says: "lines at the end were removed, or the whole audit was rewritten"},
		{name: "made anew with another content", sql: []string{edit + " WHERE id = 2", "UPDATE audit SET status = 'failed' WHERE id = 2"}, do: rehash, head: 3, line: 7, says: "the whole audit was rewritten"},
		{name: "the column status", sql: []string{"UPDATE audit SET status = 'failed' WHERE id = 5"}, line: 5, says: `its column status was changed: expected "complete", got "failed"`},
		{name: "the column tool", sql: []string{"UPDATE audit SET tool = 'x' WHERE id = 5"}, line: 5, says: "its column tool"},
		{name: "the column session", sql: []string{"UPDATE audit SET session = 'x' WHERE id = 5"}, line: 5, says: "its column session"},
		{name: "the column principal", sql: []string{"UPDATE audit SET principal = '' WHERE id = 5"}, line: 5, says: "its column principal"},
		{name: "the column time", sql: []string{"UPDATE audit SET time = 0 WHERE id = 5"}, line: 5, says: "its column time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path, hashes := audited(t, 6)
			for _, q := range tc.sql {
				exec(t, path, q)
			}
			if tc.do != nil {
				tc.do(t, path)
			}
			var head string
			if tc.head > 0 {
				head = hashes[tc.head]
			}
			check := verified(t, open(t, path), head)
			if tc.says == "" {
				if check.Broken != nil || check.Lines != 6 {
					t.Errorf("%+v", check)
				}
				return
			}
			if check.Broken == nil || check.Broken.Line != tc.line || !contains(check.Broken, tc.says) {
				t.Errorf("got %v, want line %d and %q", check.Broken, tc.line, tc.says)
			}
		})
	}
}

// After any change of one record, the first broken record is that one or the next.
func TestVerifyAuditProperty(t *testing.T) {
	const lines = 8
	whole, _ := audited(t, lines)
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(dir, "copy.db")
		for _, suffix := range []string{"-wal", "-shm"} { // from the previous copy
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				r.Fatal(err)
			}
		}
		write(t, path, file)
		at := rapid.Int64Range(1, lines).Draw(r, "line")
		what := rapid.SampledFrom([]string{
			"DELETE FROM audit WHERE id = %d",
			"UPDATE audit SET record = CAST(substr(record, 1, length(record) - 2) AS TEXT) || '1}' WHERE id = %d AND record NOT LIKE '%%1}'",
			"UPDATE audit SET record = replace(CAST(record AS TEXT), '\"me\"', '\"you\"'), principal = 'you' WHERE id = %d",
			"UPDATE audit SET id = id + 100 WHERE id = %d",
			"UPDATE audit SET hash = x'00' WHERE id = %d",
		}).Draw(r, "what")
		st, err := sqlite.OpenStore(t.Context(), path, store.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer st.Close()
		if check := verified(t, st, ""); check.Broken != nil || check.Lines != lines {
			r.Fatalf("before: %+v", check)
		}
		exec(t, path, fmt.Sprintf(what, at))
		check := verified(t, st, "")
		if check.Broken == nil || check.Broken.Line < at || check.Broken.Line > at+1 {
			r.Errorf("line %d, %s: got %+v", at, what, check)
		}
	})
}

// Records from before the chain are kept, and the chain begins after them.
func TestAuditBeforeTheChain(t *testing.T) {
	first, err := os.ReadFile("migrations/00001_store.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.db")
	for _, q := range []string{
		string(first),
		"CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1)",
		`INSERT INTO audit (time, tool, session, status, record) VALUES (1000000, 'get', '', 'complete', CAST('{"time":"1970-01-01T00:00:01Z","call_id":"a","principal":"me","tool":"get","status":"complete"}' AS BLOB))`,
		`INSERT INTO audit (time, tool, session, status, record) VALUES (2000000, 'get', '', 'complete', CAST('{"time":"1970-01-01T00:00:02Z","call_id":"b","tool":"get","status":"complete"}' AS BLOB))`,
	} {
		exec(t, path, q)
	}
	st := open(t, path)
	if head, err := st.AuditHead(t.Context()); err != nil || head.Hash != strings.Repeat("0", 64) || head.Lines != 2 {
		t.Errorf("head %+v, %v", head, err)
	}
	if err := st.AppendAudit(t.Context(), auditLine(3)); err != nil {
		t.Fatal(err)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Unchained != 2 || check.Lines != 1 {
		t.Errorf("%+v", check)
	}
	mine, err := store.ListAudit(t.Context(), st, store.AuditFilter{Principal: "me"})
	if err != nil || len(mine) != 2 || mine[0].CallID != "a" || mine[1].CallID != "c3" {
		t.Errorf("%+v, %v", mine, err)
	}
}

// waitFor waits until a condition is true.
func waitFor(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// Items that wait for the writer are written together, and can be cancelled.
func TestAppendAuditTogether(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	release := st.HoldWriter()
	const lines = 20
	ended := make(chan error, lines)
	for i := range lines {
		go func() { ended <- st.AppendAudit(t.Context(), auditLine(i)) }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- st.AppendAudit(ctx, auditLine(99)) }()
	waitFor(func() bool { return st.WaitingShorts() == lines+1 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one: %v", err)
	}
	release()
	for range lines {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != lines {
		t.Errorf("%+v", check)
	}
}

// Counts share the transaction of audit records. A refused one does not affect the others.
func TestReserveTogether(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	release := st.HoldWriter()
	const each, most = 8, 3
	counters := []v1.Counter{{Key: "free", Limit: 1000}, {Key: "narrow", Limit: most}}
	var refused, failed atomic.Int64
	var all sync.WaitGroup
	for i := range each {
		all.Go(func() {
			_, full, err := st.Reserve(t.Context(), counters)
			if err != nil {
				failed.Add(1)
			} else if full == 1 {
				refused.Add(1)
			}
		})
		all.Go(func() {
			if st.AppendAudit(t.Context(), auditLine(i)) != nil {
				failed.Add(1)
			}
		})
	}
	waitFor(func() bool { return st.WaitingShorts() == 2*each })
	release()
	all.Wait()
	counts, err := st.Read(t.Context(), counters)
	if err != nil || failed.Load() > 0 || refused.Load() != each-most || counts[0].Used != most || counts[1].Used != most {
		t.Errorf("%d failed, %d refused, %+v, %v", failed.Load(), refused.Load(), counts, err)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != each {
		t.Errorf("%+v", check)
	}
}

func TestAppendAuditClosed(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	release := st.HoldWriter()
	ended := make(chan error, 2)
	for i := range 2 {
		go func() { ended <- st.AppendAudit(t.Context(), auditLine(i)) }()
	}
	waitFor(func() bool { return st.WaitingShorts() == 2 })
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, store.ErrClosed) {
			t.Errorf("%v is not ErrClosed", err)
		}
	}
	release()
}
