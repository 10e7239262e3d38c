package validate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toolctl.dev/toolctl/pkg/validate"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := validate.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestCoerce(t *testing.T) {
	const weather = `{"type":"object","properties":{
		"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},"z":{"type":"null"},
		"o":{"type":"object","properties":{"n":{"type":"integer"},"in":{"type":"object","properties":{"b":{"type":"boolean"}}}}},
		"a":{"type":"array","items":{"type":"integer"}},"l":{"type":"array","items":{"type":"string"}},
		"la":{"type":"array"},"lo":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}},
		"u":{"type":"string","enum":["celsius","fahrenheit"]},"c":{"enum":["a","A","b"]},"k":{"enum":[1,2,true,"x"]},
		"d":{"type":"string","format":"date"},"m":{"type":"string","minLength":1},
		"ni":{"type":["integer","null"]},"ai":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"r":{"$ref":"#/definitions/r"},"p":{"allOf":[{"type":"integer"},{"minimum":3}]},"must":{"type":"integer"},
		"t":{"oneOf":[{"type":"object","properties":{"kind":{"const":"cat"},"n":{"type":"integer"}},"required":["kind"]},
		              {"type":"object","properties":{"kind":{"const":"dog"},"n":{"type":"boolean"}},"required":["kind"]}]}
	},"definitions":{"r":{"type":"object","properties":{"n":{"type":"integer"},"r":{"$ref":"#/definitions/r"}},"required":["n"]}},"additionalProperties":false}`
	tests := []struct{ name, doc, want string }{
		{"integer", `{"n":"5"}`, `{"n":5}`},
		{"integer with space", `{"n":" 5\n"}`, `{"n":5}`},
		{"negative integer", `{"n":"-5"}`, `{"n":-5}`},
		{"an integer above 2^53 keeps every digit", `{"n":"9007199254740993"}`, `{"n":9007199254740993}`},
		{"a fraction is no integer", `{"n":"5.5"}`, `{"n":"5.5"}`},
		{"5.0 is one", `{"n":"5.0"}`, `{"n":5.0}`},
		{"no number", `{"n":"five"}`, `{"n":"five"}`},
		{"no JSON number", `{"n":"007"}`, `{"n":"007"}`},
		{"beyond the range", `{"n":"1e400"}`, `{"n":"1e400"}`},
		{"number", `{"x":"5.5"}`, `{"x":5.5}`},
		{"number from an integer", `{"x":"5"}`, `{"x":5}`},
		{"boolean", `{"b":"true"}`, `{"b":true}`},
		{"boolean as Python writes it", `{"b":"False"}`, `{"b":false}`},
		{"yes", `{"b":"Yes"}`, `{"b":true}`},
		{"no", `{"b":" no "}`, `{"b":false}`},
		{"on", `{"b":"ON"}`, `{"b":true}`},
		{"off", `{"b":"off"}`, `{"b":false}`},
		{"1 as a text", `{"b":"1"}`, `{"b":true}`},
		{"0 as a text", `{"b":"0"}`, `{"b":false}`},
		{"the number 1", `{"b":1}`, `{"b":true}`},
		{"the number 0", `{"b":0}`, `{"b":false}`},
		{"a boolean as strconv.ParseBool has it", `{"b":"t"}`, `{"b":true}`},
		{"a boolean as strconv.ParseBool has it", `{"b":"F"}`, `{"b":false}`},
		{"no boolean", `{"b":"y"}`, `{"b":"y"}`},
		{"another number is no boolean", `{"b":2}`, `{"b":2}`},
		{"a boolean is no number", `{"n":true}`, `{"n":true}`},
		{"one value for an array", `{"a":5}`, `{"a":[5]}`},
		{"one value for an array of another type", `{"a":"x"}`, `{"a":"x"}`},
		{"a text is not split", `{"a":"1,2"}`, `{"a":"1,2"}`},
		{"one text for an array of texts", `{"l":"1,2"}`, `{"l":["1,2"]}`},
		{"one value for an array of any values", `{"la":{"n":"1"}}`, `{"la":[{"n":"1"}]}`},
		{"one object for an array of objects", `{"lo":{"n":"1"}}`, `{"lo":[{"n":1}]}`},
		{"null is no item", `{"r":{"n":1},"must":1,"l":null}`, `{"r":{"n":1},"must":1}`},
		{"enum with space around it", `{"u":" Celsius\n"}`, `{"u":"celsius"}`},
		{"enum with space, one of two in its own case", `{"c":" A "}`, `{"c":"A"}`},
		{"a number stays a number", `{"s":5}`, `{"s":5}`},
		{"a string stays a string", `{"s":"5"}`, `{"s":"5"}`},
		{"an empty string stays where it is taken", `{"s":""}`, `{"s":""}`},
		{"JSON text for an object", `{"o":"{\"n\": 1}"}`, `{"o":{"n":1}}`},
		{"inside a JSON text too", `{"o":"{\"n\": \"1\", \"in\": \"{\\\"b\\\": \\\"true\\\"}\"}"}`, `{"o":{"n":1,"in":{"b":true}}}`},
		{"JSON text of another type", `{"o":"[1]"}`, `{"o":"[1]"}`},
		{"no JSON text", `{"o":"{n:1}"}`, `{"o":"{n:1}"}`},
		{"JSON text for an array", `{"a":"[1,\"2\"]"}`, `{"a":[1,2]}`},
		{"items", `{"a":["1",2,"x","3"]}`, `{"a":[1,2,"x",3]}`},
		{"null for an optional property", `{"n":null,"s":"x"}`, `{"s":"x"}`},
		{"nothing for an optional property", `{"n":"","d":"","m":"","u":"","o":""}`, `{}`},
		{"null where null is taken", `{"ni":null,"ai":null,"z":null}`, `{"ni":null,"ai":null,"z":null}`},
		{"null for a required property", `{"r":{"n":null}}`, `{"r":{"n":null}}`},
		{"nothing for a required property", `{"r":{"n":""}}`, `{"r":{"n":""}}`},
		{"null item", `{"a":[null]}`, `{"a":[null]}`},
		{"null for an unknown property", `{"nope":null}`, `{"nope":null}`},
		{"null as text", `{"ni":"null","z":"null"}`, `{"ni":null,"z":null}`},
		{"enum in another case", `{"u":"CELSIUS"}`, `{"u":"celsius"}`},
		{"enum in a case of two members", `{"c":"B"}`, `{"c":"b"}`},
		{"enum that is not clear", `{"u":"cel"}`, `{"u":"cel"}`},
		{"enum of numbers", `{"k":"2"}`, `{"k":2}`},
		{"enum of booleans", `{"k":"true"}`, `{"k":true}`},
		{"types", `{"ni":"5"}`, `{"ni":5}`},
		{"anyOf", `{"ai":"5"}`, `{"ai":5}`},
		{"through references", `{"r":{"n":"1","r":{"n":"2","r":"{\"n\":\"3\"}"}}}`, `{"r":{"n":1,"r":{"n":2,"r":{"n":3}}}}`},
		{"allOf", `{"p":"5"}`, `{"p":5}`},
		{"a bound is left to validation", `{"p":"1"}`, `{"p":1}`},
		{"oneOf by its tag", `{"t":{"kind":"dog","n":"true"}}`, `{"t":{"kind":"dog","n":true}}`},
		{"oneOf, the other branch", `{"t":{"kind":"cat","n":"7"}}`, `{"t":{"kind":"cat","n":7}}`},
		{"each by itself", `{"n":"x","x":"1.5","b":"nope","a":["y","2"]}`, `{"n":"x","x":1.5,"b":"nope","a":["y",2]}`},
		{"the document itself", `"{\"n\":\"5\"}"`, `{"n":5}`},
		{"valid", `{"n":5,"u":"celsius","s":"null"}`, `{"n":5,"u":"celsius","s":"null"}`},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				s := newSchema(t, weather, draft)
				doc, before, want := decode(t, test.doc), decode(t, test.doc), decode(t, test.want)
				got, changed := s.Coerce(doc)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if changed != !cmp.Equal(before, want) {
					t.Errorf("changed: %t", changed)
				}
				if diff := cmp.Diff(before, doc); diff != "" {
					t.Errorf("the caller's document changed: %s", diff)
				}
				again, changed := s.Coerce(got)
				if changed {
					t.Errorf("changed again: %v", again)
				}
			})
		}
	}
}

