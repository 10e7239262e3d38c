package solve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/schema"
)

// constant returns a schema that accepts one value.
func (s *solver) constant(v any) *node {
	return s.part("=", v, func() *node { return &node{enums: [][]any{{v}}} })
}

// literal returns a schema that accepts one array or object, built from schemas of its parts.
func (s *solver) literal(v any) *node {
	return s.part("/", v, func() *node {
		n := &node{kinds: kindOfValue(v)}
		switch v := v.(type) {
		case []any:
			size := change(func(s *shape) { atLeast(&s.minItems, len(v)); atMost(&s.maxItems, len(v)) })
			fails := clause{change(func(s *shape) { atLeast(&s.minItems, len(v)+1) })}
			if len(v) > 0 {
				fails = append(fails, change(func(s *shape) { atMost(&s.maxItems, len(v)-1) }))
			}
			n.test(kindArray, size, fails...)
			for _, item := range v {
				n.prefix = append(n.prefix, s.constant(item))
			}
			n.layer()
		case map[string]any:
			n.properties, n.additional = map[string]*node{}, nothing
			for _, name := range slices.Sorted(maps.Keys(v)) {
				n.properties[name] = s.constant(v[name])
				n.require(name)
			}
			n.members()
		}
		return n
	})
}

// part makes the schema of a value once, so that search results for it can be reused.
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

// annotations are the keywords that do not affect which values fit.
var annotations = map[string]bool{"title": true, "description": true, "examples": true, "default": true, "$comment": true, "deprecated": true, "readOnly": true, "writeOnly": true}

// canonical returns a text that is equal for schemas that differ in annotations only, or "" if the
// meaning depends on the place of the schema.
func (n *node) canonical() string {
	if n.raw == nil {
		return ""
	}
	text, err := json.Marshal(Plain(n.raw))
	if err != nil || strings.Contains(string(text), schema.Ref) || strings.Contains(string(text), `Ref":`) {
		return ""
	}
	return string(text)
}

// Plain returns a schema without its annotations.
func Plain(raw any) any {
	object, ok := raw.(map[string]any)
	if !ok {
		return raw
	}
	out := schema.Replaced(object, "", 0, func(s schema.Subschema) any { return Plain(s.Schema) })
	maps.DeleteFunc(out, func(k string, _ any) bool { return annotations[k] || strings.HasPrefix(k, "x-") })
	return out
}
