package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// write makes files under a new folder and makes that folder the current one, so
// that paths in messages are short.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func named(name string) string { return strings.Replace(tool, "name: t", "name: "+name, 1) + okSchema }

func keys(s *Set) []string {
	var out []string
	for _, o := range s.Objects {
		out = append(out, o.Head().Source.File+" "+o.Head().Metadata.Name)
	}
	return out
}

func TestLoadFolder(t *testing.T) {
	write(t, map[string]string{
		"d/b.yaml":                named("b1") + "---\n" + named("b2"),
		"d/a.yml":                 named("a"),
		"d/sub/deep/c.YAML":       named("c"),
		"d/j.json":                `{"apiVersion": "toolctl.dev/v1", "kind": "Prompt", "metadata": {"name": "j"}, "spec": {"template": "x"}}`,
		"d/prompt.md":             "---\nname: m\n---\nhello\n",
		"d/README.md":             "# Readme\n",
		"d/notes.txt":             "apiVersion: toolctl.dev/v1\nkind: Nonsense\n",
		"d/.hidden.yaml":          "a: [",
		"d/.git/x.yaml":           "a: [",
		"d/values.yaml":           "replicas: 3\n",
		"d/deploy.yaml":           "apiVersion: apps/v1\nkind: Deployment\n",
		"d/list.json":             "[1, 2]",
		"d/empty.yaml":            "",
		"other/outside/file.yaml": named("outside"),
	})
	if err := os.Symlink("../other/outside", "d/linked"); err != nil {
		t.Fatal(err)
	}
	set, err := Load(t.Context(), []string{"d"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"d/a.yml a", "d/b.yaml b1", "d/b.yaml b2", "d/j.json j", "d/prompt.md m", "d/sub/deep/c.YAML c"}
	if diff := cmp.Diff(want, keys(set)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	wantViolations := []string{
		`d/deploy.yaml:1:1: warning: not a toolctl manifest: skipped (apiVersion "apps/v1", kind "Deployment")`,
		"d/linked: warning: a symbolic link to a folder elsewhere is not followed: pass that folder with -f, or add the link to .toolctlignore",
		`d/list.json:1:1: warning: not a toolctl manifest: skipped (expected an object with apiVersion and kind, got an array)`,
		`d/values.yaml:1:1: warning: not a toolctl manifest: skipped (apiVersion and kind are missing)`,
	}
	if diff := cmp.Diff(wantViolations, violationStrings(set.Violations)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if set.Files != 9 || set.Failed() {
		t.Errorf("files %d, failed %v", set.Files, set.Failed())
	}
}

// The same file may be reached by two paths; two files may not declare one object.
func TestLoadTwice(t *testing.T) {
	write(t, map[string]string{"d/a.yaml": named("x"), "d/b.yaml": "# first line\n" + named("x"), "d/c.yaml": named("z")})
	set, err := Load(t.Context(), []string{"d/c.yaml", "./d", "d/../d/c.yaml"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d/a.yaml x", "d/b.yaml x", "d/c.yaml z"}, keys(set)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	want := []string{
		"d/a.yaml:1:1: metadata.name: Tool default/x is declared twice: here and at d/b.yaml:2:1",
		"d/b.yaml:2:1: metadata.name: Tool default/x is declared twice: here and at d/a.yaml:1:1",
	}
	if diff := cmp.Diff(want, violationStrings(set.Violations)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	for i, broken := range []bool{true, true, false} {
		if h := set.Objects[i].Head(); h.Broken() != broken {
			t.Errorf("%s: broken = %v", h.Source, h.Broken())
		}
	}
	if !set.Failed() {
		t.Error("a duplicate object is no failure")
	}
}

func TestLoadStdin(t *testing.T) {
	write(t, map[string]string{"r.json": `{"a": 1}`})
	in := named("x") + "  mock_result_file: r.json\n"
	set, err := Load(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(in)})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Violations) > 0 || string(set.Objects[0].Head().Files["r.json"]) != `{"a":1}` {
		t.Errorf("errors %v, files %q", violationStrings(set.Violations), set.Objects[0].Head().Files)
	}
}

func TestLoadErrors(t *testing.T) {
	write(t, map[string]string{"empty/x.txt": "x", "text/README.md": "# x\n", "d/a.yaml": named("a"), "d/b.yaml": named("b"), "plain.md": "# x\n"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		paths []string
		opts  Options
		want  string
		is    error
	}{
		{name: "no path", want: "no path given: expected a file, a folder or - for stdin"},
		{name: "missing", paths: []string{"none.yaml"}, want: "none.yaml: no such file or folder", is: fs.ErrNotExist},
		{name: "folder without manifests", paths: []string{"empty"}, want: "empty: the folder contains no manifest: expected *.yaml, *.yml, *.json, or *.md with front matter"},
		{name: "folder of text", paths: []string{"text"}, want: "text: no manifest: expected *.yaml, *.yml, *.json, or *.md with front matter"},
		{name: "no stdin", paths: []string{"-"}, want: "-: there is no stdin to read from"},
		{name: "stdin twice", paths: []string{"-", "-"}, opts: Options{Stdin: strings.NewReader("")}, want: "-: stdin can be read only once"},
		{name: "too many files", paths: []string{"d"}, opts: Options{MaxFiles: 1}, want: "d/b.yaml: more than 1 files: name a smaller folder"},
		{name: "ended", ctx: ended, paths: []string{"d"}, want: "context canceled", is: context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := Load(ctx, tt.paths, tt.opts)
			if err == nil || err.Error() != tt.want {
				t.Fatalf("error %v, expected %s", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
		})
	}
	set, err := Load(t.Context(), []string{"plain.md"}, Options{})
	if err != nil || len(set.Violations) != 1 {
		t.Errorf("a named markdown file without front matter: %v, %v", set, err)
	}
}

func TestFilesOfAManifest(t *testing.T) {
	write(t, map[string]string{
		"d/sub/tool.yaml": named("t") + `  mock_result_file: ../data/r.yaml
  mock_template_file: t.tmpl
  mock_parts:
  - {type: image, media: {file_path: chart.png}}
  http:
    url: https://example.com
    tls: {ca_file: /etc/ssl/ca.pem, cert_file: ../c.pem, key_file: ../c.key}
`,
		"d/data/r.yaml":   "# a result\na: [no, 0x10, 12345678901234567890]\n",
		"d/sub/t.tmpl":    "{{.a}}",
		"d/sub/chart.png": "\x89PNG",
		"d/scenario.yaml": `apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  turns: [{user: hi}]
  mocks:
    t:
      cassette: cassettes/t.yaml
      parts: [{type: image, media: {file_path: sub/chart.png}}]
      responses:
      - parts: [{type: audio, media: {file_path: ./sub/chart.png}}]
    new: {cassette: later.yaml}
`,
		"d/cassettes/t.yaml": "- not: a manifest\n",
	})
	set, err := Load(t.Context(), []string{"d"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`d/data/r.yaml:2:5: warning: spec.mock_result_file: "no" is text here, but a YAML 1.1 reader such as kubectl sees a boolean: quote it`,
		`d/scenario.yaml:12:21: warning: spec.mocks.new.cassette: file "later.yaml" does not exist: expected it at d/later.yaml`,
	}
	if diff := cmp.Diff(want, violationStrings(set.Violations)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for _, o := range set.Objects {
		for name, data := range o.Head().Files {
			got[o.Head().Kind+" "+name] = string(data)
		}
	}
	wantFiles := map[string]string{
		"Tool ../data/r.yaml": `{"a":["no",16,12345678901234567890]}`, "Tool t.tmpl": "{{.a}}", "Tool chart.png": "\x89PNG",
		"Scenario cassettes/t.yaml": "- not: a manifest\n", "Scenario sub/chart.png": "\x89PNG", "Scenario ./sub/chart.png": "\x89PNG",
	}
	if diff := cmp.Diff(wantFiles, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	write(t, map[string]string{"outside.json": "{}", "d/bad.json": "{\n  \"a\": nul!}", "d/twice.yaml": "a: 1\n---\nb: 2\n", "d/keys.yaml": "a: 1\na: 2\n", "d/none.yaml": "# nothing\n", "d/big.bin": strings.Repeat("x", 5000), "d/folder/x": ""})
	if err := os.Symlink("../outside.json", "d/link.json"); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs("outside.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, field, want string }{
		{"missing", "mock_result_file: no.json", `d/t.yaml:8:21: spec.mock_result_file: file "no.json" does not exist: expected it at d/no.json`},
		{"leaves", "mock_result_file: ../outside.json", `d/t.yaml:8:21: spec.mock_result_file: file "../outside.json" leaves the folder that was given; pass the folder that contains both, as in -f .`},
		{"leaves by a symlink", "mock_template_file: link.json", `d/t.yaml:8:23: spec.mock_template_file: file "link.json" leaves the folder that was given`},
		{"leaves and comes back", "mock_template_file: ../d/bad.json", `d/t.yaml:8:23: spec.mock_template_file: file "../d/bad.json" leaves the folder that was given; pass the folder that contains both, as in -f .`},
		{"absolute", "mock_template_file: " + abs, fmt.Sprintf(`d/t.yaml:8:23: spec.mock_template_file: file %q is absolute: expected a path relative to the manifest`, clip.Bytes(abs, maxShown))},
		{"a folder", "mock_template_file: folder", `d/t.yaml:8:23: spec.mock_template_file: file "folder" is not a regular file`},
		{"too large", "mock_template_file: big.bin", `d/t.yaml:8:23: spec.mock_template_file: file "big.bin" is larger than 4000 bytes`},
		{"not JSON", "mock_result_file: bad.json", `d/bad.json:2:11: spec.mock_result_file: not JSON: invalid character '!' in literal null (expecting 'l')`},
		{"two values", "mock_result_file: twice.yaml", `d/twice.yaml:3:1: spec.mock_result_file: more than one document: expected one value`},
		{"duplicate key", "mock_result_file: keys.yaml", `d/keys.yaml:2:1: spec.mock_result_file: duplicate key "a": first on line 1, again on line 2`},
		{"no value", "mock_result_file: none.yaml", `d/none.yaml:1:1: spec.mock_result_file: the file is empty: expected a JSON or YAML value`},
		{"media", "mock_parts: [{type: image, media: {file_path: no.png}}]", `d/t.yaml:8:49: spec.mock_parts[0].media.file_path: file "no.png" does not exist: expected it at d/no.png`},
		{"tls", `http: {url: "https://example.com", tls: {ca_file: ../ca.pem}}`, `d/t.yaml:8:53: spec.http.tls.ca_file: file "../ca.pem" leaves the folder that was given; pass the folder that contains both, as in -f .`},
		{"tls by a symlink", `http: {url: "https://example.com", tls: {ca_file: link.json}}`, `d/t.yaml:8:53: spec.http.tls.ca_file: file "link.json" leaves the folder that was given`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile("d/t.yaml", []byte(named("t")+"  "+tt.field+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			// A named file may read its own folder, as a folder may.
			for _, path := range []string{"d/t.yaml", "d"} {
				set, err := Load(t.Context(), []string{path}, Options{MaxFileBytes: 4000})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range set.Objects[0].Head().Violations {
					got = append(got, f.String())
				}
				if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
					t.Errorf("%s: errors (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// PromptKit names files from the folder of its configuration.
func TestPromptKitFiles(t *testing.T) {
	pk := "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: t}\nspec:\n  description: d\n  input_schema: {type: object}\n  mode: mock\n  mock_parts:\n  - {type: image, media: {file_path: testdata/a.png}}\n  - {type: image, media: {file_path: testdata/none.png}}\n"
	write(t, map[string]string{"d/tools/t.tool.yaml": pk, "d/testdata/a.png": "a"})
	set, err := Load(t.Context(), []string{"d"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`d/tools/t.tool.yaml:10:38: warning: spec.mock_parts[1].media.file_path: file "testdata/none.png" does not exist: expected it at d/tools/testdata/none.png`}
	if diff := cmp.Diff(want, violationStrings(set.Violations)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if got := string(set.Objects[0].Head().Files["testdata/a.png"]); got != "a" {
		t.Errorf("file = %q", got)
	}
}

// The order of what is read does not depend on who reads it first.
func TestLoadIsDeterministic(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("d/%02d.yaml", i)] = named(fmt.Sprintf("t%d", i%50)) + "  bad: 1\n"
	}
	write(t, files)
	var first []string
	for range 5 {
		set, err := Load(t.Context(), []string{"d"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := append(keys(set), violationStrings(set.Violations)...)
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("a second Load differs:\n%s", diff)
		}
	}
	if len(first) != 60+60+20 {
		t.Errorf("%d lines", len(first))
	}
}

func TestMarshalYAML(t *testing.T) {
	o := v1.NewObject(v1.KindTool).(*v1.Tool)
	o.Metadata.Name = "get-weather"
	o.Metadata.Labels = map[string]string{"y": "on", "b": "1.10"}
	o.Spec.Description = "First line\nsecond: line\n"
	o.Spec.InputSchema = []byte(`{"type":"object","properties":{"y":{"type":"integer","maximum":12345678901234567890123},"a":{"enum":["no","0777","12:30","~",""]}},"required":[]}`)
	got, err := MarshalYAML(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: toolctl.dev/v1
kind: Tool
metadata:
  name: get-weather
  labels:
    b: "1.10"
    "y": "on"
spec:
  description: |
    First line
    second: line
  input_schema:
    type: object
    properties:
      "y":
        type: integer
        maximum: 12345678901234567890123
      a:
        enum:
        - "no"
        - "0777"
        - "12:30"
        - "~"
        - ""
    required: []
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("YAML (-want +got):\n%s", diff)
	}
	if _, err := MarshalYAML(func() {}); err == nil {
		t.Error("a function was written")
	}
}
