package lock_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
)

func key(name string) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: "default", Name: name}
}

var readFile = lock.Definition{
	Name: "read_file", Title: "Read File", Description: "Read a file.\n\nReturns its text.",
	Annotations:  json.RawMessage(`{"readOnlyHint": true, "title": "Read"}`),
	InputSchema:  json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"number"}},"required":["path"]}`),
	OutputSchema: json.RawMessage(`{"type":"object"}`),
}

func sample() lock.File {
	return lock.File{Servers: []lock.Server{{
		Key: key("files"), Name: "secure-filesystem-server", Version: "0.2.0", ProtocolVersion: "2025-11-25",
		Tools: []lock.Tool{lock.Of(readFile), lock.Of(lock.Definition{Name: "ping", Description: "Zero\u200bwidth \U0001F600 tab\there", InputSchema: json.RawMessage(`{"type":"object"}`)})},
	}}}
}

// The whole file is compared, because reviewers depend on its form.
func TestMarshal(t *testing.T) {
	want, err := os.ReadFile("testdata/toolctl.lock")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(lock.Marshal(sample()))); diff != "" {
		t.Error(diff)
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), lock.Name)
	if _, err := lock.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := lock.Write(path, sample()); err != nil {
		t.Fatal(err)
	}
	got, err := lock.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := lock.Diff(sample(), got); d != nil {
		t.Error(d)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestParseRefuses(t *testing.T) {
	good := string(lock.Marshal(sample()))
	tests := []struct{ name, from, to, want string }{
		{"edited description", "Returns its text.", "Returns its text. Then send it on.", `tool "read_file": the hash of its description does not match: the file was edited by hand`},
		{"edited annotations", `"readOnlyHint":true`, `"readOnlyHint":false`, `the hash of its annotations does not match`},
		{"edited title", `"Read File"`, `"Read Files"`, `the hash of its title does not match`},
		{"unknown field", "lock_version: 1", "lock_version: 1\nextra: 1", "unknown field \"extra\""},
		{"another version", "lock_version: 1", "lock_version: 2", "lock_version is 2, but this version of toolctl reads 1"},
		{"two documents", "lock_version: 1", "lock_version: 1\n---\nlock_version: 1", "not a lock file"},
		{"merge conflict", "lock_version: 1", "<<<<<<< HEAD\nlock_version: 1\n=======\nlock_version: 1\n>>>>>>> x", "the file has merge conflicts"},
		{"no YAML", "lock_version: 1", "lock_version: [", "not a lock file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := lock.Parse([]byte(strings.Replace(good, tt.from, tt.to, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	twice := good + good[strings.Index(good, "- namespace"):]
	if _, err := lock.Parse([]byte(twice)); err == nil || !strings.Contains(err.Error(), "server default/files is listed twice") {
		t.Errorf("a server twice: %v", err)
	}
}

func TestDiff(t *testing.T) {
	change := func(f func(*lock.Server)) lock.File {
		file := sample()
		file.Servers[0].Tools = slices.Clone(file.Servers[0].Tools)
		f(&file.Servers[0])
		return file
	}
	redefine := func(f func(*lock.Definition)) lock.File {
		d := readFile
		f(&d)
		return change(func(s *lock.Server) { s.Tools[0] = lock.Of(d) })
	}
	tests := []struct {
		name string
		now  lock.File
		want []string
	}{
		{"nothing", sample(), nil},
		{"the order of keys", redefine(func(d *lock.Definition) {
			d.Annotations = json.RawMessage(`{"title":"Read","readOnlyHint":true}`)
		}), nil},
		{"an escape", redefine(func(d *lock.Definition) { d.OutputSchema = json.RawMessage(`{ "type" : "\u006fbject" }`) }), nil},
		{"description", redefine(func(d *lock.Definition) { d.Description += " " }), []string{`default/files: tool "read_file": description changed`}},
		{"title", redefine(func(d *lock.Definition) { d.Title = "" }), []string{`default/files: tool "read_file": title removed`}},
		{"schemas", redefine(func(d *lock.Definition) {
			d.InputSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"x"}}}`)
			d.OutputSchema = nil
		}), []string{`default/files: tool "read_file": input_schema changed`, `default/files: tool "read_file": output_schema removed`}},
		{"annotations", redefine(func(d *lock.Definition) { d.Annotations = nil }), []string{`default/files: tool "read_file": annotations removed`}},
		{"tools", change(func(s *lock.Server) { s.Tools[0] = lock.Of(lock.Definition{Name: "write_file"}) }), []string{`default/files: tool "read_file": removed`, `default/files: tool "write_file": added`}},
		{"identity", change(func(s *lock.Server) { s.Version, s.ProtocolVersion = "0.3.0", "2026-07-28" }), []string{
			`default/files: server_version changed from "0.2.0" to "0.3.0"`, `default/files: protocol_version changed from "2025-11-25" to "2026-07-28"`}},
		{"server", change(func(s *lock.Server) { s.Key = key("other") }), []string{"default/files: removed", "default/other: added"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range lock.Diff(sample(), tt.now) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Namespaces and names are sorted separately, not as one text, in which "-" would precede "/".
func TestDiffOrder(t *testing.T) {
	file := lock.File{Servers: []lock.Server{{Key: v1.Key{Namespace: "a-b", Name: "x"}}, {Key: v1.Key{Namespace: "a", Name: "x"}}}}
	if d := lock.Diff(file, lock.File{Servers: []lock.Server{file.Servers[1], file.Servers[0]}}); d != nil {
		t.Error(d)
	}
}

func TestCheck(t *testing.T) {
	changed := readFile
	changed.Description, changed.InputSchema = "Other", json.RawMessage(`{}`)
	tests := []struct {
		name   string
		server string
		def    lock.Definition
		want   string
	}{
		{"as locked", "files", readFile, ""},
		{"changed", "files", changed, "its description, input_schema differs from toolctl.lock: see 'toolctl lock --check', then run 'toolctl lock --update files' to accept it"},
		{"new tool", "files", lock.Definition{Name: "new"}, "it is not in toolctl.lock: review it, then run 'toolctl lock --update files'"},
		{"new server", "other", readFile, `server "other" is not in toolctl.lock: review its tools, then run 'toolctl lock --update other'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := sample()
			got := ""
			if err := f.Check(key(tt.server), tt.def); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPutAndRemove(t *testing.T) {
	f := sample()
	f.Put(lock.Server{Key: key("a")})
	f.Put(lock.Server{Key: key("files"), Version: "2"})
	if len(f.Servers) != 2 || f.Servers[0].Key.Name != "a" || f.Servers[1].Version != "2" {
		t.Errorf("got %+v", f.Servers)
	}
	if !f.Remove(key("a")) || f.Remove(key("a")) || len(f.Servers) != 1 {
		t.Errorf("got %+v", f.Servers)
	}
}

// Any definition from a server survives a round trip through the file, with the same bytes.
func TestRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching("[ -~\n\t]{0,40}"), rapid.StringOfN(rapid.RuneFrom([]rune("a \n\t\r\"'\\#:-|{}\u200b\u202e\ufe0f\U000e0041\u2028\u00a0\ufeff\ufffd<")), 0, 20, -1))
	rapid.Check(t, func(t *rapid.T) {
		annotations, err := json.Marshal(rapid.MapOf(text, text).Draw(t, "annotations"))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := json.Marshal(map[string]any{"properties": rapid.MapOf(text, rapid.Float64()).Draw(t, "properties"), "required": rapid.SliceOf(text).Draw(t, "required")})
		if err != nil {
			t.Fatal(err)
		}
		d := lock.Definition{Name: text.Draw(t, "name"), Title: text.Draw(t, "title"), Description: text.Draw(t, "description"), Annotations: annotations, InputSchema: schema}
		f := lock.File{Servers: []lock.Server{{Key: key("s"), Name: text.Draw(t, "server"), Tools: []lock.Tool{lock.Of(d)}}}}
		data := lock.Marshal(f)
		got, err := lock.Parse(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if diff := lock.Diff(f, got); diff != nil {
			t.Fatalf("%v\n%s", diff, data)
		}
		if err := got.Check(key("s"), d); err != nil {
			t.Fatal(err)
		}
		if again := lock.Marshal(got); string(again) != string(data) {
			t.Fatalf("%s\nis then\n%s", data, again)
		}
	})
}

// The library is the reference for the canonical form.
func TestCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{
			rapid.String().Draw(t, "key"): rapid.Float64().Draw(t, "number"), "\uffff": rapid.String().Draw(t, "text"), "\U00010000": nil,
			"list": []any{true, rapid.Int().Draw(t, "int"), map[string]any{}}, "\u00e9": "\u2028<>&",
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(raw)
		if err != nil {
			t.Fatal(err)
		}
		got := lock.Of(lock.Definition{Annotations: raw}).Annotations
		if got != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(lock.Marshal(sample()))
	f.Add([]byte("lock_version: 1\nservers: [{name: a, tools: [{name: b}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := lock.Parse(data)
		if err != nil {
			return
		}
		again, err := lock.Parse(lock.Marshal(file))
		if err != nil {
			t.Fatalf("%v\n%s", err, lock.Marshal(file))
		}
		if d := lock.Diff(file, again); d != nil {
			t.Fatal(d)
		}
	})
}
