package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// sent returns the values that a browser sends for an unchanged form.
func sent(f *field, into url.Values) url.Values {
	switch f.Kind {
	case kindObject, kindList:
		if f.Open {
			into.Set("p:"+f.Name, "1")
			into.Set("n:"+f.Name, fmt.Sprint(f.Count))
		}
	case kindFixed:
		if f.Required || f.Open {
			into.Set("p:"+f.Name, "1")
		}
	case kindChoice, kindEnum:
		name := "v:"
		if f.Kind == kindChoice {
			name = "c:"
		}
		into.Set(name+f.Name, "")
		for _, o := range f.Options {
			if o.Selected {
				into.Set(name+f.Name, o.Value)
			}
		}
	case kindJSON:
		into.Set("j:"+f.Name, "1")
		into.Set("v:"+f.Name, f.Text)
	default:
		into.Set("v:"+f.Name, f.Text)
		if f.Empty {
			into.Set("e:"+f.Name, "1")
		}
	}
	if f.Null {
		into.Set("z:"+f.Name, "1")
	}
	if f.Keyed {
		into.Set("k:"+f.Name, f.Key)
	}
	for _, one := range f.Fields {
		sent(one, into)
	}
	return into
}

// plain converts a value with encoding/json, for comparisons.
func plain(t *testing.T, v any) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(jsonText(v)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func roundTrip(t *testing.T, raw json.RawMessage, args json.RawMessage) *field {
	t.Helper()
	s, err := readSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	value, err := decode(args)
	if err != nil {
		t.Fatal(err)
	}
	root := drawForm(s, value, nil)
	if got := settled(collect(s, sent(root, url.Values{}), "")); !reflect.DeepEqual(plain(t, got), plain(t, value)) {
		t.Errorf("schema %s:\n sent %s\n want %s", raw, jsonText(got), jsonText(value))
	}
	return root
}

// TestFormSendsWhatWasMeant checks that forms send the intended arguments, for typical schemas.
func TestFormSendsWhatWasMeant(t *testing.T) {
	for _, tt := range []struct{ name, schema, args string }{
		{"simple", `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"},"b":{"type":"boolean"}},"required":["a"]}`, `{"a":"x","n":12345678901234567890,"b":false}`},
		{"left out", `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["number","null"]}}}`, `{}`},
		{"null", `{"type":"object","properties":{"n":{"type":["number","null"]}}}`, `{"n":null}`},
		{"empty text", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":""}`},
		{"lines", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"\n one\n two "}`},
		{"nested", `{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}}}}}}`, `{"o":{"l":[{"x":1.50},{},{"x":-2e10}]}}`},
		{"empty object and list", `{"type":"object","properties":{"o":{"type":"object","properties":{"x":{}}},"l":{"type":"array"}}}`, `{"o":{},"l":[]}`},
		{"enum", `{"type":"object","properties":{"e":{"enum":["a",1,null,{"x":1}]}}}`, `{"e":{"x":1}}`},
		{"const", `{"type":"object","properties":{"k":{"const":"pay"},"v":{"type":"string"}},"required":["k"]}`, `{"k":"pay","v":"x"}`},
		{"const left out", `{"type":"object","properties":{"k":{"const":"pay"}}}`, `{}`},
		{"one of", `{"type":"object","properties":{"b":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"number"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k"]},{"type":"string"}]}}}`, `{"b":{"k":"b","y":"z"}}`},
		{"one of titles", `{"type":"object","properties":{"b":{"oneOf":[{"const":1,"title":"low"},{"const":2,"title":"high"}]}}}`, `{"b":2}`},
		{"any of types", `{"type":"object","properties":{"b":{"type":["string","integer","object"]}}}`, `{"b":{"x":1}}`},
		{"free keys", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a/b":1,"~c":2," ":3}`},
		{"keys that are not named", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x","other":[1,{"y":null}]}`},
		{"ref", `{"type":"object","properties":{"t":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`, `{"t":{"v":1,"kids":[{"v":2,"kids":[]},{"kids":[{"v":3}]}]}}`},
		{"all of", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}}}]}`, `{"a":"x","b":2}`},
		{"tuple", `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`, `{"p":[1,"x"]}`},
		{"wrong type stays", `{"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array"}}}`, `{"n":{"x":1},"l":"text"}`},
		{"deep", deepSchema(30), `{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{"d":{}}}}}}}}}}}}}}}}`},
		{"any", `{"type":"object","properties":{"x":true,"y":{}}}`, `{"x":[1,2],"y":"text"}`},
		{"hostile keys", `{"type":"object","properties":{"<script>":{"type":"string"},"a~c":{"type":"string"},"~k0":{"type":"string"},"":{"type":"string"}}}`, `{"<script>":"1","a~c":"2","~k0":"3","":"4"}`},
	} {
		t.Run(tt.name, func(t *testing.T) { roundTrip(t, json.RawMessage(tt.schema), json.RawMessage(tt.args)) })
	}
}

func deepSchema(n int) string {
	if n == 0 {
		return `{"type":"object"}`
	}
	return `{"type":"object","properties":{"d":` + deepSchema(n-1) + `}}`
}

// TestFormsOfTheManifests checks that the examples of the manifests are drawn as fields and sent unchanged.
func TestFormsOfTheManifests(t *testing.T) {
	set, err := manifest.Load(t.Context(), []string{"../../manifests"}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tools, examples := 0, 0
	for _, o := range set.Objects {
		tool, ok := o.(*v1.Tool)
		if !ok {
			continue
		}
		tools++
		if root := roundTrip(t, tool.Spec.InputSchema, json.RawMessage("{}")); root.Kind != kindObject {
			t.Errorf("%s is drawn as %s", tool.Metadata.Name, root.Kind)
		}
		for _, e := range tool.Spec.Examples {
			examples++
			if len(e.Args) > 0 {
				roundTrip(t, tool.Spec.InputSchema, e.Args)
			}
		}
	}
	if tools < 5 || examples == 0 {
		t.Errorf("%d tools with %d examples", tools, examples)
	}
}

// TestFormsOfManySchemas checks that nearly all object schemas are drawn as fields, and that no form is blank.
func TestFormsOfManySchemas(t *testing.T) {
	file := os.Getenv("TOOLCTL_SCHEMA_CHANGES")
	if file == "" {
		file = filepath.Join("..", "..", "..", "shared", "schema-changes.json")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Skip("no file of schemas: name one with TOOLCTL_SCHEMA_CHANGES")
	}
	var all struct {
		Pairs []struct {
			ID            string          `json:"id"`
			Old           json.RawMessage `json:"old"`
			New           json.RawMessage `json:"new"`
			InputWitness  json.RawMessage `json:"input_witness"`
			OutputWitness json.RawMessage `json:"output_witness"`
		} `json:"pairs"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	roots, drawn := 0, 0
	for _, p := range all.Pairs {
		for i, schema := range []json.RawMessage{p.Old, p.New} {
			t.Run(fmt.Sprint(p.ID, i), func(t *testing.T) {
				s, err := readSchema(schema)
				if err != nil {
					t.Fatal(err)
				}
				begin := initial(s, 0)
				if _, ok := begin.(*object); !ok {
					begin = newObject()
				}
				root := drawForm(s, begin, nil)
				shown, asJSON := count(root)
				if shown+asJSON == 0 && root.Adds == "" && root.Hint == "" {
					t.Errorf("a blank form for %s", schema)
				}
				if s.at != nil && len(s.types()) > 0 && s.types()[0] == "object" {
					roots++
					if root.Kind != kindJSON && asJSON == 0 {
						drawn++
					} else {
						t.Logf("JSON in the form of %s", schema)
					}
				}
				for _, w := range []json.RawMessage{p.InputWitness, p.OutputWitness} {
					if len(w) > 0 && w[0] == '{' {
						roundTrip(t, schema, w)
					}
				}
			})
		}
	}
	t.Logf("%d of %d object roots are drawn as fields alone", drawn, roots)
	if drawn*100 < roots*90 {
		t.Errorf("%d of %d object roots are drawn as fields alone, and 90 %% are asked for", drawn, roots)
	}
}

