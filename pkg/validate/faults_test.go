package validate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// lines writes violations as "path: message".
func lines(violations []v1.Violation) []string {
	var out []string
	for _, f := range violations {
		out = append(out, f.Path+": "+f.Message)
	}
	return out
}

func newSchema(t *testing.T, schema string, draft validate.Draft) *validate.Schema {
	t.Helper()
	s := validate.NewCache(validate.Options{}).Schema(json.RawMessage(schema), draft)
	if err := s.Compile(); err != nil {
		t.Fatalf("compile %s: %v", schema, err)
	}
	return s
}

// TestViolations holds both engines to the same paths and the same words.
func TestViolations(t *testing.T) {
	tests := []struct {
		name, schema, doc string
		want              []string
	}{
		{"valid", `{"type":"object"}`, `{}`, nil},
		{"type", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"five"}`, []string{`/n: expected integer, got string "five"`}},
		{"several types", `{"type":["null","integer"]}`, `"x"`, []string{`: expected integer or null, got string "x"`}},
		{"a fraction for an integer", `{"type":"integer"}`, `5.5`, []string{`: expected integer, got number 5.5`}},
		{"5.0 is an integer", `{"type":"integer"}`, `5.0`, nil},
		{"required", `{"required":["city","unit"]}`, `{}`,
			[]string{`/city: required property "city" is missing`, `/unit: required property "unit" is missing`}},
		{"required, nested", `{"properties":{"a/b":{"required":["c~d"]}}}`, `{"a/b":{}}`, []string{`/a~1b/c~0d: required property "c~d" is missing`}},
		{"required, with a near one in an open object", `{"properties":{"s":{"properties":{"on":{}},"required":["on"]}}}`, `{"s":{"onn":1,"x":2}}`,
			[]string{`/s/on: required property "on" is missing; did you mean "onn"?`}},
		{"required, without a name", `{"required":[""]}`, `{"a":1}`, []string{`/: required property "" is missing`}},
		{"required, with a near one that the schema knows", `{"properties":{"id":{},"ids":{}},"required":["id"]}`, `{"ids":1}`, []string{`/id: required property "id" is missing`}},
		{"required, with a near one that is refused itself", `{"properties":{"city":{}},"required":["city"],"additionalProperties":false}`, `{"citty":1}`,
			[]string{`/citty: unknown property "citty"; did you mean "city"?`, `/city: required property "city" is missing`}},
		{"unknown property, near miss", `{"properties":{"location":{},"unit":{}},"additionalProperties":false}`, `{"locaton":1}`,
			[]string{`/locaton: unknown property "locaton"; did you mean "location"?`}},
		{"unknown property, no near one", `{"properties":{"b":{},"a":{}},"additionalProperties":false}`, `{"zzzzzz":1}`,
			[]string{`/zzzzzz: unknown property "zzzzzz": the schema knows "a", "b"`}},
		{"unknown property behind a reference", `{"items":{"$ref":"#/definitions/p"},"definitions":{"p":{"properties":{"height":{}},"additionalProperties":false}}}`,
			`[{},{"heigth":1}]`, []string{`/1/heigth: unknown property "heigth"; did you mean "height"?`}},
		{"enum", `{"enum":["celsius","fahrenheit"]}`, `"kelvin"`, []string{`: expected one of "celsius", "fahrenheit", got string "kelvin"`}},
		{"enum, near miss", `{"enum":["celsius","fahrenheit"]}`, `"celcius"`,
			[]string{`: expected one of "celsius", "fahrenheit", got string "celcius"; did you mean "celsius"?`}},
		{"enum of numbers", `{"enum":[1,2.5,null]}`, `3`, []string{`: expected one of 1, 2.5, null, got number 3`}},
		{"const", `{"const":{"a":1}}`, `[]`, []string{`: expected {"a":1}, got array of 0 items`}},
		{"format", `{"format":"ipv4"}`, `"x"`, []string{`: expected a string in the format "ipv4", got string "x"`}},
		{"pattern", `{"pattern":"^a+$"}`, `"b"`, []string{`: expected a string that matches the pattern "^a+$", got string "b"`}},
		{"minLength counts characters", `{"minLength":3}`, `"éé"`, []string{`: expected a string of at least 3 characters, got 2 characters`}},
		{"maxLength", `{"maxLength":1.0}`, `"ab"`, []string{`: expected a string of at most 1 character, got 2 characters`}},
		{"minLength of one", `{"minLength":1}`, `""`, []string{`: expected a string of at least 1 character, got 0 characters`}},
		{"one character", `{"minLength":2}`, `"a"`, []string{`: expected a string of at least 2 characters, got 1 character`}},
		{"minItems of one", `{"minItems":1}`, `[]`, []string{`: expected at least 1 item, got array of 0 items`}},
		{"minimum", `{"minimum":5}`, `3`, []string{`: expected a number of at least 5, got number 3`}},
		{"maximum", `{"maximum":0.1}`, `0.25`, []string{`: expected a number of at most 0.1, got number 0.25`}},
		{"a large maximum", `{"maximum":9007199254740993}`, `9007199254740994`, []string{`: expected a number of at most 9007199254740993, got number 9007199254740994`}},
		{"exclusiveMinimum", `{"exclusiveMinimum":5}`, `5`, []string{`: expected a number above 5, got number 5`}},
		{"exclusiveMaximum", `{"exclusiveMaximum":5}`, `5`, []string{`: expected a number below 5, got number 5`}},
		{"multipleOf", `{"multipleOf":0.5}`, `0.7`, []string{`: expected a multiple of 0.5, got number 0.7`}},
		{"minItems", `{"minItems":2}`, `[1]`, []string{`: expected at least 2 items, got array of 1 item`}},
		{"maxItems", `{"maxItems":0}`, `[1,2]`, []string{`: expected at most 0 items, got array of 2 items`}},
		{"minProperties", `{"minProperties":2}`, `{"a":1}`, []string{`: expected at least 2 properties, got object with 1 property`}},
		{"maxProperties", `{"maxProperties":1}`, `{"a":1,"b":2}`, []string{`: expected at most 1 property, got object with 2 properties`}},
		{"uniqueItems", `{"uniqueItems":true}`, `[1,2,1.0]`, []string{`: expected items that differ from each other, got array of 3 items in which items 0 and 2 are equal`}},
		{"contains", `{"contains":{"const":1}}`, `[2]`, []string{`: expected at least one item that fits the schema under "contains", got array of 1 item`}},
		{"not", `{"not":{"type":"null"}}`, `null`, []string{`: expected a value that does not fit the schema under "not", got null`}},
		{"false schema", `{"properties":{"a":false}}`, `{"a":1}`, []string{`/a: expected no value here, got number 1`}},
		{"dependency", `{"dependencies":{"a":["b"]}}`, `{"a":1}`, []string{`/b: property "b" is missing: it is required together with "a"`}},
		{"property name", `{"propertyNames":{"maxLength":2}}`, `{"abc":1}`,
			[]string{`/abc: property name "abc" is not allowed: expected a string of at most 2 characters`}},
		{"property names in two places", `{"properties":{"x":{"propertyNames":{"maxLength":2}},"y":{},"z":{"propertyNames":{"maxLength":2}}}}`,
			`{"x":{"abc":1},"y":{"abc":2},"z":{"abc":3}}`,
			[]string{`/x/abc: property name "abc" is not allowed: expected a string of at most 2 characters`,
				`/z/abc: property name "abc" is not allowed: expected a string of at most 2 characters`}},
		{"anyOf of types reads as one", `{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"n":"x"}`,
			[]string{`/n: expected integer or null, got string "x"`}},
		{"anyOf of constants reads as one", `{"anyOf":[{"const":"a"},{"const":"b"}]}`, `"other"`, []string{`: expected one of "a", "b", got string "other"`}},
		{"anyOf tells the branch of the right type", `{"anyOf":[{"type":"string"},{"type":"object","required":["id"]}]}`, `{}`,
			[]string{`/id: required property "id" is missing`}},
		{"oneOf tells the branch that the tag chose",
			`{"oneOf":[{"properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}},"required":["kind"]},{"properties":{"kind":{"const":"dog"},"age":{"type":"integer"},"name":{"type":"string"}},"required":["kind"]}]}`,
			`{"kind":"dog","age":"x","name":1}`, []string{`/age: expected integer, got string "x"`, `/name: expected string, got number 1`}},
		{"oneOf lists the tags", `{"oneOf":[{"properties":{"kind":{"const":"cat"}}},{"properties":{"kind":{"const":"dog"}}}]}`, `{"kind":"cow"}`,
			[]string{`/kind: expected one of "cat", "dog", got string "cow"`}},
		{"oneOf that fits twice", `{"oneOf":[{"type":"integer"},{"type":"string"},{"minimum":1}]}`, `5`,
			[]string{`: expected a value that fits exactly one of the alternatives, got number 5, which fits alternatives 0 and 2`}},
		{"allOf tells each", `{"allOf":[{"minimum":5},{"multipleOf":2}]}`, `3`,
			[]string{`: expected a number of at least 5, got number 3`, `: expected a multiple of 2, got number 3`}},
		{"the same error is told once", `{"allOf":[{"minimum":5},{"minimum":5}]}`, `3`, []string{`: expected a number of at least 5, got number 3`}},
		{"if then", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, []string{`/b: required property "b" is missing`}},
		{"every error, in order, indexes as numbers", `{"items":{"type":"integer"}}`, `[1,"b",2,3,4,5,6,7,8,9,"k"]`,
			[]string{`/1: expected integer, got string "b"`, `/10: expected integer, got string "k"`}},
		{"a long value is cut", `{"type":"integer"}`, `"` + strings.Repeat("é", 200) + `"`,
			[]string{`: expected integer, got string "` + strings.Repeat("é", 80) + `…"`}},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(fmt.Sprintf("%s/%s", test.name, draft), func(t *testing.T) {
				s := newSchema(t, test.schema, draft)
				violations, err := s.ValidateJSON([]byte(test.doc))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, lines(violations)); diff != "" {
					t.Error(diff)
				}
				for _, f := range violations {
					if f.Expected == "" || f.Got == "" {
						t.Errorf("not whole: %+v", f)
					}
				}
			})
		}
	}
}