// TestCoerceContradiction: where no change helps, none is made.
func TestCoerceContradiction(t *testing.T) {
	for _, schema := range []string{
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`, `{"properties":{"a":{"allOf":[{"type":"integer"},{"enum":["5"]}]}}}`,
		`{"properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"properties":{"a":{"not":{"type":["null","integer"]},"type":"integer"}}}`,
	} {
		for _, doc := range []string{`"5"`, `{"a":"5"}`, `{"a":null}`, `{"a":""}`} {
			s := newSchema(t, schema, validate.Draft2020)
			once, _ := s.Coerce(decode(t, doc))
			if twice, changed := s.Coerce(once); changed {
				t.Errorf("%s: %s: %v became %v", schema, doc, once, twice)
			}
		}
	}
}

// TestCheckWithoutCoercion leaves the document alone.
func TestCheckWithoutCoercion(t *testing.T) {
	s := newSchema(t, `{"type":"integer"}`, validate.Draft2020)
	fixed, changed, violations, err := s.Check("5", false)
	if fixed != any("5") || changed || len(violations) != 1 || err != nil {
		t.Error(fixed, changed, violations, err)
	}
}

// TestCoerceDoesNotLendTheSchema: changing the coerced document must not change the schema.
func TestCoerceDoesNotLendTheSchema(t *testing.T) {
	s := newSchema(t, `{"properties":{"a":{"enum":[{"k":[1]}]}}}`, validate.Draft2020)
	doc := decode(t, `{"a":"{\"k\":[1]}"}`)
	fixed, changed := s.Coerce(doc)
	if !changed {
		t.Fatal("not coerced")
	}
	fixed.(map[string]any)["a"].(map[string]any)["k"].([]any)[0] = "broken"
	if fixed, changed := s.Coerce(doc); !changed || !cmp.Equal(fixed, decode(t, `{"a":{"k":[1]}}`)) {
		t.Errorf("got %v", fixed)
	}
}

// genSchema draws small schemas with the keywords that tools use.
func genSchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{}
		types := []string{"integer", "number", "boolean", "string", "null"}
		if depth > 0 {
			types = append(types, "object", "array", "object")
		}
		switch rapid.IntRange(0, 9).Draw(t, "shape") {
		case 0:
			s["enum"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"a", "A", "bee", json.Number("1"), json.Number("2"), true, nil, "5", ""}), 1, 4, func(v any) string { return fmt.Sprintf("%T%v", v, v) }).Draw(t, "enum")
		case 1:
			if depth > 0 {
				kw := rapid.SampledFrom([]string{"anyOf", "oneOf", "allOf"}).Draw(t, "kw")
				var branches []any
				for range rapid.IntRange(1, 3).Draw(t, "n") {
					branches = append(branches, genSchema(depth-1).Draw(t, "branch"))
				}
				s[kw] = branches
				break
			}
			fallthrough
		case 2:
			s["type"] = []any{rapid.SampledFrom(types).Draw(t, "t1"), "null"}
			if s["type"].([]any)[0] == "null" {
				s["type"] = "null"
			}
		default:
			s["type"] = rapid.SampledFrom(types).Draw(t, "type")
		}
		switch s["type"] {
		case "object":
			props := map[string]any{}
			var required []any
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, name) {
					props[name] = genSchema(depth-1).Draw(t, "prop")
					if rapid.IntRange(0, 2).Draw(t, "required") == 0 {
						required = append(required, name)
					}
				}
			}
			s["properties"] = props
			if len(required) > 0 {
				s["required"] = required
			}
			if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
				s["additionalProperties"] = false
			}
		case "array":
			s["items"] = genSchema(depth-1).Draw(t, "items")
		case "string":
			if rapid.Bool().Draw(t, "bounded") {
				s["minLength"] = json.Number("1")
			}
		case "integer":
			if rapid.Bool().Draw(t, "bounded") {
				s["maximum"] = json.Number("3")
			}
		}
		return s
	})
}

