package doc

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const mainDoc = `
a~b: {c/d: [zero, {deep: 1}]}
"per%cent": 2
named: {$id: https://x.example/n, $defs: {w: {type: string}}, inside: {ref: here}, $anchor: top}
anchored: {$anchor: mark}
`

func TestResolve(t *testing.T) {
	folder := fstest.MapFS{
		"api/main.yaml":      {Data: []byte(mainDoc)},
		"api/other.yaml":     {Data: []byte("x: {y: there}\nback: {$ref: main.yaml#/anchored}\n")},
		"shared/common.json": {Data: []byte(`{"z": [10, 20]}`)},
		"api/broken.yaml":    {Data: []byte("a: [")},
	}
	tests := []struct {
		name, from, ref string
		at              string
		want            any
		err             string
	}{
		{name: "pointer", ref: "#/a~0b/c~1d/1/deep", at: "#/a~0b/c~1d/1/deep", want: json.Number("1")},
		{name: "percent", ref: "#/per%25cent", at: "#/per%cent", want: json.Number("2")},
		{name: "anchor", ref: "#mark", at: "#/anchored", want: map[string]any{"$anchor": "mark"}},
		{name: "id", ref: "https://x.example/n#/$defs/w", at: "#/named/$defs/w", want: map[string]any{"type": "string"}},
		{name: "pointer below an id", from: "/named/inside", ref: "#/$defs/w", at: "#/named/$defs/w", want: map[string]any{"type": "string"}},
		{name: "anchor below an id", from: "/named/inside", ref: "#top", at: "#/named"},
		{name: "another file", ref: "other.yaml#/x/y", at: "api/other.yaml#/x/y", want: "there"},
		{name: "a file above", ref: "../shared/common.json#/z/1", at: "shared/common.json#/z/1", want: json.Number("20")},
		{name: "no such key", ref: "#/a~0b/nope", err: `there is no "nope"`},
		{name: "no such index", ref: "#/a~0b/c~1d/2", err: `there is no "2"`},
		{name: "no such anchor", ref: "#nope", err: `no schema has the anchor "nope"`},
		{name: "no such file", ref: "nope.yaml", err: "not exist"},
		{name: "broken file", ref: "broken.yaml#/a", err: "api/broken.yaml: "},
		{name: "network", ref: "http://169.254.169.254/latest#/x", err: "nothing is fetched"},
		{name: "file URL", ref: "file:///etc/passwd", err: "nothing is fetched"},
		{name: "host without scheme", ref: "//evil.example/x.yaml", err: "nothing is fetched"},
		{name: "absolute path", ref: "/etc/passwd", err: "only files in the folder"},
		{name: "above the folder", ref: "../../etc/passwd", err: "leaves the folder"},
		{name: "bad escape", ref: "#/%zz", err: "invalid URL escape"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := NewSet([]byte(mainDoc), folder, "api/main.yaml")
			if err != nil {
				t.Fatal(err)
			}
			at, got, err := set.Resolve(Location{File: set.Main, Pointer: tt.from}, tt.ref)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if at.String() != tt.at {
				t.Errorf("at %s, want %s", at, tt.at)
			}
			if tt.want != nil {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestResolveComesBack: a file that refers to the document finds the document
// itself, not a second copy.
func TestResolveComesBack(t *testing.T) {
	folder := fstest.MapFS{"other.yaml": {Data: []byte("back: here\n")}}
	set, err := NewSet([]byte("a: 1"), folder, "main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := set.Resolve(Location{File: set.Main}, "other.yaml")
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := set.Resolve(other, "main.yaml#/a")
	if err != nil {
		t.Fatal(err)
	}
	if back.File != set.Main {
		t.Error("the document was read twice")
	}
}

func TestResolveWithoutFolder(t *testing.T) {
	set, err := NewSet([]byte("a: 1"), nil, "https://x.example/main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Resolve(Location{File: set.Main}, "other.yaml#/x"); err == nil || !strings.Contains(err.Error(), "bundle the document") {
		t.Errorf("got %v", err)
	}
}

// TestLinksStayInside: a link in the folder that leads out of it is not followed.
func TestLinksStayInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	dir := t.TempDir()
	if err := os.WriteFile(outside, []byte("s: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.yaml")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	set, err := NewSet([]byte("a: 1"), root.FS(), "main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Resolve(Location{File: set.Main}, "link.yaml#/s"); err == nil {
		t.Error("the link was followed")
	}
}

func TestFilesAreBounded(t *testing.T) {
	many := fstest.MapFS{"dir": {Mode: fs.ModeDir}}
	for i := range MaxFiles + 5 {
		many[fmt.Sprintf("f%d.yaml", i)] = &fstest.MapFile{Data: []byte("a: 1")}
	}
	large := fstest.MapFS{"large.yaml": {Data: []byte("#" + strings.Repeat("x", MaxBytes))}, "dir/a.yaml": {Data: []byte("a: 1")}}
	set, err := NewSet([]byte("a: 1"), many, "main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for i := range MaxFiles + 5 {
		_, _, last = set.Resolve(Location{File: set.Main}, fmt.Sprintf("f%d.yaml#/a", i))
	}
	if last == nil || !strings.Contains(last.Error(), "more than 200 files") {
		t.Errorf("many files: %v", last)
	}
	set, err = NewSet([]byte("a: 1"), large, "main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Resolve(Location{File: set.Main}, "dir"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("folder: %v", err)
	}
	if _, _, err := set.Resolve(Location{File: set.Main}, "large.yaml"); err == nil || !strings.Contains(err.Error(), "larger than 50 MiB") {
		t.Errorf("large file: %v", err)
	}
}
