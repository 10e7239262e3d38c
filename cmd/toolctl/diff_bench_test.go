package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkDiff5000 measures a diff of 5,000 objects, including 50 policies, of which one in twenty has changed:
// against the store, and against the previous folder. The floor is a validate of the same files.
func BenchmarkDiff5000(b *testing.B) {
	write := func(changed bool) string {
		dir := manyTools(b, 4950)
		for i := range 50 {
			calls := 3
			if changed && i%20 == 0 {
				calls = 2
			}
			text := fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata: {name: policy-%d}\nspec: {blocklist: [\"tool-%[1]d9\"], limits: [{tools: [\"tool-%[1]d*\"], max_calls: %d, per: hour}], match: {labels: {team: t%d}}}\n", i, calls, i%7)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("policy-%d.yaml", i)), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; changed && i < 4950; i += 20 {
			file := filepath.Join(dir, fmt.Sprintf("tool-%d.yaml", i))
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.Replace(text, []byte("required: [location]"), []byte("required: [location, units]"), 1), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		return dir
	}
	before, after := write(false), write(true)
	store := filepath.Join(b.TempDir(), "state.db")
	runQuiet(b, "apply", "-f", before, "--store", store)
	differs := func(b *testing.B, args ...string) {
		for b.Loop() {
			var stderr bytes.Buffer
			if code := run(b.Context(), args, bytes.NewReader(nil), io.Discard, &stderr); code != exitFailed {
				b.Fatalf("exit %d: %s", code, &stderr)
			}
		}
	}
	b.Run("floor/validate", func(b *testing.B) {
		for b.Loop() {
			runQuiet(b, "validate", "-f", after)
		}
	})
	b.Run("store", func(b *testing.B) { differs(b, "diff", "-f", after, "--store", store) })
	b.Run("folder", func(b *testing.B) { differs(b, "diff", "-f", after, "--against", before) })
}