func genDoc(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		leaf := rapid.SampledFrom([]any{nil, true, false, "", "5", "2", "true", "null", "a", "BEE", "x", `{"a":"1"}`, `["1",2]`, "1.5",
			json.Number("1"), json.Number("2"), json.Number("5.5"), json.Number("9007199254740993")})
		if depth == 0 {
			return leaf.Draw(t, "leaf")
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return leaf.Draw(t, "leaf")
		case 1:
			items := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				items = append(items, genDoc(depth-1).Draw(t, "item"))
			}
			return items
		}
		obj := map[string]any{}
		for _, name := range []string{"a", "b", "c", "d"} {
			if rapid.Bool().Draw(t, name) {
				obj[name] = genDoc(depth-1).Draw(t, "member")
			}
		}
		return obj
	})
}

// TestCoerceProperties: a valid document is never changed, a coerced one is never
// worse, coercing twice is coercing once, and the caller's document stays.
func TestCoerceProperties(t *testing.T) {
	cache := validate.NewCache(validate.Options{})
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(genSchema(3).Draw(t, "schema"))
		if err != nil {
			t.Fatal(err)
		}
		doc := genDoc(3).Draw(t, "doc")
		before, _ := json.Marshal(doc)
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			s := cache.Schema(raw, draft)
			plain, err := s.Validate(doc)
			if err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			fixed, changed, violations, err := s.Check(doc, true)
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := json.Marshal(doc); string(after) != string(before) {
				t.Fatalf("%s: the caller's document changed from %s to %s", raw, before, after)
			}
			if len(plain) == 0 && (changed || len(violations) > 0) {
				t.Fatalf("%s: valid %s became %v with %v", raw, before, fixed, violations)
			}
			if again, err := s.Validate(fixed); err != nil || len(again) != len(violations) {
				t.Fatalf("%s: %s: %v was reported for the coerced document, which has %v", raw, before, violations, again)
			}
			if twice, changed := s.Coerce(fixed); changed {
				t.Fatalf("%s: %s became %v, then %v", raw, before, fixed, twice)
			}
		}
	})
}