func TestViolationsLater(t *testing.T) {
	tests := []struct {
		name, schema, doc string
		want              []string
	}{
		{"unevaluatedProperties", `{"properties":{"unit":{}},"unevaluatedProperties":false}`, `{"unti":1}`,
			[]string{`/unti: unknown property "unti"; did you mean "unit"?`}},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{`/b: property "b" is missing: it is required together with "a"`}},
		{"minContains", `{"contains":{"const":1},"minContains":2}`, `[1]`,
			[]string{`: expected at least 2 items that fit the schema under "contains", got array of 1 item`}},
		{"maxContains", `{"contains":{"const":1},"maxContains":1}`, `[1,1]`,
			[]string{`: expected at most 1 item that fits the schema under "contains", got array of 2 items`}},
		{"prefixItems", `{"prefixItems":[{"type":"string"}],"items":false}`, `[1,2]`,
			[]string{`/0: expected string, got number 1`, `/1: expected no value here, got number 2`}},
		{"a recursive tree", `{"$id":"https://example.com/tree","$dynamicAnchor":"node","properties":{"children":{"items":{"$dynamicRef":"#node"}},"v":{"type":"integer"}}}`,
			`{"children":[{"v":1},{"children":[{"v":"x"}]}]}`, []string{`/children/1/children/0/v: expected integer, got string "x"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			violations, err := newSchema(t, test.schema, validate.Draft2020).ValidateJSON([]byte(test.doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(violations)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestViolationsAreBounded(t *testing.T) {
	doc := "[" + strings.Repeat(`"x",`, 5000) + `"x"]`
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		violations, err := newSchema(t, `{"items":{"type":"integer"}}`, draft).ValidateJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(violations); n != 101 || violations[100].Message != "and 4901 more errors" {
			t.Errorf("%s: got %d errors, the last is %q", draft, n, violations[n-1].Message)
		}
	}
}

// TestMessageTellsValueAsGot is what lets a caller hide a value: nothing but the
// text of Got tells it.
func TestMessageTellsValueAsGot(t *testing.T) {
	const secret = "hunter2hunter2"
	schemas := []string{
		`{"type":"integer"}`, `{"enum":["a","b"]}`, `{"const":"a"}`, `{"format":"ipv4"}`, `{"pattern":"^b"}`, `{"minLength":99}`,
		`{"maxLength":2}`, `{"not":{"type":"string"}}`, `{"anyOf":[{"type":"integer"},{"pattern":"^b"}]}`, `false`,
		`{"oneOf":[true,true]}`, `{"allOf":[{"maxLength":2},{"type":"null"}]}`, `{"pattern":"^(?=b)"}`,
	}
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		for _, schema := range schemas {
			s := newSchema(t, `{"properties":{"password":`+schema+`}}`, draft)
			violations, err := s.Validate(map[string]any{"password": secret})
			if err != nil || len(violations) == 0 {
				t.Fatalf("%s: %v, %v", schema, violations, err)
			}
			for _, f := range violations {
				if f.Path != "/password" {
					t.Errorf("%s: path %q", schema, f.Path)
				}
				if rest := strings.ReplaceAll(f.Message, f.Got, "") + f.Expected; strings.Contains(rest, "hunter") {
					t.Errorf("%s: %q tells the value beside Got %q", schema, f.Message, f.Got)
				}
			}
		}
	}
}

func TestValidateRefusesGoTypes(t *testing.T) {
	s := newSchema(t, `{}`, validate.Draft7)
	for _, doc := range []any{1, 1.5, []string{"a"}, map[string]int{}, struct{}{}, json.Number("x"), json.Number("")} {
		violations, err := s.Validate(map[string]any{"a": doc})
		if err != nil || len(violations) != 1 {
			t.Errorf("%T: got %v, %v; want one error", doc, violations, err)
		}
	}
}

func TestValidateJSONSaysWhatIsNotJSON(t *testing.T) {
	violations, err := newSchema(t, `{}`, validate.Draft2020).ValidateJSON([]byte(`{"a":}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{": invalid JSON at line 1, column 6: expected a value, got '}'"}
	if diff := cmp.Diff(want, lines(violations)); diff != "" {
		t.Error(diff)
	}
}
