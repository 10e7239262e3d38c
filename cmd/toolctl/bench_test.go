package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// manyTools writes n manifests with one Tool each.
func manyTools(tb testing.TB, n int) string {
	tb.Helper()
	dir := tb.TempDir()
	for i := range n {
		text := fmt.Sprintf(`apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: tool-%d, labels: {team: t%d}}
spec:
  description: Tool number %d of many
  input_schema:
    type: object
    properties:
      location: {type: string, minLength: 1, description: City or address}
      units: {type: string, enum: [metric, imperial]}
    required: [location]
  output_schema:
    type: object
    properties: {id: {const: %d}, temperature: {type: number}}
    required: [temperature]
  mock_result: {id: %d, temperature: 21.5}
`, i, i%7, i, i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("tool-%d.yaml", i)), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func runQuiet(tb testing.TB, args ...string) {
	tb.Helper()
	var stderr bytes.Buffer
	if code := run(tb.Context(), args, bytes.NewReader(nil), io.Discard, &stderr); code != exitOK {
		tb.Fatalf("toolctl %v: exit %d: %s", args, code, &stderr)
	}
}

// BenchmarkStore1000 measures a command over a store of 1,000 tools, without and with the start of the process. The
// floor is the process alone.
func BenchmarkStore1000(b *testing.B) {
	store := filepath.Join(b.TempDir(), "state.db")
	runQuiet(b, "apply", "-f", manyTools(b, 1000), "--store", store)
	bin := filepath.Join(b.TempDir(), "toolctl")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	process := func(b *testing.B, args ...string) {
		for b.Loop() {
			if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	}
	b.Run("floor/version", func(b *testing.B) { process(b, "version") })
	b.Run("list", func(b *testing.B) { process(b, "list", "--store", store) })
	b.Run("call", func(b *testing.B) { process(b, "call", "tool-500", "-a", "location=Oslo", "--store", store) })
	b.Run("list/in-process", func(b *testing.B) {
		for b.Loop() {
			runQuiet(b, "list", "--store", store)
		}
	})
}

// BenchmarkCallFromStore alternates calls from a store of 10 objects and from one of 10,000. "growth" is the ratio of
// their times.
func BenchmarkCallFromStore(b *testing.B) {
	call := func(n int) func() time.Duration {
		store := filepath.Join(b.TempDir(), "state.db")
		runQuiet(b, "apply", "-f", manyTools(b, n), "--store", store)
		return func() time.Duration {
			start := time.Now()
			runQuiet(b, "call", "tool-5", "-a", "location=Oslo", "--store", store)
			return time.Since(start)
		}
	}
	few, many := call(10), call(10_000)
	var small, large time.Duration
	for b.Loop() {
		small += few()
		large += many()
	}
	b.ReportMetric(float64(small.Microseconds())/float64(b.N)/1000, "ms/10")
	b.ReportMetric(float64(large.Microseconds())/float64(b.N)/1000, "ms/10000")
	b.ReportMetric(float64(large)/float64(small), "growth")
}
