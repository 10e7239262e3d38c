package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// order puts the keywords of a schema in the order in which people read them;
// those that are not in it follow by name, and $defs comes last.
var order = func() map[string]int {
	words := []string{"$ref", "title", "description", "type", "format", "enum", "const", "properties", "required", "additionalProperties", "items"}
	m := make(map[string]int, len(words))
	for i, w := range words {
		m[w] = i - len(words)
	}
	m["examples"], m["default"], m["$defs"] = 1, 1, 2
	return m
}()

// Encode writes a converted schema as JSON, always in the same order.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	encode(&b, v, true)
	return b.Bytes()
}

// encode writes a value; isSchema says that its keys are keywords.
func encode(b *bytes.Buffer, v any, isSchema bool) {
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
			scalar(b, k)
			b.WriteByte(':')
			child(b, k, v[k], isSchema)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, e, isSchema)
		}
		b.WriteByte(']')
	default:
		scalar(b, v)
	}
}

// child writes the value of a key: below a keyword it is data, schemas by name, or schemas.
func child(b *bytes.Buffer, key string, v any, isSchema bool) {
	named, isMap := v.(map[string]any)
	switch key {
	case "properties", "patternProperties", "dependentSchemas", "$defs":
		if isSchema && isMap {
			b.WriteByte('{')
			for i, k := range slices.Sorted(maps.Keys(named)) {
				if i > 0 {
					b.WriteByte(',')
				}
				scalar(b, k)
				b.WriteByte(':')
				encode(b, named[k], true)
			}
			b.WriteByte('}')
			return
		}
	case "default", "const", "enum", "examples", "required", "dependentRequired":
		isSchema = false
	}
	encode(b, v, isSchema)
}

func scalar(b *bytes.Buffer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("schema: a tree that is not JSON: " + err.Error()) // trees come from doc.Parse
	}
	b.Write(text)
}
