package validate

import (
	"encoding/json"
	"strconv"

	"toolctl.dev/toolctl/pkg/schema"
)

// A bundle rewrites a schema for gojsonschema as one document that contains only
// keywords of that engine. Every reference is "#/definitions/N", and there are no ids.
//
// The engine would resolve the original references by itself: it fetches unknown
// ones, and treats every object with an "id" as a schema, even one under
// "default". It would then run something else than what the graph checked.
type bundle struct {
	g       *graph
	targets map[int]bool // nodes that are reference targets
	format  bool
}

// plain keywords are copied as they are.
var plain = []string{
	"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"pattern", "uniqueItems", "required",
}

// bundleFor returns the schema for gojsonschema. It returns false if part of the schema is of
// another draft or contains a construct that gojsonschema handles incorrectly.
func bundleFor(g *graph, format bool) (any, bool) {
	b := bundle{g: g, targets: map[int]bool{}, format: format}
	draft := g.nodes[0].res.draft
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.opaque || n.res.draft != draft {
			return nil, false
		}
		if n.ref >= 0 {
			b.targets[n.ref] = true
		}
		if obj, ok := n.schema.(map[string]any); ok && (inexact(obj["enum"]) || inexact(obj["const"])) {
			return nil, false
		}
	}
	definitions := map[string]any{}
	for i := range b.targets {
		definitions[strconv.Itoa(i)] = b.body(i)
	}
	root := b.schema(0)
	obj, ok := root.(map[string]any)
	if ok && len(definitions) > 0 {
		obj["definitions"] = definitions
	}
	return root, true
}

// inexact reports whether v contains a number that a double cannot represent
// exactly: gojsonschema compares enum and const as doubles.
func inexact(v any) bool {
	switch v := v.(type) {
	case json.Number:
		digits := 0
		for _, c := range v {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		return digits > 15
	case []any:
		for _, item := range v {
			if inexact(item) {
				return true
			}
		}
	case map[string]any:
		for _, m := range v {
			if inexact(m) {
				return true
			}
		}
	}
	return false
}

// schema writes a node in place, or by reference if other nodes refer to it too.
func (b *bundle) schema(i int) any {
	if b.targets[i] {
		return refTo(i)
	}
	return b.body(i)
}

func refTo(i int) map[string]any {
	return map[string]any{schema.Ref: "#/definitions/" + strconv.Itoa(i)}
}

func (b *bundle) body(i int) any {
	n := &b.g.nodes[i]
	obj, ok := n.schema.(map[string]any)
	if !ok {
		return n.schema
	}
	if n.ref >= 0 {
		return refTo(n.ref)
	}
	out := map[string]any{}
	for _, kw := range plain {
		if v, ok := obj[kw]; ok {
			out[kw] = v
		}
	}
	for _, kw := range counting {
		if num, ok := obj[kw].(json.Number); ok {
			if c, ok := asCount(num); ok { // 3.0 is an integer, but not to gojsonschema
				out[kw] = json.Number(strconv.FormatInt(c, 10))
			}
		}
	}
	if f, ok := obj["format"]; ok && b.format {
		out["format"] = f
	}
	draft := n.res.draft
	for _, kw := range schema.Keywords {
		if v, ok := obj[kw.Name]; ok && kw.Role != schema.Unused && kw.In(draft) {
			out[kw.Name] = v
		}
	}
	return schema.Replaced(out, n.at.ptr, draft, func(s schema.Subschema) any {
		return b.schema(b.g.index[place{n.at.doc, s.Pointer}])
	})
}
