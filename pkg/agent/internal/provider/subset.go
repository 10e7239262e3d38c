package provider

import (
	"maps"
	"slices"
)

// Subset is the part of JSON Schema that an API enforces. Every object in it is closed.
type Subset struct {
	// Depth is the maximum nesting depth.
	Depth int
	// Keywords are accepted with any value. Keywords of Fits are accepted only with the values that fit.
	Keywords []string
	Fits     map[string]func(value any) bool
	// Required says that an object must list every property as required.
	Required bool
}

// Takes reports whether a schema is in the subset.
func (s *Subset) Takes(schema any) bool { return s.takes(schema, 0) }

func (s *Subset) takes(v any, depth int) bool {
	node, ok := v.(map[string]any)
	if !ok || depth > s.Depth {
		return false
	}
	for key, value := range node {
		if fits := s.Fits[key]; !slices.Contains(s.Keywords, key) && (fits == nil || !fits(value)) {
			return false
		}
		parts, ok := inner(key, value)
		if !ok || slices.ContainsFunc(parts, func(one any) bool { return !s.takes(one, depth+1) }) {
			return false
		}
	}
	properties, named := node["properties"].(map[string]any)
	types, _ := node["type"].([]any)
	if !named && node["type"] != "object" && !slices.Contains(types, any("object")) {
		return true
	}
	required, _ := node["required"].([]any)
	for name := range properties {
		if s.Required && !slices.Contains(required, any(name)) {
			return false
		}
	}
	return node["additionalProperties"] == false
}

// inner returns the schemas in the value of a keyword, and whether the value is well-formed.
func inner(key string, value any) (schemas []any, ok bool) {
	switch key {
	case "items":
		return []any{value}, true
	case "anyOf", "allOf":
		list, ok := value.([]any)
		return list, ok
	case "properties", "$defs", "definitions":
		all, ok := value.(map[string]any)
		return slices.Collect(maps.Values(all)), ok
	case "additionalProperties":
		return nil, value == false
	}
	return nil, true
}