// TestEnginesAgree: the two engines give one verdict on what tools use.
func TestEnginesAgree(t *testing.T) {
	cache := validate.NewCache(validate.Options{})
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(genSchema(3).Draw(t, "schema"))
		if err != nil {
			t.Fatal(err)
		}
		doc := genDoc(3).Draw(t, "doc")
		older, err1 := cache.Schema(raw, validate.Draft7).Validate(doc)
		newer, err2 := cache.Schema(raw, validate.Draft2020).Validate(doc)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if (len(older) == 0) != (len(newer) == 0) {
			t.Fatalf("%s: %v: draft-07 finds %v, 2020-12 finds %v", raw, doc, older, newer)
		}
	})
}

// FuzzCompileAndValidate: no schema and no document may panic, hang or go unanswered.
func FuzzCompileAndValidate(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"$ref":"#"}`, `1`}, {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1}}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"pattern":"^(?!a)"},{"enum":[1,"x"]}]}`, `"b"`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/","$ref":"#/definitions/a","definitions":{"a":{"format":"regex"}}}`, `"["`},
		{`{"$id":"http://x/a","$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`, `{"b":1e5}`},
		{`{"multipleOf":1e-300,"uniqueItems":true,"maxLength":9007199254740991}`, `[1,[2],{"a":null}]`},
		{`{"default":{"id":"#/definitions/a","$ref":"#/definitions/a"},"items":{"$ref":"#/x/y"},"x":{"y":false}}`, `[1]`},
		{`{"properties":{"$ref":{"type":"string"},"const":{"$ref":"#/definitions/const"}},"definitions":{"const":true}}`, `{"$ref":5}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	cache := validate.NewCache(validate.Options{})
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		for _, draft := range []validate.Draft{validate.Draft4, validate.Draft7, validate.Draft2019, validate.Draft2020} {
			s := cache.Schema(schema, draft)
			if err := s.Compile(); err != nil {
				if strings.Contains(err.Error(), validate.EngineFailed) {
					t.Fatalf("%s: %v", schema, err)
				}
				continue
			}
			violations, err := s.ValidateJSON(doc)
			if err != nil {
				t.Fatalf("%s: %s: %v", schema, doc, err)
			}
			for _, f := range violations {
				if f.Message == "" || len(f.Got) > 1000 || len(f.Message) > 10_000 {
					t.Fatalf("%s: %s: %+v", schema, doc, f)
				}
			}
		}
	})
}

// FuzzCoerce: coercing never breaks a valid document, never touches the caller's, and is done at once.
func FuzzCoerce(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"integer"},"b":{"enum":["x","Y"]}},"required":["a"]}`), []byte(`{"a":"5","b":"y"}`))
	f.Add([]byte(`{"anyOf":[{"type":"object","properties":{"a":{"type":"array","items":{"type":"boolean"}}}},{"type":"null"}]}`), []byte(`"{\"a\":\"[\\\"true\\\"]\"}"`))
	f.Add([]byte(`{"properties":{"a":{"type":"string","format":"date"}},"minProperties":1}`), []byte(`{"a":""}`))
	cache := validate.NewCache(validate.Options{})
	f.Fuzz(func(t *testing.T, schema, raw []byte) {
		doc, err := validate.Decode(raw)
		if err != nil {
			return
		}
		before, _ := json.Marshal(doc)
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			s := cache.Schema(schema, draft)
			if s.Compile() != nil {
				continue
			}
			plain, err := s.Validate(doc)
			if err != nil {
				t.Fatal(err)
			}
			fixed, changed, violations, err := s.Check(doc, true)
			if err != nil {
				t.Fatal(err)
			}
			if len(plain) == 0 && (changed || len(violations) > 0) {
				t.Fatalf("%s: valid %s became %v", schema, raw, fixed)
			}
			if after, _ := json.Marshal(doc); string(after) != string(before) {
				t.Fatalf("%s: the caller's document changed from %s to %s", schema, before, after)
			}
		}
	})
}
