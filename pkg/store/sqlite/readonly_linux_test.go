package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestReadOnly opens stores that are not writable. Root can write everything, so as root this thread gives up that
// right: the fsuid controls file access, and every statement runs on the calling thread.
func TestReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "store-readonly")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "state.db")
	content, err := os.ReadFile(filled(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, content)
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	foreign := filepath.Join(dir, "foreign.db")
	if root {
		write(t, foreign, content) // owned by root
		if err := errors.Join(os.Chmod(foreign, 0o644), os.Chown(file, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)

	for _, tc := range []struct {
		name, path string
		want       []string
	}{
		{"file and folder", file, []string{file, "the file or its folder cannot be written", "--store"}},
		{"of another user", foreign, []string{foreign, "belongs to another user", "chmod go-rwx " + foreign, "--store"}},
		{"no file in a folder", filepath.Join(dir, "new.db"), []string{"new.db", "cannot create the file: permission denied"}},
		{"no folder in a folder", filepath.Join(dir, "new", "state.db"), []string{"cannot create its folder", "permission denied"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.path == foreign && !root {
				t.Skip("only root can make the file of another user")
			}
			err := asNobody(t, func() error {
				st, err := sqlite.OpenStore(t.Context(), tc.path, store.Options{Create: true})
				if err != nil {
					return err
				}
				defer st.Close()
				_, err = st.Apply(t.Context(), tools(2, "b"), store.ApplyOptions{})
				return err
			})
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
		})
	}
}

func asNobody(t *testing.T, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
		}
		done <- f()
	}()
	return <-done
}
