package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shapes are templates in which .s and .k are strings, .n is a number and .o any JSON value. Each renders them in
// different places: inside strings, outside, as a key, in loops, branches and calls.
var shapes = []string{
	`{"a": "{{.s}}", "b": "x{{.s}}y{{.n}}", "c": [1]}`,
	`{"a": {{.s}}, "b": {{.n}}, "c": {"d": {{json .s}}}}`,
	`{"{{.k}}": 1, "b": {"{{.k}}{{.n}}": "{{.s}}"}}`,
	`{ {{.k}}: {{upper .s}}, "b": {{print .s}}, "c": {{printf "%s-%v" .s .n}}, "d": {{trim .s}} }`,
	`[{{range $i, $e := .l}}{{if $i}}, {{end}}{"n": "{{$e}}", "v": {{$e}}}{{end}}]`,
	`{"a": "{{if eq .s "x"}}yes{{else}}no{{end}}{{with .s}}{{.}}{{end}}", "b": "{{default "d" .s}}"}`,
	`{{define "v"}}{{.}}{{end}}{"a": "{{template "v" .s}}", "b": {{template "v" .s}}, "c": "\u00e9{{.s}}\\{{.s}}"}`,
	`{{$x := .s}}{"a": "{{$x}}", "b": "{{json $x}}", "c": "{{html .s}}{{js .s}}{{urlquery .s}}", "d": "{{.l}}"}`,
	`{"a": "{{join .s .l}}", "b": {{join "," .l}}, "c": "{{printf "%q %x" .s .s}}", "d": {{printf "%.3f" .n}}}`,
}

// skeleton describes the keys, nesting and types of a JSON value. Keys are sorted and numbered.
func skeleton(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			parts = append(parts, skeleton(e))
		}
		slices.Sort(parts)
		return fmt.Sprintf("{%d:%s}", len(v), strings.Join(parts, ","))
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = skeleton(e)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return "s"
	case float64, json.Number:
		return "n"
	}
	return fmt.Sprint(v)
}

func FuzzJSONTemplate(f *testing.F) {
	for i := range shapes {
		f.Add(i, "plain", "key", 1.5, "item")
		f.Add(i, "plain", "b", 1.5, "item")
		f.Add(i, `","x":"`, `k":1,"`, -1e300, `}]`)
		f.Add(i, "\\", "\x00\u2028", 0.0, "5")
		f.Add(i, "\xff'j'\x00\x00\x00\x00{}", "null", 12345678901.0, "true")
	}
	parsed := make([]*JSON, len(shapes))
	plain := make([]string, len(shapes))
	args := func(s, k string, n float64, e string) map[string]any {
		return map[string]any{"s": s, "k": k, "n": n, "l": []any{e, s}}
	}
	for i, src := range shapes {
		var err error
		if parsed[i], err = ParseJSON("m", src); err != nil {
			f.Fatal(err)
		}
		out, err := parsed[i].Render(f.Context(), args("x", "k", 1, "e"))
		if err != nil {
			f.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(out, &doc); err != nil {
			f.Fatal(err)
		}
		plain[i] = skeleton(doc)
	}
	f.Fuzz(func(t *testing.T, i int, s, k string, n float64, e string) {
		if n != n || n > 1e308 || n < -1e308 {
			t.Skip("no JSON number")
		}
		i = int(uint(i) % uint(len(shapes)))
		out, err := parsed[i].Render(t.Context(), args(s, k, n, e))
		if err != nil {
			if failed, ok := errors.AsType[*Error](err); ok && failed.Message == errDuplicateKey.Error() {
				return
			}
			t.Fatalf("%s: %v", shapes[i], err)
		}
		var doc any
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%s: %v\n%s", shapes[i], err, out)
		}
		if got := skeleton(doc); got != plain[i] {
			t.Errorf("%s\nrendered %s\nshape %s, want %s", shapes[i], out, got, plain[i])
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range shapes {
		f.Add(s, `{"s": "a", "k": "b", "n": 1, "l": [1, null]}`)
	}
	f.Add(`{{range 99999999}}{{range .l}}{{printf "%999d" 1}}{{end}}{{end}}`, `{"l": [1]}`)
	f.Add(`{{block "x" .}}{{break}}{{end}}{{define ""}}{{.x.y.z}}{{end}}`, `{"x": {"y": 1e400}}`)
	f.Add(`{{$x := .}}{{with $y := $x.s}}{{call .}}{{slice . 1 2}}{{index . 0}}{{len .}}{{end}}`, `{"s": "abc"}`)
	f.Fuzz(func(t *testing.T, src, args string) {
		var data map[string]any
		if json.Unmarshal([]byte(args), &data) != nil {
			data = nil
		}
		text, err := ParseText("m", src, Options{})
		tmpl, errJSON := ParseJSON("m", src)
		if (err == nil) != (errJSON == nil) {
			t.Fatalf("%v, but %v", err, errJSON)
		}
		if err != nil {
			checkError(t, err)
			return
		}
		text.Fields()
		if out, err := text.Render(t.Context(), data); err != nil {
			checkError(t, err)
		} else if len(out) > MaxOutput || strings.Contains(out, "<no value>") && !strings.Contains(src+args, "no value") {
			t.Errorf("output %.200q", out)
		}
		if out, err := tmpl.Render(t.Context(), data); err != nil {
			checkError(t, err)
		} else if !json.Valid(out) {
			t.Errorf("not JSON: %.200q", out)
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var violation *Error
	if !errors.As(err, &violation) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
	for _, leak := range []string{"panicked", "runtime error", escapeFunc, "executing \"", "interface {}", "reflect"} {
		if strings.Contains(violation.Message, leak) {
			t.Errorf("the message speaks of the inside (%s): %s", leak, violation.Message)
		}
	}
}
