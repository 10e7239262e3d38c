package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// TestMain runs this program as a second process if a test requests it.
func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		os.Exit(child(job))
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	return openWith(t, path, store.Options{})
}

func create(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	return openWith(t, path, store.Options{Create: true})
}

func openWith(t testing.TB, path string, opts store.Options) *sqlite.Store {
	t.Helper()
	st, err := sqlite.OpenStore(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// tool and tools return tools that carry a mark.
var tool, tools = storetest.Tool, storetest.Tools

// filled creates a closed store of n tools.
func filled(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	st, err := sqlite.OpenStore(t.Context(), path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Apply(t.Context(), tools(n, "a"), store.ApplyOptions{Set: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustApply(t testing.TB, st *sqlite.Store, objects []v1.Object, opts store.ApplyOptions) []store.Change {
	t.Helper()
	changes, err := st.Apply(t.Context(), objects, opts)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func mustList(t testing.TB, st *sqlite.Store, opts store.ListOptions) store.List {
	t.Helper()
	list, err := st.List(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// wholeSet checks that the store holds n tools that all carry the mark.
func wholeSet(t *testing.T, st *sqlite.Store, n int, mark string) {
	t.Helper()
	list := mustList(t, st, store.ListOptions{})
	if list.Total != n || len(list.Records) != n {
		t.Fatalf("%d objects, want %d", list.Total, n)
	}
	for _, r := range list.Records {
		x := r.Object.(*v1.Tool)
		if x.Metadata.Labels["mark"] != mark || !strings.HasSuffix(x.Spec.Description, ", "+mark) {
			t.Fatalf("%s is of apply %q, want %q: a mix", r.Key(), x.Metadata.Labels["mark"], mark)
		}
	}
}

func contains(err error, parts ...string) bool {
	return err != nil && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(err.Error(), p) })
}

func verified(t testing.TB, st *sqlite.Store, head string) store.AuditCheck {
	t.Helper()
	check, err := st.VerifyAudit(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

func auditLine(i int) v1.AuditRecord {
	return v1.AuditRecord{
		Time: time.Date(2026, 11, 21, 7, 0, i, 0, time.UTC), CallID: fmt.Sprintf("c%d", i), Principal: "me", Session: "s", Tool: "get", Namespace: "default",
		Args: []byte(fmt.Sprintf(`{"n":%d,"t":"<&>"}`, i)), Status: v1.StatusComplete,
	}
}

func read(t *testing.T, st *sqlite.Store, counters []v1.Counter, want []int64) {
	t.Helper()
	counts, err := st.Read(t.Context(), counters)
	var used []int64
	for _, c := range counts {
		used = append(used, c.Used)
	}
	if err != nil || !slices.Equal(used, want) {
		t.Errorf("read %d, %v: want %d", used, err, want)
	}
}
