package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// benchTool is a Tool of ordinary size: input and output schema, hints, a mock.
func benchTool(i int) []byte {
	return fmt.Appendf(nil, `apiVersion: toolctl.dev/v1
kind: Tool
metadata:
  name: get-weather-%d
  labels: {team: demo}
spec:
  description: Current weather for a place
  timeout_ms: 5000
  hints: {read_only: true}
  input_schema:
    type: object
    properties:
      location: {type: string, description: A city}
      units: {type: string, enum: [metric, imperial]}
      days: {type: integer, minimum: 1, maximum: 14}
    required: [location]
  output_schema:
    type: object
    properties:
      temperature_c: {type: number}
      conditions: {type: string}
    required: [temperature_c]
  mock_result:
    temperature_c: 21.5
    conditions: sunny
`, i)
}

func benchFolder(tb testing.TB, n int) string {
	dir := tb.TempDir()
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("tool-%05d.yaml", i)), benchTool(i), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// BenchmarkLoad reads folders of one Tool a file. The floor reads the same files
// and lets the YAML parser make nodes of them, on as many goroutines.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		dir := benchFolder(b, n)
		b.Run(fmt.Sprintf("files=%d/floor", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				floor(b, dir)
			}
		})
		b.Run(fmt.Sprintf("files=%d/load", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set, err := Load(b.Context(), []string{dir}, Options{})
				if err != nil || len(set.Objects) != n || len(set.Violations) > 0 {
					b.Fatal(err, set)
				}
			}
		})
	}
}

func floor(b *testing.B, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(entries) {
					return
				}
				data, err := os.ReadFile(filepath.Join(dir, entries[i].Name()))
				if err != nil {
					b.Error(err)
				}
				var doc yaml.Node
				if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkDecode reads one Tool from memory, beside the parser alone.
func BenchmarkDecode(b *testing.B) {
	data := benchTool(1)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var doc yaml.Node
			if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, fs := Decode("a.yaml", data, Options{}); len(fs) > 0 {
				b.Fatal(fs)
			}
		}
	})
}

// TestMemoryOfManyTools holds 10,000 tools to far less than the 150 MB that the
// whole process may take.
func TestMemoryOfManyTools(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var tools []v1.Object
	for i := range 10_000 {
		objects, violations := Decode("tools.yaml", benchTool(i), Options{})
		if len(objects) != 1 || len(violations) > 0 {
			t.Fatalf("tool %d: %v", i, violations)
		}
		tools = append(tools, objects...)
	}
	kept := heap() - before
	if kept > 60<<20 {
		t.Errorf("10,000 tools keep %d MB, expected at most 60", kept>>20)
	}
	t.Logf("10,000 tools keep %.1f MB", float64(kept)/(1<<20))
	runtime.KeepAlive(tools)
}

// BenchmarkOneLine shows that a long line of JSON costs time in proportion to its length.
func BenchmarkOneLine(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		doc := []byte("[" + strings.Repeat(`{"ä":1},`, n) + "0]")
		b.Run(fmt.Sprintf("values=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, violations := ToJSON("x.json", doc); violations != nil {
					b.Fatal(violations)
				}
			}
		})
	}
}
