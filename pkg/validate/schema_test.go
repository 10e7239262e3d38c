package validate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

const drafts = "http://json-schema.org/draft-04/schema#, http://json-schema.org/draft-06/schema#, http://json-schema.org/draft-07/schema#, " +
	"https://json-schema.org/draft/2019-09/schema, https://json-schema.org/draft/2020-12/schema"

const outside = "refers to something outside the schema document, and nothing is ever fetched: copy the definition into the schema and refer to it as #/definitions/NAME"

func compileViolations(t *testing.T, schema string, draft validate.Draft) []string {
	t.Helper()
	err := validate.NewCache(validate.Options{}).Schema(json.RawMessage(schema), draft).Compile()
	if err == nil {
		return nil
	}
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || invalid.Type != v1.ManifestInvalid {
		t.Fatalf("got %T %v, want a ValidationError of type manifest_invalid", err, err)
	}
	return lines(invalid.Violations)
}

func TestCompileViolations(t *testing.T) {
	tests := []struct {
		name, schema string
		want         []string
	}{
		{"no JSON", `{"type":}`, []string{": invalid JSON at line 1, column 9: expected a value, got '}'"}},
		{"nothing", ``, []string{": invalid JSON at line 1, column 1: expected a value, got the end of the text"}},
		{"no object", `[]`, []string{": a schema is a JSON object, got array of 0 items"}},
		{"an unknown type", `{"properties":{"a":{"type":"strin"}}}`,
			[]string{`/properties/a/type: expected array or one of "array", "boolean", "integer", "null", "number", "object", "string", got string "strin"; did you mean "string"?`}},
		{"every error", `{"required":"a","properties":{"b":{"minimum":"x"}},"items":{"maxLength":-1}}`,
			[]string{`/items/maxLength: maxLength must be an integer from 0 to 9007199254740991, got number -1`,
				`/properties/b/minimum: expected number, got string "x"`, `/required: expected array, got string "a"`}},
		{"a pattern that is none", `{"properties":{"a":{"pattern":"a("}},"patternProperties":{"[":{}}}`,
			[]string{`/patternProperties/[: pattern "[" cannot be used: error parsing regexp: unterminated [] set in ` + "`[`",
				`/properties/a/pattern: pattern "a(" cannot be used: error parsing regexp: missing closing ) in ` + "`a(`"}},
		{"a count beyond any document", `{"maxLength":1e30}`, []string{`/maxLength: maxLength must be an integer from 0 to 9007199254740991, got number 1e30`}},
		{"a reference to nothing", `{"properties":{"a":{"$ref":"#/definitions/b"}}}`,
			[]string{`/properties/a/$ref: $ref "#/definitions/b" refers to a place that does not exist in the schema document`}},
		{"a reference to an anchor that does not exist", `{"$ref":"#b"}`,
			[]string{`/$ref: $ref "#b" refers to the anchor "b", which does not exist in the schema document`}},
		{"a reference to what is no schema", `{"properties":{"a":{"$ref":"#/x"}},"x":5}`,
			[]string{`/properties/a/$ref: $ref "#/x" refers to number 5, where a schema belongs`}},
		{"references outside", `{"properties":{"a":{"$ref":"http://example.com/a.json"},"b":{"$ref":"file:///etc/passwd"},"c":{"$ref":"other.json#/x"}}}`,
			[]string{`/properties/a/$ref: $ref "http://example.com/a.json" ` + outside, `/properties/b/$ref: $ref "file:///etc/passwd" ` + outside,
				`/properties/c/$ref: $ref "other.json#/x" ` + outside}},
		{"an unknown draft", `{"$schema":"http://example.com/mine","type":"object"}`, []string{`/$schema: unknown $schema "http://example.com/mine": expected one of ` + drafts}},
		{"draft-03", `{"$schema":"http://json-schema.org/draft-03/schema#"}`, []string{`/$schema: unknown $schema "http://json-schema.org/draft-03/schema#": expected one of ` + drafts}},
		{"a number of 400 MB", `{"multipleOf":1e1000000000}`,
			[]string{": at line 1, column 15: number beyond the range of a double: at most 1.8e308, and exponents from -1000 to 308"}},
		{"two ids", `{"definitions":{"a":{"$id":"http://x/a"},"b":{"$id":"http://x/a"}}}`,
			[]string{`/definitions/b/$id: id "http://x/a" is used twice, here and at "/definitions/a"`}},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(fmt.Sprintf("%s/%s", test.name, draft), func(t *testing.T) {
				if diff := cmp.Diff(test.want, compileViolations(t, test.schema, draft)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestSchemaKeywordChoosesDraft(t *testing.T) {
	tests := []struct {
		schema           string
		dflt             validate.Draft
		doc              string
		engine           string
		wantViolationsAt string // comma-separated
	}{
		// exclusiveMinimum was a boolean in draft-04 only.
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, validate.Draft2020, `1`, "gojsonschema", "/"},
		{`{"$schema":"http://json-schema.org/draft-06/schema#","exclusiveMinimum":1}`, validate.Draft2020, `1`, "gojsonschema", "/"},
		{`{"$schema":"https://json-schema.org/draft-07/schema","exclusiveMinimum":1}`, validate.Draft2020, `1`, "gojsonschema", "/"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[false]}`, validate.Draft2020, `[1]`, "gojsonschema", ""},
		{`{"prefixItems":[false]}`, validate.Draft7, `[1]`, "gojsonschema", ""},
		{`{"prefixItems":[false]}`, validate.Draft2020, `[1]`, "santhosh", "/0"},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[false]}`, validate.Draft7, `[1]`, "santhosh", "/0"},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema#","items":[false]}`, validate.Draft2020, `[1]`, "santhosh", "/0"},
		{`true`, validate.Draft7, `1`, "gojsonschema", ""},
		{`false`, validate.Draft2020, `1`, "santhosh", "/"},
		// What gojsonschema cannot take runs on the other engine, by the rules of its own draft.
		{`{"pattern":"^(?!a)","items":[false]}`, validate.Draft7, `[1]`, "santhosh", "/0"},
		{`{"enum":[9007199254740993]}`, validate.Draft7, `9007199254740992`, "santhosh", "/"},
		{`{"minLength":3,"maxLength":2}`, validate.Draft7, `"abc"`, "santhosh", "/"},
		{`{"properties":{"a":{"$ref":"http://json-schema.org/draft-04/schema#"}}}`, validate.Draft7, `{"a":{"type":5}}`, "santhosh", "/a/type"},
		// Metaschemas are known without a network.
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, validate.Draft7, `{"type":5}`, "gojsonschema", "/type"},
		{`{"properties":{"s":{"$ref":"http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}}}`, validate.Draft7, `{"s":-1}`, "gojsonschema", "/s"},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, validate.Draft2020, `{"$defs":{"a":{"type":5}}}`, "santhosh", "/$defs/a/type"},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) {
			s := newSchema(t, test.schema, test.dflt)
			if got := validate.EngineOf(s); got != test.engine {
				t.Errorf("runs on %s, want %s", got, test.engine)
			}
			violations, err := s.ValidateJSON([]byte(test.doc))
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, f := range violations {
				paths = append(paths, "/"+strings.TrimPrefix(f.Path, "/"))
			}
			if got := strings.Join(paths, ","); got != test.wantViolationsAt {
				t.Errorf("errors at %q, want %q: %v", got, test.wantViolationsAt, violations)
			}
		})
	}
}