// count returns the number of controls in a form, and the number of those that take JSON.
func count(f *field) (shown, asJSON int) {
	switch {
	case f.Kind == kindJSON:
		asJSON++
	case f.Kind != kindObject || f.Pointer != "":
		shown++
	}
	for _, one := range f.Fields {
		a, b := count(one)
		shown, asJSON = shown+a, asJSON+b
	}
	return shown, asJSON
}

func TestFormChanges(t *testing.T) {
	s, err := readSchema([]byte(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer","default":7}}}},"o":{"type":"object","properties":{"y":{"type":"string"}}},"m":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value := initial(s, 0)
	for _, step := range []struct{ action, want string }{
		{"open /l", `{"l":[{"x":7}]}`},
		{"add /l", `{"l":[{"x":7},{"x":7}]}`},
		{"remove /l/0", `{"l":[{"x":7}]}`},
		{"open /o", `{"l":[{"x":7}],"o":{}}`},
		{"open /m", `{"l":[{"x":7}],"o":{},"m":{}}`},
		{"add /m", `{"l":[{"x":7}],"o":{},"m":{"key1":[]}}`},
		{"add /m/~k0", `{"l":[{"x":7}],"o":{},"m":{"key1":[]}}`},
		{"remove /m/~k0", `{"l":[{"x":7}],"o":{},"m":{}}`},
		{"remove /l", `{"o":{},"m":{}}`},
		{"remove /nothing", `{"o":{},"m":{}}`},
		{"add /l/99", `{"o":{},"m":{},"l":null}`},
	} {
		posted := sent(drawForm(s, value, nil), url.Values{})
		value = collect(s, posted, step.action)
		if step.action == "add /l/99" { // an action without a button has no effect
			continue
		}
		if !reflect.DeepEqual(plain(t, settled(value)), plain(t, json.RawMessage(step.want))) {
			t.Fatalf("%s: got %s, want %s", step.action, jsonText(settled(value)), step.want)
		}
	}
}

// TestFormBegins checks that a new form has its fields in the order of the schema, with the required parts open.
func TestFormBegins(t *testing.T) {
	s, err := readSchema([]byte(`{"type":"object","properties":{
		"z":{"type":"string"},
		"customer":{"type":"object","properties":{"name":{"type":"string"},"at":{"type":"object","properties":{"city":{"type":"string"}}}},"required":["at"]},
		"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"n":{"type":"integer","default":1}}}},
		"tags":{"type":"array","items":{"type":"string"}},
		"later":{"type":"array","items":{"type":"string"}},
		"a":{"type":"number"}},"allOf":[{"properties":{"y":{"type":"string"}}},{"properties":{"x":{"type":"string"}}}],
		"required":["customer","lines","tags","a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	value := begin(s)
	root := drawForm(s, value, nil)
	var names []string
	for _, f := range root.Fields {
		names = append(names, f.Label)
	}
	if want := []string{"y", "x", "z", "customer", "lines", "tags", "later", "a"}; !slices.Equal(names, want) {
		t.Errorf("fields %q, want %q", names, want)
	}
	field := func(i int) *field { return root.Fields[i] }
	if at := field(3).Fields[1]; !at.Open || len(at.Fields) != 1 {
		t.Errorf("a required object is not open: %+v", at)
	}
	if lines := field(4); !lines.Open || len(lines.Fields) != 1 || lines.Fields[0].Label != "Item 1" || len(lines.Fields[0].Fields) != 2 {
		t.Errorf("the first item of a required list is not open: %+v", lines)
	}
	if tags := field(5); len(tags.Fields) != 1 || field(6).Open {
		t.Errorf("%+v %+v", tags, field(6))
	}
	// An empty item is not sent.
	const want = `{"customer":{"at":{}},"lines":[{"n":1}],"tags":[]}`
	if got := jsonText(settled(value)); got != want {
		t.Errorf("begins with %s, want %s", got, want)
	}
	posted := sent(root, url.Values{})
	if got := jsonText(settled(collect(s, posted, ""))); got != want {
		t.Errorf("sends %s, want %s", got, want)
	}
	posted = sent(drawForm(s, collect(s, posted, "add /tags"), nil), url.Values{})
	posted.Set("v:/tags/1", "wool")
	again := drawForm(s, collect(s, posted, ""), posted)
	if got := jsonText(settled(collect(s, posted, ""))); got != `{"customer":{"at":{}},"lines":[{"n":1}],"tags":["wool"]}` {
		t.Errorf("sends %s", got)
	}
	place(again, []v1.Violation{{Path: "/tags/0", Message: "wrong"}})
	if items := again.Fields[5].Fields; len(items) != 2 || len(items[0].Violations) != 0 || len(items[1].Violations) != 1 {
		t.Errorf("the violation of the only item that is sent is not at its field")
	}
}

// TestTextControls checks that a text control has one line, unless the schema or a value requires more.
func TestTextControls(t *testing.T) {
	for _, tt := range []struct{ schema, args, want string }{
		{`{"type":"string"}`, `{}`, "text"},
		{`{"type":"string"}`, `{"a":" x "}`, "text"},
		{`{"type":"string"}`, `{"a":"one\ntwo"}`, ""},
		{`{"type":"string","maxLength":80}`, `{}`, "text"},
		{`{"type":"string","maxLength":4000}`, `{}`, ""},
		{`{"type":"string","contentMediaType":"text/markdown"}`, `{}`, ""},
		{`{"type":"string","format":"multiline"}`, `{}`, ""},
		{`{"type":"string","format":"textarea"}`, `{}`, ""},
		{`{"type":"string","examples":["a\nb"]}`, `{}`, ""},
		{`{"type":"string","format":"email"}`, `{}`, "email"},
		{`{"type":"string","format":"email"}`, `{"a":" x"}`, "text"},
		{`{"type":"string","format":"date"}`, `{"a":"2026-01-02"}`, "date"},
	} {
		root := roundTrip(t, json.RawMessage(`{"type":"object","properties":{"a":`+tt.schema+`}}`), json.RawMessage(tt.args))
		if got := root.Fields[0].Input; got != tt.want {
			t.Errorf("%s with %s is an input of type %q, want %q", tt.schema, tt.args, got, tt.want)
		}
	}
}

// TestHints checks that a hint describes the format of a text, and a fixed length only once.
func TestHints(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","format":"time"}`:                         "time with its zone, such as 19:30:00Z or 19:30:00+01:00",
		`{"type":"string","format":"email","maxLength":40}`:         "email address, at most 40 characters",
		`{"type":"string","format":"of-our-own"}`:                   "of-our-own",
		`{"type":"string","minLength":3,"maxLength":3}`:             "exactly 3 characters",
		`{"type":"array","minItems":1,"maxItems":1}`:                "exactly 1 item",
		`{"type":"array","minItems":1,"maxItems":8}`:                "at least 1 item, at most 8 items",
		`{"type":"integer","minimum":2,"maximum":2,"multipleOf":2}`: "integer, at least 2, at most 2, a multiple of 2",
	} {
		s, err := readSchema([]byte(`{"type":"object","properties":{"a":` + schema + `},"required":["a"]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := drawForm(s, begin(s), nil).Fields[0].Hint; got != want {
			t.Errorf("the hint of %s is %q, want %q", schema, got, want)
		}
	}
}

// TestNullIsNamed checks that leaving out a value and sending null have different labels.
func TestNullIsNamed(t *testing.T) {
	s, err := readSchema([]byte(`{"type":"object","properties":{"e":{"enum":["a",null]},"c":{"oneOf":[{"type":"string"},{"type":"null"},{"type":"object"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range drawForm(s, newObject(), nil).Fields {
		if !slices.ContainsFunc(f.Options, func(o option) bool { return o.Label == "Send null" }) {
			t.Errorf("options %+v", f.Options)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"oneOf":[{"$ref":"#"},{"allOf":[{"$ref":"#"}]}]}`), []byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := readSchema(raw)
		if err != nil {
			return
		}
		value, err := decode(args)
		if err != nil {
			value = initial(s, 0)
		}
		posted := sent(drawForm(s, value, nil), url.Values{})
		collect(s, posted, "add /a")
		documented(raw)
	})
}
