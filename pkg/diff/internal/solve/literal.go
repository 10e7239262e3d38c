package solve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// constant is a schema of one value.
func (s *solver) constant(v any) *node {
	return s.part("=", v, func() *node { return &node{constant: v, hasConst: true} })
}

// literal is a schema of one list or object, by its parts.
func (s *solver) literal(v any) *node {
	return s.part("/", v, func() *node {
		n := &node{kinds: kindOfValue(v)}
		switch v := v.(type) {
		case []any:
			size := len(v)
			n.minItems, n.maxItems = &size, &size
			for _, item := range v {
				n.prefix = append(n.prefix, s.constant(item))
			}
		case map[string]any:
			n.properties, n.additional = map[string]*node{}, nothing
			n.required = slices.Sorted(maps.Keys(v))
			for name, item := range v {
				n.properties[name] = s.constant(item)
			}
		}
		return n
	})
}

// part makes the schema of a value once, so that what was found of it is found again.
func (s *solver) part(form string, v any, make func() *node) *node {
	text, err := json.Marshal(v)
	if err != nil {
		return make()
	}
	key := form + string(text)
	n, ok := s.parts[key]
	if !ok {
		n = make()
		s.parts[key] = n
	}
	return n
}

// annotations say nothing of which values fit.
var annotations = map[string]bool{"title": true, "description": true, "examples": true, "default": true, "$comment": true, "deprecated": true, "readOnly": true, "writeOnly": true}

// canonical returns a text that is the same for schemas that are written alike, but for
// annotations; "" when the meaning depends on where the schema is.
func (n *node) canonical() string {
	if n.raw == nil {
		return ""
	}
	text, err := json.Marshal(Plain(n.raw))
	if err != nil || strings.Contains(string(text), `"$ref":`) || strings.Contains(string(text), `Ref":`) {
		return ""
	}
	return string(text)
}

// Plain returns a schema without its annotations.
func Plain(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		out := make(map[string]any, len(s))
		for key, v := range s {
			switch key {
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
				m, ok := v.(map[string]any)
				if !ok {
					out[key] = v
					continue
				}
				subs := make(map[string]any, len(m))
				for name, sub := range m {
					subs[name] = Plain(sub)
				}
				out[key] = subs
			case "enum", "const":
				out[key] = v
			default:
				if !annotations[key] && !strings.HasPrefix(key, "x-") {
					out[key] = Plain(v)
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(s))
		for i, v := range s {
			out[i] = Plain(v)
		}
		return out
	}
	return schema
}