// TestReferencesInside checks what "$id" and anchors do within one document.
func TestReferencesInside(t *testing.T) {
	tests := []struct {
		name, schema string
		draft        validate.Draft
	}{
		{"pointer", `{"properties":{"n":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`, validate.Draft4},
		{"pointer with escapes", `{"properties":{"n":{"$ref":"#/definitions/a~1b%25c"}},"definitions":{"a/b%c":{"type":"integer"}}}`, validate.Draft7},
		{"place that no keyword knows", `{"properties":{"n":{"$ref":"#/components/schemas/N"}},"components":{"schemas":{"N":{"type":"integer"}}}}`, validate.Draft7},
		{"place that no keyword knows, later", `{"properties":{"n":{"$ref":"#/components/schemas/N"}},"components":{"schemas":{"N":{"type":"integer"}}}}`, validate.Draft2020},
		{"id of draft-04", `{"id":"http://x.test/root.json","properties":{"n":{"$ref":"n.json"}},"definitions":{"n":{"id":"n.json","type":"integer"}}}`, validate.Draft4},
		{"$id", `{"$id":"http://x.test/root.json","properties":{"n":{"$ref":"n.json"}},"definitions":{"n":{"$id":"n.json","type":"integer"}}}`, validate.Draft7},
		{"relative $id without a base", `{"properties":{"n":{"$ref":"n.json"}},"definitions":{"n":{"$id":"n.json","type":"integer"}}}`, validate.Draft7},
		{"name as $id", `{"properties":{"n":{"$ref":"#n"}},"definitions":{"n":{"$id":"#n","type":"integer"}}}`, validate.Draft7},
		{"urn", `{"$id":"urn:x:root","properties":{"n":{"$ref":"urn:x:n"}},"$defs":{"n":{"$id":"urn:x:n","type":"integer"}}}`, validate.Draft2020},
		{"$anchor", `{"properties":{"n":{"$ref":"#n"}},"$defs":{"n":{"$anchor":"n","type":"integer"}}}`, validate.Draft2020},
		{"$dynamicRef", `{"properties":{"n":{"$dynamicRef":"#n"}},"$defs":{"n":{"$dynamicAnchor":"n","type":"integer"}}}`, validate.Draft2020},
		{"$recursiveRef", `{"properties":{"c":{"$recursiveRef":"#"},"n":{"type":"integer"}}}`, validate.Draft2019},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSchema(t, test.schema, test.draft)
			violations, err := s.ValidateJSON([]byte(`{"n":"x"}`))
			if diff := cmp.Diff([]string{`/n: expected integer, got string "x"`}, lines(violations)); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// TestNothingIsFetched offers schemas that would be readable, over HTTP and as
// files, and sees that each is refused and none is read.
func TestNothingIsFetched(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		fmt.Fprint(w, `{"type":"integer"}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(file))
	refs := []string{server.URL + "/s.json", server.URL, server.URL + "/s.json#/a", "file://" + file, "file:" + file, file, "s.json", "./s.json#",
		"//" + strings.TrimPrefix(server.URL, "http://") + "/s.json", "ftp://x.test/s", "urn:x:y"}
	for _, draft := range []validate.Draft{validate.Draft4, validate.Draft6, validate.Draft7, validate.Draft2019, validate.Draft2020} {
		for _, ref := range refs {
			for _, schema := range []string{
				`{"properties":{"a":{"$ref":%q}}}`, `{"definitions":{"a":{"$ref":%q}}}`, `{"allOf":[{"$ref":%q}]}`, `{"$ref":%q}`,
			} {
				got := compileViolations(t, fmt.Sprintf(schema, ref), draft)
				if len(got) != 1 || !strings.Contains(got[0], outside) {
					t.Errorf("%s: "+schema+": got %q", draft, ref, got)
				}
			}
			if got := compileViolations(t, fmt.Sprintf(`{"$schema":%q}`, ref), draft); len(got) == 0 || !strings.Contains(got[0], "unknown $schema") {
				t.Errorf("%s: $schema %q: got %q", draft, ref, got)
			}
		}
		for _, base := range []string{server.URL + "/root.json", "file://" + filepath.Dir(file) + "/"} {
			id := map[bool]string{true: "id", false: "$id"}[draft == validate.Draft4]
			got := compileViolations(t, fmt.Sprintf(`{%q:%q,"properties":{"a":{"$ref":"s.json"}}}`, id, base), draft)
			if len(got) != 1 || !strings.Contains(got[0], outside) {
				t.Errorf("%s: id %q: got %q", draft, base, got)
			}
		}
	}
	for ref, keyword := range map[string]string{server.URL + "/s.json#a": "$dynamicRef", server.URL + "/s.json": "$recursiveRef"} {
		draft := map[string]validate.Draft{"$dynamicRef": validate.Draft2020, "$recursiveRef": validate.Draft2019}[keyword]
		if got := compileViolations(t, fmt.Sprintf(`{"items":{%q:%q}}`, keyword, ref), draft); len(got) == 0 {
			t.Errorf("%s %q was taken", keyword, ref)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

// TestSchemaConfusion: an object under "default" that poses as the target of a
// reference must not become it. gojsonschema alone would take it, and overflow the stack.
func TestSchemaConfusion(t *testing.T) {
	const schema = `{"properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"integer"}},
		"default":{"id":"#/definitions/a","$ref":"#/definitions/a"},"examples":[{"$id":"#/definitions/a","$ref":"#/definitions/a"}]}`
	for _, draft := range []validate.Draft{validate.Draft4, validate.Draft7, validate.Draft2020} {
		violations, err := newSchema(t, schema, draft).ValidateJSON([]byte(`{"a":"x"}`))
		if diff := cmp.Diff([]string{`/a: expected integer, got string "x"`}, lines(violations)); err != nil || diff != "" {
			t.Error(draft, err, diff)
		}
	}
}

func TestPreloadedDocuments(t *testing.T) {
	cache := validate.NewCache(validate.Options{Documents: map[string]json.RawMessage{
		"https://example.com/city.json": json.RawMessage(`{"type":"string","minLength":2}`),
		"https://example.com/bad.json":  json.RawMessage(`{`),
	}})
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		s := cache.Schema(json.RawMessage(`{"properties":{"city":{"$ref":"https://example.com/city.json"}}}`), draft)
		violations, err := s.ValidateJSON([]byte(`{"city":"x"}`))
		if diff := cmp.Diff([]string{`/city: expected a string of at least 2 characters, got 1 character`}, lines(violations)); err != nil || diff != "" {
			t.Error(draft, err, diff)
		}
		err = cache.Schema(json.RawMessage(`{"$ref":"https://example.com/bad.json"}`), draft).Compile()
		if err == nil || !strings.Contains(err.Error(), "refers to a bundled document that cannot be read: invalid JSON") {
			t.Error(err)
		}
	}
}

func TestPatternsOfECMAScript(t *testing.T) {
	tests := []struct {
		name, pattern string
		fits, misfits []string
	}{
		{"e-mail, as zod writes it", `^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`,
			[]string{"a.b@example.com"}, []string{".a@example.com", "a..b@example.com", "a@b", "a@example.com\n"}},
		{"lookbehind", `(?<=a)b`, []string{"ab"}, []string{"cb"}},
		{"back reference", `^(a|b)\1$`, []string{"aa", "bb"}, []string{"ab"}},
		{"escape of a code point", `^\u0041$`, []string{"A"}, []string{"u0041"}},
		{"more repeats than RE2 takes", `^a{1001}$`, []string{strings.Repeat("a", 1001)}, []string{strings.Repeat("a", 1000)}},
		{"dollar in a class", `^(?=a)[a$]+$`, []string{"a$"}, []string{"a$\n"}},
		{"a nest of groups", `^(?=a)` + strings.Repeat("(", 3000) + "a" + strings.Repeat(")", 3000) + "$", []string{"a"}, []string{"b"}},
		{"ordinary", `^\d+$`, []string{"12"}, []string{"1a", "1\n", "١"}},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft4, validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				raw, _ := json.Marshal(map[string]any{"pattern": test.pattern})
				s := newSchema(t, string(raw), draft)
				for _, text := range test.fits {
					if violations, err := s.Validate(text); err != nil || len(violations) > 0 {
						t.Errorf("%q: %v, %v", text, violations, err)
					}
				}
				for _, text := range test.misfits {
					if violations, err := s.Validate(text); err != nil || len(violations) != 1 {
						t.Errorf("%q was taken: %v, %v", text, violations, err)
					}
				}
			})
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	cache := validate.NewCache(validate.Options{})
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					s := cache.Schema(json.RawMessage(`{"properties":{"a":{"pattern":"^(?!x)"},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"propertyNames":{"maxLength":3}}`), draft)
					fixed, changed, violations, err := s.Check(map[string]any{"a": "x", "b": "5", "long": true}, true)
					want := []string{`/a: expected a string that matches the pattern "^(?!x)", got string "x"`,
						`/long: property name "long" is not allowed: expected a string of at most 3 characters`}
					if diff := cmp.Diff(want, lines(violations)); err != nil || !changed || diff != "" || fixed.(map[string]any)["b"] != json.Number("5") {
						t.Error(err, changed, diff, fixed)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}
