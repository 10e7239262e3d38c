package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestMain runs this program again as a second process when a test asks for one.
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

// filled makes a closed store of n tools.
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

// tools makes n tools that carry one mark each, as label and in their spec.
func tools(n int, mark string) []v1.Object {
	objects := make([]v1.Object, n)
	for i := range objects {
		objects[i] = tool(fmt.Sprintf("tool-%04d", i), mark)
	}
	return objects
}

func tool(name, mark string) *v1.Tool {
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata.Name = name
	t.Metadata.Labels = map[string]string{"mark": mark}
	t.Source = v1.Source{File: "tools/" + name + ".yaml", Line: 1, Column: 1}
	t.Spec = v1.ToolSpec{
		Description:  "Current weather for a place, " + mark,
		InputSchema:  []byte(`{"type":"object","properties":{"location":{"type":"string","description":"a place"},"unit":{"type":"string","enum":["c","f"]}},"required":["location"]}`),
		OutputSchema: []byte(`{"type":"object","properties":{"temperature_c":{"type":"number"},"conditions":{"type":"string"}}}`),
		MockResult:   []byte(`{"temperature_c":21.5,"conditions":"sunny"}`),
	}
	return t
}

func keyOf(kind, name string) v1.Key {
	return v1.Key{Kind: kind, Namespace: v1.DefaultNamespace, Name: name}
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
