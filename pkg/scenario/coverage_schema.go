package scenario

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// schemaWalk collects the parts of a schema that arguments can cover. Items of arrays have the
// token "*". It follows references within the document.
type schemaWalk struct {
	doc        *schema.Document
	properties []string
	required   []string
	enums      []enumValue
}

type enumValue struct {
	pointer string
	value   any
}

// maxSchemaDepth limits the depth, because schemas may refer to themselves.
const maxSchemaDepth = 6

func (w *schemaWalk) schema(raw json.RawMessage) {
	doc, err := validate.Decode(raw)
	if err != nil {
		return
	}
	w.doc = schema.NewDocument(doc)
	w.walk("", doc, 0)
}

func (w *schemaWalk) walk(pointer string, node any, depth int) {
	s, ok := node.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return
	}
	if target, ok := w.doc.Target(s); ok {
		w.walk(pointer, target, depth+1)
	}
	if pointer != "" {
		w.values(pointer, s)
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, name := range sortedKeys(properties) {
			p := v1.Pointer(pointer, name)
			if !slices.Contains(w.properties, p) {
				w.properties = append(w.properties, p)
			}
			w.walk(p, properties[name], depth+1)
		}
	}
	if required, ok := s["required"].([]any); ok {
		for _, name := range required {
			if text, ok := name.(string); ok && !slices.Contains(w.required, v1.Pointer(pointer, text)) {
				w.required = append(w.required, v1.Pointer(pointer, text))
			}
		}
	}
	w.walk(pointer+"/*", s["items"], depth+1)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if parts, ok := s[key].([]any); ok {
			for _, part := range parts {
				w.walk(pointer, part, depth+1)
			}
		}
	}
}

func (w *schemaWalk) values(pointer string, s map[string]any) {
	list, _ := s["enum"].([]any)
	for _, v := range list {
		w.enums = append(w.enums, enumValue{pointer, v})
	}
}

// values collects the values in arguments by pointer, with "*" for the items of arrays.
func values(pointer string, doc any, into map[string][]any, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	if pointer != "" {
		into[pointer] = append(into[pointer], doc)
	}
	switch v := doc.(type) {
	case map[string]any:
		for key, item := range v {
			values(v1.Pointer(pointer, key), item, into, depth+1)
		}
	case []any:
		for _, item := range v {
			values(pointer+"/*", item, into, depth+1)
		}
	}
}

// generalize replaces the indexes of a pointer by "*".
func generalize(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, t := range tokens {
		if i > 0 && t != "" && strings.Trim(t, "0123456789") == "" {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}
