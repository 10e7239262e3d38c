package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// schemaViolations compiles a schema of a manifest and returns its violations with their place in the manifest.
func schemaViolations(h *v1.Header, path string, s *validate.Schema) []v1.Violation {
	err := s.Compile()
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*v1.ValidationError](err); ok {
		return under(h, path, invalid.Violations)
	}
	return []v1.Violation{{Path: path, Expected: "a JSON Schema", Got: "something else", Message: err.Error()}}
}

// defaultViolations returns the defaults in an input schema that are not among the values of their enum. A call without
// the argument would be refused because of the default.
func defaultViolations(h *v1.Header, path string, schema json.RawMessage) []v1.Violation {
	if !bytes.Contains(schema, []byte(`"default"`)) || !bytes.Contains(schema, []byte(`"enum"`)) {
		return nil
	}
	doc, err := validate.Decode(schema)
	if err != nil {
		return nil // reported elsewhere
	}
	var found []v1.Violation
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for i, one := range v {
				walk(v1.Pointer(path, strconv.Itoa(i)), one)
			}
		case map[string]any:
			value, has := v["default"]
			values, limited := v["enum"].([]any)
			same := func(one any) bool {
				a, isNumber := one.(json.Number)
				b, both := value.(json.Number)
				if isNumber && both {
					x, _ := a.Float64()
					y, _ := b.Float64()
					return x == y
				}
				return bytes.Equal(jsontext.Of(one), jsontext.Of(value))
			}
			if has && limited && !slices.ContainsFunc(values, same) {
				at := path + "/default"
				found = append(found, v1.Violation{Path: at, Expected: "one of " + string(jsontext.Of(values)), Got: string(jsontext.Of(value)), Source: h.Field(at),
					Message: fmt.Sprintf("the default %s is not one of the values of enum: %s", jsontext.Of(value), jsontext.Of(values))})
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !slices.Contains([]string{"default", "enum", "const", "example", "examples"}, key) {
					walk(v1.Pointer(path, key), v[key])
				}
			}
		}
	}
	walk(path, doc)
	return found
}
