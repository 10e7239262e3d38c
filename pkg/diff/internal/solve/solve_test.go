package solve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/diff/internal/solve"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

func read(t *testing.T, text string, draft schema.Draft) *solve.Schema {
	t.Helper()
	v, err := validate.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return solve.Read(v, draft)
}

// Each keyword is kept by what fits it and broken by what does not.
func TestFind(t *testing.T) {
	for _, tc := range []struct{ fit, breaks, want string }{
		{`{"type":"integer"}`, `{"type":"number"}`, "empty"},
		{`{"type":"number","minimum":0,"maximum":1}`, `{"type":"integer"}`, `0.5`},
		{`{"type":"integer","minimum":3}`, `{"exclusiveMinimum":3}`, `3`},
		{`{"type":"integer","multipleOf":4}`, `{"multipleOf":2}`, "empty"},
		{`{"type":"string","minLength":2,"maxLength":3}`, `{"minLength":3}`, `"xx"`},
		{`{"type":"string","pattern":"^a+$","maxLength":2}`, `{"enum":["a","aa"]}`, "empty"},
		{`{"enum":[1,"a",[1],{"b":2},null,true]}`, `{"enum":[1,"a",[1],{"b":2},null]}`, `true`},
		{`{"const":[1,2]}`, `{"prefixItems":[{"const":1},{"const":2}],"minItems":2,"maxItems":2}`, "empty"},
		{`{"const":[]}`, `{"type":"array","maxItems":0}`, "empty"},
		{`{"type":"array","items":{"type":"boolean"},"minItems":1}`, `{"contains":{"const":true}}`, `[false]`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"boolean"}}`, `{"maxItems":2}`, "empty"},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"null"}}}`, `{"properties":{"a":{"type":"string"}}}`, `{"a":null}`},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"propertyNames":{"const":"a"}}`, "empty"},
		{`{"type":"object","dependentRequired":{"a":["b"]},"required":["a"]}`, `{"required":["b"]}`, "empty"},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`, `null`},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `{"not":{"type":"integer"}}`, "empty"},
		{`{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"null"}}`, `{"type":"string"}`, `null`},
		{`{"$ref":"#a","$defs":{"x":{"$anchor":"a","const":1}}}`, `{"const":1}`, "empty"},
		{`{"type":"array","items":{"$ref":"#"},"minItems":1}`, `{}`, "empty"}, // values are finite
		{`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"minProperties":1}`, `{"required":["a"]}`, "empty"},
	} {
		value, answer := solve.Find(solve.Query{Fit: read(t, tc.fit, schema.Draft2020), Break: read(t, tc.breaks, schema.Draft2020)})
		got := map[solve.Answer]string{solve.Unknown: "unknown", solve.Empty: "empty"}[answer]
		if answer == solve.Found {
			text, _ := json.Marshal(value)
			got = string(text)
		}
		if got != tc.want {
			t.Errorf("fits %s, breaks %s: got %s, want %s", tc.fit, tc.breaks, got, tc.want)
		}
	}
}

// Schemas of many branches, and deep ones, end without a wrong proof.
func TestFindIsBounded(t *testing.T) {
	var branches []string
	for i := range 2000 {
		branches = append(branches, fmt.Sprintf(`{"const":%d}`, i))
	}
	for _, text := range []string{
		`{"oneOf":[` + strings.Join(branches, ",") + `]}`, `{"anyOf":[` + strings.Join(branches, ",") + `]}`,
		strings.Repeat(`{"items":`, 250) + `{}` + strings.Repeat("}", 250), `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	} {
		if _, answer := solve.Find(solve.Query{Fit: read(t, text, schema.Draft2020), Break: read(t, `{"type":"string"}`, schema.Draft2020)}); answer == solve.Empty && !strings.Contains(text, "$ref") {
			t.Errorf("%.60s: it is proven that there is no value", text)
		}
	}
}
