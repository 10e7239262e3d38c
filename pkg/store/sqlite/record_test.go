package sqlite_test

import (
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// TestTextIsKept: the store preserves templates and digits exactly.
func TestTextIsKept(t *testing.T) {
	path := filled(t, 1)
	st := open(t, path)
	x := tool("x", "a")
	x.Spec.MockTemplate = `{"a": "<{{.b}}> & c"}`
	x.Spec.MockResult = []byte("{\n  \"n\": 12345678901234567890.10\n}")
	mustApply(t, st, []v1.Object{x}, store.ApplyOptions{})
	text := query(t, path, "SELECT CAST(manifest AS TEXT) FROM objects WHERE name = 'x'")
	for _, want := range []string{`<{{.b}}> & c`, `{"n":12345678901234567890.10}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: does not hold %s", text, want)
		}
	}
}
