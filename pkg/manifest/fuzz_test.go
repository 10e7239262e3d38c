package manifest

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// FuzzDecode holds the reader to three promises: it never panics, a violation always has
// a place, and what reads without violations is written and read back the same.
func FuzzDecode(f *testing.F) {
	seeds := []string{
		string(benchTool(1)),
		"apiVersion: toolctl.dev/v1\nkind: Prompt\nmetadata: {name: p}\nspec: {template: 'y', tools: [\"a*\"]}\n",
		"apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  mocks: {a: {responses: [{result: {y: no}}]}}\n  turns: [{user: hi}]\n",
		"apiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata: {name: p}\nspec: {allowlist: [], limits: [{max_calls: 1, per: turn}]}\n",
		"apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: m}\nspec: {command: x, args: [\"1\"], env: {A: b}}\n",
		"apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: PromptConfig\nmetadata: {name: A B}\nspec: {system_template: 'x {{y}}', variables: [{name: y, default: 1}], required_vars: [z]}\n",
		"kind: List\napiVersion: v1\nitems:\n- &a {apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: x}, spec: {description: d, input_schema: {a: &b [1, 0x1F, 0o17, +5, .5, 1.]}}}\n- *a\n",
		"a: &a [*a]\n", "a: &a {<<: *a}\n", "{\"apiVersion\": \"toolctl.dev/v1\", \"kind\": \"Tool\"", "x: !!binary aGk=\n", "? [a]\n: b\n", "- \x00\n", "a: \"\\ud83d\"\n",
		"---\nname: x\ntools: a, b\n---\n# A long heading\nbody\n",
		"# a\n\n# b\nkind: Tool # c\nmetadata: {name: x} # d\nspec:\n  # e\n  input_schema: {type: object} # f\n  # g\n  description: | # h\n    i\n  mock_result: [1, # j\n    {a: 1}]\n# k\napiVersion: toolctl.dev/v1\n# l\n",
		"kind: Tool\napiVersion: toolctl.dev/v1\nspec:\n  input_schema: {<<: [{a: 1}, {b: .inf}], c: 2}\n",
	}
	for _, s := range seeds {
		for i := range names {
			f.Add(uint8(i), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		name := names[int(which)%len(names)]
		objects, violations := Decode(name, data, Options{Layout: true})
		for _, f := range violations {
			if f.Source.File != name || f.Source.Line < 1 && f.Source.Column != 0 || f.Message == "" {
				t.Fatalf("a error without a place or a message: %+v", f)
			}
		}
		for _, o := range objects {
			// A markdown file without a body is a prompt that says nothing, with a warning; in
			// YAML it is a violation.
			p, isPrompt := o.(*v1.Prompt)
			empty := isPrompt && p.Spec.Template == "" && p.Spec.SystemPrompt == ""
			if !o.Head().Broken() && !empty {
				checkRoundTrip(t, o)
			}
		}
	})
}

var names = []string{"a.yaml", "a.json", "a.md"}

// fatal is what testing.T and rapid.T share.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkRoundTrip writes an object as YAML and as JSON and reads both back.
func checkRoundTrip(t fatal, o v1.Object) {
	t.Helper()
	want := compact(t, o)
	for name, marshal := range map[string]func(any) ([]byte, error){"a.yaml": MarshalYAML, "a.json": MarshalJSON} {
		text, err := marshal(o)
		if err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
		again, violations := Decode(name, text, Options{})
		if len(again) != 1 {
			t.Fatalf("%s: read back %d objects, errors %v:\n%s", name, len(again), violations, text)
		}
		if got := compact(t, again[0]); !bytes.Equal(got, want) {
			t.Fatalf("%s: read back as\n%s\nexpected\n%s\nwritten\n%s", name, got, want, text)
		}
		for _, f := range violations {
			if !f.IsWarning() {
				t.Fatalf("%s: read back with error %v:\n%s", name, f, text)
			}
		}
	}
}

func compact(t fatal, v any) []byte {
	t.Helper()
	b, err := jsontext.Marshal(v)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	return b
}

// jsonValue draws any JSON value, with what YAML readers stumble over.
func jsonValue(depth int) *rapid.Generator[any] {
	odd := rapid.SampledFrom([]any{
		"y", "no", "On", "~", "null", "", " ", "1e3", "0777", "0x1F", "1_000", "12:30", "2024-01-02", "=", "<<", "- a", "a: b", "#c", "&a", "*a", "!t", "%d", "@", "`",
		"a\nb", "a\nb\n", "\n", "a\n\n", " a\nb", "a \nb", "tab\there", "\tx\ny", "\r\n", "\u0085", "\u2028", "\ufeff", "😀", "😀\nx", "\x00", "\x7f", "'", "\"", "\\", "{a}", "[", "?", ":", "-", "|", ">", "...", "---", "a\n---\nb", ".inf", ".5", "+1",
		json.Number("12345678901234567890123"), json.Number("1.10"), json.Number("-0"), json.Number("1E400"), json.Number("9007199254740993"), json.Number("1e-7"), json.Number("-0.0"),
		true, false, nil,
	})
	leaf := rapid.OneOf(odd, rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int64(), func(i int64) any { return i }), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }))
	if depth == 0 {
		return leaf
	}
	key := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"y", "no", "<<", "1", "true", "null", "", "a b", "a:b", "- x", "? q"}))
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(jsonValue(depth-1), 0, 4), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(key, jsonValue(depth-1), 0, 4), func(m map[string]any) any { return m }))
}

func TestWriteReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := v1.NewObject(v1.KindTool).(*v1.Tool)
		o.Metadata.Name = "t"
		o.Spec.Description = rapid.String().Draw(t, "description")
		o.Spec.MockTemplate = rapid.String().Draw(t, "template")
		raw, err := jsontext.Marshal(jsonValue(3).Draw(t, "value"))
		if err != nil {
			t.Fatalf("marshal: %v", err)
		}
		o.Spec.MockResult = bytes.TrimSpace(raw)
		o.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
		want := compact(t, o)
		text, err := MarshalYAML(o)
		if err != nil {
			t.Fatalf("write: %v", err)
		}
		again, violations := Decode("a.yaml", text, Options{})
		if len(again) != 1 {
			t.Fatalf("errors %v:\n%s", violations, text)
		}
		// -0 is the integer 0; everything else keeps every digit.
		if got := compact(t, again[0]); string(normalZero(got)) != string(normalZero(want)) {
			t.Fatalf("read back as\n%s\nexpected\n%s\nwritten\n%s", got, want, text)
		}
		for _, f := range violations {
			if f.Expected == "quotes" {
				t.Fatalf("written without quotes: %v\n%s", f, text)
			}
		}
	})
}

func normalZero(b []byte) []byte {
	for _, end := range []string{",", "]", "}"} {
		b = bytes.ReplaceAll(b, []byte(":-0"+end), []byte(":0"+end))
		b = bytes.ReplaceAll(b, []byte(",-0"+end), []byte(",0"+end))
		b = bytes.ReplaceAll(b, []byte("[-0"+end), []byte("[0"+end))
	}
	return b
}

// What we write is read the same by sigs.k8s.io/yaml, which follows YAML 1.1 as
// kubectl does, for every value that fits its numbers.
func TestKubernetesReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"y", "No", "on", "0777", "1_000", "12:30", "2024-01-02", "~", "0b1", "=", "<<", "a\nb\n", "0o17", "1e3"}))
		want := map[string]any{text.Draw(t, "key"): []any{text.Draw(t, "value"), float64(rapid.Int32().Draw(t, "number")), rapid.Bool().Draw(t, "bool"), nil}}
		out, err := MarshalYAML(want)
		if err != nil {
			t.Fatalf("write: %v", err)
		}
		var got map[string]any
		if err := sigsyaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("sigs.k8s.io/yaml: %v\n%s", err, out)
		}
		if string(compact(t, got)) != string(compact(t, want)) {
			t.Fatalf("sigs.k8s.io/yaml reads\n%s\nexpected\n%s\nwritten\n%s", compact(t, got), compact(t, want), out)
		}
	})
}
