package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

var _ registry.GapKeeper = (*sqlite.Store)(nil)

// The records that one process could not write are reported by one gap record, whichever process writes it.
func TestGapOutlivesItsProcess(t *testing.T) {
	at := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	missing := v1.AuditGap{Lines: 3, Since: at, Until: at.Add(time.Minute), Reason: "the disk is full"}
	line := func(lines int64) v1.AuditRecord {
		g := missing
		g.Lines = lines
		return v1.AuditRecord{CallID: "g", Status: v1.StatusGap, Gap: &g}
	}
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, path string, st *sqlite.Store)
		want []int64 // the numbers of lost records
	}{
		{"it ends", func(t *testing.T, path string, st *sqlite.Store) { st.KeepGap(missing) }, []int64{3}},
		{"it ends with more", func(t *testing.T, path string, st *sqlite.Store) {
			st.KeepGap(v1.AuditGap{Lines: 1, Since: at, Until: at, Reason: "x"})
			st.KeepGap(missing)
		}, []int64{3}},
		{"it writes the line itself", func(t *testing.T, path string, st *sqlite.Store) {
			st.KeepGap(missing)
			append1(t, st, line(3))
		}, []int64{3}},
		{"another one was faster", func(t *testing.T, path string, st *sqlite.Store) {
			st.KeepGap(missing)
			open(t, path)
			append1(t, st, line(3))
		}, []int64{3}},
		{"another one was faster, and more is missing", func(t *testing.T, path string, st *sqlite.Store) {
			st.KeepGap(missing)
			open(t, path)
			append1(t, st, line(5))
		}, []int64{3, 2}},
		{"two gaps", func(t *testing.T, path string, st *sqlite.Store) {
			st.KeepGap(missing)
			append1(t, st, line(3))
			st.KeepGap(v1.AuditGap{Lines: 1, Since: at, Until: at, Reason: "again"})
		}, []int64{3, 1}},
		{"a note that cannot be read", func(t *testing.T, path string, st *sqlite.Store) {
			write(t, path+"-gap-X", []byte("{"))
		}, []int64{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "st[a]te *.db")
			st := create(t, path)
			tc.do(t, path, st)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			open(t, path)
			again := open(t, path)
			lines, err := store.ListAudit(t.Context(), again, store.AuditFilter{Status: v1.StatusGap})
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, l := range lines {
				got = append(got, l.Gap.Lines)
			}
			if len(got) != len(tc.want) || got[0] != tc.want[0] || got[len(got)-1] != tc.want[len(tc.want)-1] {
				t.Errorf("missing %d, want %d", got, tc.want)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*-gap-*")); err != nil || len(left) > 0 {
				t.Errorf("left over: %q, %v", left, err)
			}
			if check := verified(t, again, ""); check.Broken != nil {
				t.Error(check.Broken)
			}
		})
	}
}

func append1(t *testing.T, st *sqlite.Store, line v1.AuditRecord) {
	t.Helper()
	if err := st.AppendAudit(t.Context(), line); err != nil {
		t.Fatal(err)
	}
}

// Only its owner can read the file of a gap.
func TestGapIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	create(t, path).KeepGap(v1.AuditGap{Lines: 1})
	files, err := filepath.Glob(path + "-gap-*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
