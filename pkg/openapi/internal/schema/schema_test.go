package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
)

type fixture struct {
	set      *doc.Set
	conv     *schema.Converter
	warnings []string
}

func newFixture(t testing.TB, text string, v30 bool) *fixture {
	t.Helper()
	set, err := doc.NewSet([]byte(text), nil, "doc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{set: set}
	f.conv = schema.New(set, v30, func(at doc.Location, m string) { f.warnings = append(f.warnings, at.Pointer+": "+m) })
	return f
}

func (f *fixture) convert(t testing.TB, pointer string, dir schema.Direction) *schema.Fragment {
	t.Helper()
	at, node, err := f.set.Resolve(doc.Location{File: f.set.Main}, "#"+pointer)
	if err != nil {
		t.Fatal(err)
	}
	return f.conv.Convert(at, node, dir)
}

const (
	in  = schema.Request
	out = schema.Response
)

func TestConvert(t *testing.T) {
	tests := []struct {
		name string
		v31  bool
		dir  schema.Direction
		from string
		want string
		warn string
	}{
		{name: "nullable type", from: "{type: string, nullable: true}", want: `{"type":["string","null"]}`},
		{name: "nullable enum", from: "{type: string, enum: [a], nullable: true}", want: `{"type":["string","null"],"enum":["a",null]}`},
		{name: "nullable enum that has null", from: "{type: string, enum: [a, null], nullable: true}", want: `{"type":["string","null"],"enum":["a",null]}`},
		{name: "nullable without a type", from: "{nullable: true, maxLength: 3}", want: `{"maxLength":3}`},
		{name: "nullable choice", from: "{nullable: true, title: T, type: object, oneOf: [{type: object}]}", want: `{"title":"T","anyOf":[{"type":"object","oneOf":[{"type":"object"}]},{"type":"null"}]}`},
		{name: "nullable const", v31: true, from: "{nullable: true, const: 1}", want: `{"enum":[1,null]}`},
		{name: "not nullable", from: "{type: string, nullable: false}", want: `{"type":"string"}`},
		{name: "reference beside nullable in 3.0", from: "{$ref: '#/components/schemas/A', nullable: true, description: D, maxLength: 3}", want: `{"description":"D","anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}`},
		{name: "reference with siblings in 3.1", v31: true, from: "{$ref: '#/components/schemas/A', description: D, maxLength: 3, required: [x]}", want: `{"$ref":"#/$defs/A","description":"D","required":["x"],"maxLength":3}`},
		{name: "boolean bounds", from: "{minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false}", want: `{"exclusiveMinimum":1,"maximum":5}`},
		{name: "a boolean bound of nothing", from: "{exclusiveMinimum: true}", want: `{}`},
		{name: "numeric bounds", v31: true, from: "{minimum: 1, exclusiveMinimum: 0.5}", want: `{"exclusiveMinimum":0.5,"minimum":1}`},
		{name: "a bound that is text", from: "{exclusiveMaximum: '5'}", want: `{}`, warn: "exclusiveMaximum must be a number"},
		{name: "example", from: "{example: {nullable: true}}", want: `{"examples":[{"nullable":true}]}`},
		{name: "examples win", v31: true, from: "{example: 1, examples: [2]}", want: `{"examples":[2]}`},
		{name: "what is no constraint is dropped", from: "{type: object, discriminator: {propertyName: p}, xml: {name: n}, externalDocs: {url: u}, x-foo: 1}", want: `{"type":"object"}`},
		{name: "readOnly in a request", dir: in, from: "{required: [id, n], properties: {id: {readOnly: true}, n: {}, viaRef: {$ref: '#/components/schemas/RO'}}}", want: `{"properties":{"n":{}},"required":["n"]}`},
		{name: "readOnly in a response", dir: out, from: "{required: [id], properties: {id: {readOnly: true}}}", want: `{"properties":{"id":{"readOnly":true}},"required":["id"]}`},
		{name: "writeOnly in a response", dir: out, from: "{required: [pw], properties: {pw: {writeOnly: true}}}", want: `{"properties":{"pw":{"writeOnly":true}}}`},
		{name: "writeOnly in a request", dir: in, from: "{required: [pw], properties: {pw: {writeOnly: true}}}", want: `{"properties":{"pw":{"writeOnly":true}},"required":["pw"]}`},
		{name: "readOnly in a part, required in another", dir: in, from: "{allOf: [{properties: {id: {readOnly: true}}}, {required: [id]}]}", want: `{"allOf":[{"properties":{}},{}]}`},
		{name: "a property called properties", from: "{properties: {properties: {type: object, properties: {nullable: {type: boolean, nullable: true}}}}}", want: `{"properties":{"properties":{"type":"object","properties":{"nullable":{"type":["boolean","null"]}}}}}`},
		{name: "booleans", v31: true, from: "{properties: {a: true, b: false}, additionalProperties: false}", want: `{"properties":{"a":true,"b":false},"additionalProperties":false}`},
		{name: "exact numbers", from: "{maximum: 123456789012345678901, multipleOf: 0.10}", want: `{"maximum":123456789012345678901,"multipleOf":0.10}`},
		{name: "counts", from: "{minLength: 1.0, maxItems: -1}", want: `{"minLength":1}`, warn: "maxItems must be a whole number"},
		{name: "multipleOf 0", from: "{multipleOf: 0}", want: `{}`, warn: "multipleOf must be a number above 0"},
		{name: "type names", from: "{type: file}", want: `{}`, warn: "type must be"},
		{name: "a list of one type", v31: true, from: "{type: [string, string]}", want: `{"type":"string"}`},
		{name: "required twice", from: "{required: [b, a, b]}", want: `{"required":["a","b"]}`},
		{name: "required true", from: "{required: true}", want: `{}`, warn: "required must be a list"},
		{name: "items as a list", from: "{items: [{type: string}]}", want: `{"prefixItems":[{"type":"string"}]}`},
		{name: "an empty choice", from: "{oneOf: []}", want: `{}`, warn: "oneOf must be a non-empty list"},
		{name: "lookahead", from: "{pattern: '^(?!x)'}", want: `{"pattern":"^(?!x)"}`},
		{name: "broken pattern", from: "{pattern: '('}", want: `{}`, warn: "pattern must be a regular expression"},
		{name: "pattern properties", v31: true, from: "{patternProperties: {'^a': {nullable: true, type: string}}}", want: `{"patternProperties":{"^a":{"type":["string","null"]}}}`},
		{name: "a schema that is null", from: "{properties: {a: null}}", want: `{"properties":{"a":true}}`, warn: "must be an object or a boolean, got null"},
		{name: "default null", from: "{type: string, default: null}", want: `{"type":"string","default":null}`},
		{name: "data is not a schema", from: "{default: {nullable: true, x-a: 1}, enum: [{$ref: '#/nope'}]}", want: `{"enum":[{"$ref":"#/nope"}],"default":{"nullable":true,"x-a":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.dir == 0 {
				tt.dir = in
			}
			text := "components: {schemas: {A: {type: string}, RO: {readOnly: true}}}\nit: " + tt.from
			f := newFixture(t, text, !tt.v31)
			got := f.convert(t, "/it", tt.dir)
			if diff := cmp.Diff(tt.want, string(schema.Encode(got.Value))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got.Violations) > 0 {
				t.Error(got.Violations)
			}
			if all := strings.Join(f.warnings, "\n"); tt.warn == "" && all != "" || !strings.Contains(all, tt.warn) {
				t.Errorf("warnings: %q, want %q", all, tt.warn)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	const text = `
components:
  schemas:
    Node: {properties: {next: {$ref: '#/components/schemas/Node'}, leaf: {$ref: '#/components/schemas/Node/properties/next'}}}
    Lost: {$ref: '#/components/schemas/Nope'}
    A/B: {type: string}
    A B: {type: number}
one: {$ref: '#/components/schemas/Node'}
lost: {properties: {a: {$ref: '#/components/schemas/Lost'}, b: {$ref: 'http://evil.example/x'}}}
odd: {anyOf: [{$ref: '#/components/schemas/A~1B'}, {$ref: '#/components/schemas/A%20B'}]}
`
	f := newFixture(t, text, true)
	got := f.convert(t, "/one", in)
	defs, cut, violations := f.conv.Defs(got.Refs, in, 1<<20)
	if cut != 0 || len(violations) != 0 {
		t.Fatal(cut, violations)
	}
	if diff := cmp.Diff([]string{"Node"}, got.Refs); diff != "" {
		t.Error(diff)
	}
	if len(defs) != 2 || string(schema.Encode(defs["Node"])) == "{}" {
		t.Errorf("defs: %v", defs)
	}
	got = f.convert(t, "/lost", in)
	_, _, violations = f.conv.Defs(got.Refs, in, 1<<20)
	all := strings.Join(append(got.Violations, violations...), "\n")
	for _, want := range []string{"nothing is fetched", `there is no "Nope"`} {
		if !strings.Contains(all, want) {
			t.Errorf("errors %q: no %q", all, want)
		}
	}
	if refs := f.convert(t, "/odd", in).Refs; len(refs) != 2 || refs[0] == refs[1] {
		t.Errorf("names of odd components: %v", refs)
	}
}

// TestDefsAreBounded: what is farthest from the root accepts anything when all
// together would be too large.
func TestDefsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("components:\n  schemas:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "    S%d: {description: %s, properties: {next: {$ref: '#/components/schemas/S%d'}}}\n", i, strings.Repeat("x", 100), i+1)
	}
	b.WriteString("    S100: {type: string}\nroot: {$ref: '#/components/schemas/S0'}\n")
	f := newFixture(t, b.String(), true)
	defs, cut, _ := f.conv.Defs(f.convert(t, "/root", in).Refs, in, 5000)
	if cut != 1 || len(defs) < 20 || len(defs) > 40 {
		t.Errorf("%d definitions, %d cut", len(defs), cut)
	}
	size := 0
	for name, d := range defs {
		size += len(name) + schema.Size(d)
	}
	if size > 5200 {
		t.Errorf("%d bytes", size)
	}
}

// TestStepsAreBounded: schemas that cost the square of their size are given up.
func TestStepsAreBounded(t *testing.T) {
	props := map[string]any{}
	for i := range 4000 {
		props[fmt.Sprint("p", i)] = map[string]any{"type": "string"}
	}
	all := make([]any, 12000)
	for i := range all {
		all[i] = map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/Base"}}}
	}
	text, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{"Base": map[string]any{"properties": props}}}, "it": map[string]any{"anyOf": all}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, string(text), true)
	if got := f.convert(t, "/it", in); len(got.Violations) == 0 || !strings.Contains(got.Violations[0], "the document refers to more than") {
		t.Errorf("errors: %v", got.Violations)
	}
}

func TestFollow(t *testing.T) {
	const text = `
a: {$ref: '#/b'}
b: {$ref: '#/c'}
c: {type: string}
loop: {$ref: '#/loop'}
beside: {$ref: '#/c', minLength: 1}
`
	tests := []struct {
		name, from string
		v30        bool
		at, err    string
	}{
		{name: "chain", from: "/a", v30: true, at: "/c"},
		{name: "loop", from: "/loop", v30: true, err: "a chain of more than 64"},
		{name: "siblings in 3.0", from: "/beside", v30: true, at: "/c"},
		{name: "siblings in 3.1", from: "/beside", at: "/beside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, text, tt.v30)
			at, node, err := f.set.Resolve(doc.Location{File: f.set.Main}, "#"+tt.from)
			if err != nil {
				t.Fatal(err)
			}
			at, _, err = f.conv.Follow(at, node)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || at.Pointer != tt.at {
				t.Errorf("at %s, %v", at, err)
			}
		})
	}
}
