package schemagen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Every field of every kind has a comment that starts with its Go name and ends
// with a period, and whose markers agree with the check tag and the type.
func TestCommentsOfTheManifestFields(t *testing.T) {
	src := readRepo(t)
	for _, err := range src.violations() {
		t.Error(err)
	}
	fields := 0
	for _, typ := range src.types {
		fields += len(typ.fields)
	}
	if fields < 100 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// sourceOf reads a package in which Tool holds the given fields.
func sourceOf(t *testing.T, fields string) (*source, error) {
	t.Helper()
	var b strings.Builder
	b.WriteString("package v1\n\nimport \"encoding/json\"\n\nvar _ json.RawMessage\n\n")
	for _, kind := range v1.Kinds() {
		body := ""
		if kind == v1.KindTool {
			body = fields
		}
		fmt.Fprintf(&b, "// %s is a kind.\ntype %s struct {\n%s\n}\n\n", kind, kind, body)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return readSource(dir)
}

func TestViolationsNameWhatIsWrong(t *testing.T) {
	tests := []struct {
		name, fields string
		want         string // part of the only violation; "" for none
	}{
		{"good", "// Size is big. Default: 3. Example: 4.\nSize int `json:\"size\" check:\"min=0\"`", ""},
		{"question", "// Size is big. Example: How big?\nSize string `json:\"size\"`", ""},
		{"no comment", "Size int `json:\"size\"`", "Tool.Size: there is no comment"},
		{"another name", "// The size.\nSize int `json:\"size\"`", "Tool.Size: the comment must start with the Go name"},
		{"no period", "// Size is big. Example: 4\nSize int `json:\"size\"`", "Tool.Size: the comment must end with a period"},
		{"required in the tag only", "// Size is big.\nSize int `json:\"size\" check:\"required\"`", `the check tag says required: the comment must say "Required."`},
		{"required in the comment only", "// Size is big. Required.\nSize int `json:\"size\"`", `the comment says "Required.": the check tag must say required`},
		{"required with a default", "// Size is big. Required. Default: 1.\nSize int `json:\"size\" check:\"required\"`", "a required field has no default"},
		{"wrong order", "// Size is big. Example: a. Required.\nSize string `json:\"size\"`", `the marker "Required." appears twice or in the wrong place`},
		{"default before required", "// Size is big. Default: 1. Required.\nSize int `json:\"size\"`", `the marker "Required." appears twice or in the wrong place`},
		{"example of another type", "// Size is big. Example: much.\nSize int `json:\"size\"`", "example much: expected integer, got str"},
		{"example is no YAML", "// Size is big. Example: {a: [}.\nSize json.RawMessage `json:\"size\"`", "example {a: [}:"},
		{"default not allowed", "// Size is big. Default: xl.\nSize string `json:\"size\" check:\"oneof=s|m\"`", `default "xl" is not one of s, m`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, err := sourceOf(t, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			violations := src.violations()
			if tt.want == "" {
				if len(violations) > 0 {
					t.Fatalf("got %v, want no error", violations)
				}
				return
			}
			if len(violations) != 1 || !strings.Contains(violations[0].Error(), tt.want) {
				t.Fatalf("got %v, want one error with %q", violations, tt.want)
			}
			if !strings.Contains(violations[0].Error(), "types.go:") {
				t.Errorf("%v does not say where", violations[0])
			}
		})
	}
}

func TestReadSourceRefusesWhatHasNoSchema(t *testing.T) {
	tests := []struct{ name, fields, want string }{
		{"no json name", "// Size is big.\nSize int", "Tool.Size has no json name"},
		{"channel", "// Size is big.\nSize chan int `json:\"size\"`", "no JSON Schema is known for this Go type"},
		{"foreign type", "// Size is big.\nSize time.Duration `json:\"size\"`", "no JSON Schema is known for this Go type"},
		{"map key", "// Size is big.\nSize map[int]string `json:\"size\"`", "the key of a map must be string"},
		{"unknown rule", "// Size is big.\nSize int `json:\"size\" check:\"odd\"`", `unknown check rule "odd"`},
		{"bound on text", "// Size is big.\nSize string `json:\"size\" check:\"min=1\"`", `check rule "min=1" does not fit a field of type string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sourceOf(t, tt.fields)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if _, err := readSource(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no Go files") {
		t.Errorf("an empty folder: got %v", err)
	}
}

func TestATypeMayHoldItself(t *testing.T) {
	src, err := sourceOf(t, "// Parts are tools.\nParts []Tool `json:\"parts\"`")
	if err != nil {
		t.Fatal(err)
	}
	files, err := schemaFiles(src)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(referenceFiles(src)[0].data), "parts"); n != 2 {
		t.Errorf("the reference names the field %d times, want once as a field and once in its text", n)
	}
	if !strings.Contains(string(files[0].data), "#/definitions/Tool") {
		t.Errorf("no reference to the type itself:\n%s", files[0].data)
	}
}
