package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// order lists the keywords of a schema in reading order. Other keywords follow by name, and $defs comes last.
var order = func() map[string]int {
	words := []string{jsonschema.Ref, "title", "description", "type", "format", "enum", "const", "properties", "required", "additionalProperties", "items"}
	m := make(map[string]int, len(words))
	for i, w := range words {
		m[w] = i - len(words)
	}
	m["examples"], m["default"], m["$defs"] = 1, 1, 2
	return m
}()

// Encode writes a converted schema as JSON, with keywords in a fixed order and properties in document order.
func Encode(v any) json.RawMessage {
	var e encoder
	e.encode(v, true)
	return e.Bytes()
}

// EncodeSorted is [Encode] with properties sorted by name, so that the text does not depend on their order.
func EncodeSorted(v any) json.RawMessage {
	e := encoder{sorted: true}
	e.encode(v, true)
	return e.Bytes()
}

// Properties are the properties of a converted schema, in document order.
type Properties []Property

// A Property is one of [Properties].
type Property struct {
	Name   string
	Schema any
}

type encoder struct {
	bytes.Buffer
	sorted bool
}

// encode writes a value. isSchema tells whether its keys are keywords.
func (b *encoder) encode(v any, isSchema bool) {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Collect(maps.Keys(v))
		slices.SortFunc(keys, func(x, y string) int {
			if isSchema {
				if c := cmp.Compare(order[x], order[y]); c != 0 {
					return c
				}
			}
			return cmp.Compare(x, y)
		})
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.scalar(k)
			b.WriteByte(':')
			b.child(k, v[k], isSchema)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.encode(e, isSchema)
		}
		b.WriteByte(']')
	default:
		b.scalar(v)
	}
}

// child writes the value of a key. The value of a keyword is data, a map of schemas, or schemas.
func (b *encoder) child(key string, v any, isSchema bool) {
	switch key {
	case "properties", "patternProperties", "dependentSchemas", "$defs":
		named, ok := v.(Properties)
		if m, isMap := v.(map[string]any); isMap {
			ok = true
			for _, k := range slices.Sorted(maps.Keys(m)) {
				named = append(named, Property{k, m[k]})
			}
		}
		if isSchema && ok {
			b.named(named)
			return
		}
	case "default", "const", "enum", "examples", "required", "dependentRequired":
		isSchema = false
	}
	b.encode(v, isSchema)
}

// named writes a map of schemas.
func (b *encoder) named(list Properties) {
	if b.sorted {
		list = slices.SortedFunc(slices.Values(list), func(x, y Property) int { return cmp.Compare(x.Name, y.Name) })
	}
	b.WriteByte('{')
	for i, p := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.scalar(p.Name)
		b.WriteByte(':')
		b.encode(p.Schema, true)
	}
	b.WriteByte('}')
}

func (b *encoder) scalar(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("schema: a tree that is not JSON: " + err.Error()) // trees come from doc.Parse, so they are JSON
	}
	b.Write(text)
}
