package console

import (
	"bytes"
	"encoding"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// schemas has the JSON Schemas of Go types as encoding/json encodes them.
type schemas map[string]any

func (s schemas) of(t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[v1.Tool](): // "toolctl explain tool" describes it
		return map[string]any{"type": "object"}
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t == reflect.TypeFor[json.RawMessage](), t.Implements(reflect.TypeFor[json.Marshaler]()) && t.Kind() != reflect.Struct:
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64, reflect.Float32:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		name := t.Name()
		if strings.HasSuffix(t.PkgPath(), "/scenario") { // that package has its own Result
			name = "Scenario" + name
		}
		if s[name] == nil {
			s[name] = true // set early, because the type may contain itself
			one := map[string]any{"type": "object", "additionalProperties": false}
			properties, required := map[string]any{}, []string{}
			s.fields(t, properties, &required)
			one["properties"] = properties
			if len(required) > 0 {
				one["required"] = required
			}
			s[name] = one
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "integer"}
}

func (s schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.fields(f.Type, properties, required)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
	slices.Sort(*required)
}

// TestOpenAPISchemas checks that the schemas of openapi.json match the types that the handlers write. UPDATE_OPENAPI=1
// updates them.
func TestOpenAPISchemas(t *testing.T) {
	const file = "openapi.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	now := schemas{}
	for _, v := range []any{
		toolRow{}, toolAnswer{}, toolsetRow{}, v1.Result{}, planView{}, policy.Explanation{}, approvalView{}, callView{}, serverView{}, auditCheck{},
		promptRow{}, renderAnswer{}, testView{}, changesView{}, changePage{},
	} {
		now.of(reflect.TypeOf(v))
	}
	now.of(reflect.TypeFor[apiProblem]())
	now["Problem"] = now["apiProblem"]
	delete(now, "apiProblem")
	doc["components"].(map[string]any)["schemas"] = now
	var want bytes.Buffer
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&want, plain.Bytes(), "", ""); err != nil { // with line breaks for diffs but without indentation, because the file is part of the program
		t.Fatal(err)
	}
	if bytes.Equal(raw, want.Bytes()) {
		return
	}
	if os.Getenv("UPDATE_OPENAPI") == "" {
		t.Fatal("openapi.json is not what the handlers write: UPDATE_OPENAPI=1 go test ./pkg/console -run TestOpenAPISchemas")
	}
	if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil { //nolint:gosec // it is read by all
		t.Fatal(err)
	}
}
