package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := write(t, filepath.Join(dir, "garbage.db"), bytes.Repeat([]byte("not a database\n"), 500))
	short := write(t, filepath.Join(dir, "short.db"), []byte("x"))
	cut := write(t, filepath.Join(dir, "cut.db"), append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{7}, 4096)...))
	file := write(t, filepath.Join(dir, "file"), nil)
	foreign := filepath.Join(dir, "foreign.db")
	exec(t, foreign, "CREATE TABLE birds (name TEXT)")
	marked := filepath.Join(dir, "marked.db")
	exec(t, marked, "PRAGMA application_id=42")
	exec(t, marked, "CREATE TABLE birds (name TEXT)")
	goosed := filepath.Join(dir, "goosed.db")
	exec(t, goosed, "CREATE TABLE goose_db_version (version_id INTEGER, is_applied INTEGER)")
	exec(t, goosed, "INSERT INTO goose_db_version VALUES (7, 1)")
	newest, err := sqlite.NewestMigration()
	if err != nil {
		t.Fatal(err)
	}
	newer := filled(t, 1)
	exec(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")

	for _, tc := range []struct {
		name, dsn string
		create    bool
		is        error
		want      []string
	}{
		{name: "missing", dsn: filepath.Join(dir, "no", "state.db"), is: fs.ErrNotExist, want: []string{"no/state.db", `"toolctl apply -f PATH"`}},
		{name: "folder", dsn: dir, create: true, want: []string{"is a folder", filepath.Join(dir, "state.db")}},
		{name: "under a file", dsn: filepath.Join(file, "state.db"), create: true, want: []string{file, "not a directory"}},
		{name: "device", dsn: os.DevNull, create: true, want: []string{"is a device or a pipe"}},
		{name: "garbage", dsn: garbage, is: store.ErrDamaged, want: []string{garbage, "it is not a database", "move the file away and apply the manifests again"}},
		{name: "garbage with create", dsn: garbage, create: true, is: store.ErrDamaged, want: []string{garbage}},
		{name: "one byte", dsn: short, is: store.ErrDamaged, want: []string{short, "it is not a database"}},
		{name: "short, with create", dsn: short, create: true, is: store.ErrDamaged, want: []string{short}},
		{name: "broken header", dsn: cut, is: store.ErrDamaged, want: []string{cut, "file is not a database", "move the file away and apply the manifests again"}},
		{name: "another program's database", dsn: foreign, create: true, is: store.ErrDamaged, want: []string{foreign, "a database of another program", "--store"}},
		{name: "another program's marked database", dsn: marked, create: true, is: store.ErrDamaged, want: []string{"a database of another program"}},
		{name: "another program's database with goose", dsn: goosed, create: true, is: store.ErrDamaged, want: []string{"a database of another program"}},
		{name: "newer", dsn: newer, is: store.ErrNewer, want: []string{newer, fmt.Sprintf("it has version 99, and this toolctl supports versions up to %d", newest), "use a newer toolctl"}},
		{name: "empty", dsn: "", want: []string{"no path", "sqlite:PATH"}},
		{name: "unknown scheme", dsn: "postgres://user:hunter2@host/db", want: []string{`unknown kind of store "postgres"`, "sqlite:PATH"}},
		{name: "options", dsn: "file:state.db?mode=ro", want: []string{"takes no options"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, err := sqlite.OpenStore(t.Context(), tc.dsn, store.Options{Create: tc.create})
			if err == nil {
				st.Close()
				t.Fatal("opened")
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v: shows a password", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a missing store made its folder: %v", err)
	}
	if got := query(t, foreign, "PRAGMA journal_mode"); got != "delete" {
		t.Errorf("another program's database was changed: journal_mode %s", got)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	_, err := sqlite.OpenStore(t.Context(), filepath.Join(t.TempDir(), "state.db"), store.Options{KeepChanges: -1})
	if err == nil || !strings.Contains(err.Error(), "may not be negative") {
		t.Error(err)
	}
}

func TestOpenCreatesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".toolctl")
	path := filepath.Join(dir, "state.db")
	st := create(t, path)
	mustApply(t, st, tools(1, "a"), store.ApplyOptions{})
	for name, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s: mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestOpenNames(t *testing.T) {
	t.Chdir(t.TempDir())
	create(t, "a %?#ü.db")
	for _, dsn := range []string{"a.db", "file:a.db", "sqlite:a.db", "sqlite://a.db", "sqlite:" + mustAbs(t, "a.db"), "sqlite://" + mustAbs(t, "a.db")} {
		st := create(t, dsn)
		mustApply(t, st, tools(1, dsn[:1]), store.ApplyOptions{})
	}
	names, err := filepath.Glob("*.db")
	if err != nil || len(names) != 2 {
		t.Errorf("files %v, %v: want the two that were named", names, err)
	}
}

func TestOpenUpgradesUnfinishedStore(t *testing.T) {
	// A process was killed between creating the file and the first migration.
	empty := write(t, filepath.Join(t.TempDir(), "state.db"), nil)
	st := open(t, empty)
	mustApply(t, st, tools(1, "a"), store.ApplyOptions{})
	newest, err := sqlite.NewestMigration()
	if err != nil || newest < 1 {
		t.Fatal(newest, err)
	}
}

func TestDamageFoundLater(t *testing.T) {
	path := filled(t, 3)
	exec(t, path, "UPDATE objects SET manifest = '{\"spec\": 1}' WHERE name = 'tool-0001'")
	st := open(t, path)
	_, err := st.List(t.Context(), store.ListOptions{})
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "Tool default/tool-0001") || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	// Some pages of the file were overwritten.
	path = filled(t, 200)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(8192); at < info.Size(); at += 4096 {
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, 512), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	st, err = sqlite.OpenStore(t.Context(), path, store.Options{})
	if err == nil {
		defer st.Close()
		_, err = st.List(t.Context(), store.ListOptions{})
	}
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("overwritten pages: %v", err)
	}
}

func TestClosed(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	_, listErr := st.List(t.Context(), store.ListOptions{})
	_, applyErr := st.Apply(t.Context(), tools(1, "a"), store.ApplyOptions{})
	for _, err := range []error{listErr, applyErr} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%v is not ErrClosed", err)
		}
	}
}

func write(t testing.TB, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustAbs(t testing.TB, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// exec changes a database file without the store.
func exec(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func query(t testing.TB, path, q string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got string
	if err := db.QueryRow(q).Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestOpenAtTheSameTime: several processes create one new store, and each opens it complete.
func TestOpenAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "state.db")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			st, err := sqlite.OpenStore(t.Context(), path, store.Options{Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			if _, err := st.Apply(t.Context(), []v1.Object{tool(fmt.Sprintf("x%d", i), "a")}, store.ApplyOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := mustList(t, open(t, path), store.ListOptions{}).Total; n != 6 {
		t.Errorf("%d objects, want 6", n)
	}
}
