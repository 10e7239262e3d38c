package validate_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"toolctl.dev/toolctl/pkg/validate"
)

// A schema that compiles before it has an engine gets one, in each draft and however "$schema" is written. An illegal
// schema does not compile.
func TestLegal(t *testing.T) {
	good := []string{
		`{}`, `{"type":["object","null"],"properties":{"a":{"title":"A","format":"date","default":1},"b":true},"required":["a"],"additionalProperties":{"not":{"type":"string"}}}`,
		`{"enum":["a",1,true,null],"const":{},"examples":[1],"multipleOf":0.01,"minimum":-1,"pattern":"^a$","x-a":{"type":1},"example":2,"uniqueItems":true,"$comment":"c"}`,
		`{"items":{"anyOf":[{"minLength":2.0,"maxLength":1},{"oneOf":[false]}]},"$defs":{"a":{"type":"integer"}},"definitions":{"b":{"deprecated":true}}}`,
	}
	bad := []string{
		`{"type":"text"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"type":null}`, `{"enum":{}}`, `{"enum":1}`, `{"title":1}`, `{"description":null}`, `{"readOnly":"yes"}`, `{"examples":{}}`,
		`{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"minLength":-1}`, `{"maxItems":1.5}`, `{"pattern":"("}`, `{"pattern":1}`, `{"required":"a"}`, `{"required":[1]}`, `{"required":["a","a"]}`,
		`{"items":1}`, `{"additionalProperties":"no"}`, `{"anyOf":[]}`, `{"anyOf":{}}`, `{"allOf":[1]}`, `{"properties":[]}`, `{"properties":{"a":1}}`, `{"$defs":{"a":{"type":1}}}`, `{"definitions":[]}`, `{"not":[]}`, `{"format":1}`, `{"uniqueItems":1}`,
	}
	compile := func(schema, url string, draft validate.Draft) (*validate.Schema, error) {
		if url != "" {
			schema = strings.Replace(`{"$schema":"`+url+`",`+schema[1:], ",}", "}", 1)
		}
		s := validate.NewCache(validate.Options{}).Schema(json.RawMessage(schema), draft)
		return s, s.Compile()
	}
	for d := validate.Draft7; d <= validate.Draft2020; d++ {
		for _, url := range []string{"", d.String(), strings.TrimSuffix(d.String(), "#"), strings.TrimSuffix(strings.Replace(d.String(), "https:", "http:", 1), "#") + "#"} {
			for _, schema := range good {
				s, err := compile(schema, url, d)
				if err != nil {
					t.Errorf("%s %q: %s: %v", d, url, schema, err)
				}
				if _, err := s.Validate(nil); err != nil {
					t.Errorf("%s %q: %s compiles, and its engine says %v", d, url, schema, err)
				}
			}
			for _, schema := range bad {
				if schema == `{"$defs":{"a":{"type":1}}}` && d == validate.Draft7 {
					continue // which does not know it
				}
				if _, err := compile(schema, url, d); err == nil {
					t.Errorf("%s %q: %s compiles", d, url, schema)
				}
			}
		}
	}
}

// Concurrent calls share the engine of a schema that has none yet.
func TestConcurrentStart(t *testing.T) {
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		schema := validate.NewCache(validate.Options{}).Schema(json.RawMessage(benchSchema), draft)
		if err := schema.Compile(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if violations, err := schema.ValidateJSON([]byte(benchDocument)); err != nil || len(violations) > 0 {
					t.Error(violations, err)
				}
				if violations, err := schema.ValidateJSON([]byte(`{"location":""}`)); err != nil || len(violations) != 1 {
					t.Error(violations, err)
				}
			})
		}
		wg.Wait()
	}
}
