package openapi_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/openapi"
)

// compile compiles a schema as JSON Schema 2020-12.
func compile(raw json.RawMessage) error {
	_, err := compiled(raw)
	return err
}

func compiled(raw json.RawMessage) (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(s, regexp2.ECMAScript|regexp2.Unicode)
		return ecma{re}, err
	})
	if err := c.AddResource("mem:schema.json", v); err != nil {
		return nil, err
	}
	return c.Compile("mem:schema.json")
}

type ecma struct{ *regexp2.Regexp }

func (e ecma) MatchString(s string) bool {
	ok, err := e.Regexp.MatchString(s)
	return ok && err == nil
}

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkTools holds every manifest to the rules of its kind, and its text to what
// pkg/manifest reads.
func checkTools(t testing.TB, set *openapi.Set) {
	t.Helper()
	seen := map[string]string{}
	for _, tool := range set.Tools {
		m := tool.Manifest
		if other, ok := seen[m.Metadata.Name]; ok {
			t.Errorf("%s and %s are both %q", other, tool.Operation, m.Metadata.Name)
		}
		seen[m.Metadata.Name] = tool.Operation
		if !wireName.MatchString(m.Metadata.Name) {
			t.Errorf("%s: %q is no name on the wire", tool.Operation, m.Metadata.Name)
		}
		for _, f := range m.Validate() {
			t.Errorf("%s: %s", tool.Operation, f)
		}
		for what, raw := range map[string]json.RawMessage{"input_schema": m.Spec.InputSchema, "output_schema": m.Spec.OutputSchema} {
			if len(raw) == 0 {
				continue
			}
			if err := compile(raw); err != nil {
				t.Errorf("%s: %s: %v\n%s", tool.Operation, what, err, raw)
			}
		}
		text, err := manifest.MarshalYAML(m)
		if err != nil {
			t.Fatal(err)
		}
		objects, violations := manifest.Decode(m.Metadata.Name+".yaml", text, manifest.Options{})
		for _, f := range violations {
			t.Errorf("%s: %s\n%s", tool.Operation, f, text)
		}
		if len(objects) != 1 {
			t.Fatalf("%s: %d objects", tool.Operation, len(objects))
		}
		back := objects[0].(*v1.Tool)
		if !sameJSON(t, back.Spec, m.Spec) {
			t.Errorf("%s: the manifest reads back differently:\n%s", tool.Operation, text)
		}
	}
}

func sameJSON(t testing.TB, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}
