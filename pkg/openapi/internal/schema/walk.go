package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// walk converts one fragment.
type walk struct {
	c          *Converter
	dir        Direction
	refs       map[string]bool
	violations []string
}

// nameSet is a set of property names.
type nameSet map[string]bool

// schema converts one schema. absent are properties that an enclosing schema of the same object
// leaves out.
func (w *walk) schema(at doc.Location, node any, absent nameSet) any {
	if !w.c.step(1) {
		w.violation(fmt.Sprintf("the document refers to more than %d schemas", maxSteps))
		return true
	}
	m, ok := node.(map[string]any)
	if !ok {
		if b, ok := node.(bool); ok {
			return b
		}
		w.c.warn(at, fmt.Sprintf("a schema must be an object or a boolean, got %s: it accepts anything", kindOf(node)))
		return true
	}
	out := map[string]any{}
	ref, isRef := jsonschema.Reference(m)
	if dyn, ok := m[jsonschema.DynamicRef].(string); ok && !isRef {
		w.c.warn(at, jsonschema.DynamicRef+" is read as "+jsonschema.Ref)
		ref, isRef = dyn, true
	}
	if isRef {
		w.reference(at, ref, out)
	}
	own := w.absent(at, m, absent)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		kw, known := w.c.words[k]
		if !known || isRef && w.c.v30 && !kw.annotation {
			continue
		}
		v := m[k]
		child := at.Child(k)
		var val any
		var ok bool
		switch k {
		case "properties":
			val, ok = w.properties(child, v, own)
		case "allOf", "anyOf", "oneOf":
			list, isList := v.([]any)
			if ok = isList && len(list) > 0; ok {
				val = w.list(child, list, own)
			}
		case "then", "else":
			if _, isMap := v.(map[string]any); isMap {
				val, ok = w.schema(child, v, own), true
			} else {
				val, ok = kw.convert(w, child, v)
			}
		case "items":
			if list, isList := v.([]any); isList && len(list) > 0 && m["prefixItems"] == nil {
				k, val, ok = "prefixItems", w.list(child, list, nil), true // the array form of draft-04
			} else {
				val, ok = kw.convert(w, child, v)
			}
		default:
			val, ok = kw.convert(w, child, v)
		}
		if !ok {
			w.c.warn(child, fmt.Sprintf("%s must be %s: left out", k, kw.wants))
			continue
		}
		out[k] = val
	}
	if !isRef || !w.c.v30 {
		w.required(at, m, own, out)
		w.exclusive(at, m, "exclusiveMinimum", "minimum", out)
		w.exclusive(at, m, "exclusiveMaximum", "maximum", out)
	}
	if ex, ok := m["example"]; ok && out["examples"] == nil {
		out["examples"] = []any{ex}
	}
	if m["nullable"] == true {
		return nullable(out)
	}
	return out
}

// violation records why the fragment must not be used. It records each reason once.
func (w *walk) violation(reason string) {
	if !slices.Contains(w.violations, reason) && len(w.violations) < 20 {
		w.violations = append(w.violations, reason)
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case string:
		return "text"
	case json.Number:
		return "a number"
	}
	return fmt.Sprintf("%T", v)
}

func (w *walk) reference(at doc.Location, ref string, out map[string]any) {
	target, _, err := w.c.set.Resolve(at, ref)
	if err != nil {
		w.violation(err.Error())
		return
	}
	name := w.c.name(target)
	w.refs[name] = true
	out[jsonschema.Ref] = "#/$defs/" + name
}

func (w *walk) list(at doc.Location, list []any, absent nameSet) []any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = w.schema(at.Child(strconv.Itoa(i)), e, absent)
	}
	return out
}

func (w *walk) properties(at doc.Location, v any, absent nameSet) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(Properties, 0, len(m))
	for _, k := range at.File.Names(m) {
		if w.dir == Request && absent[k] {
			continue
		}
		out = append(out, Property{k, w.schema(at.Child(k), m[k], nil)})
	}
	return out, true
}

func (w *walk) required(at doc.Location, m map[string]any, absent nameSet, out map[string]any) {
	v, ok := m["required"]
	if !ok {
		return
	}
	list, ok := names(v)
	if !ok {
		w.c.warn(at.Child("required"), "required must be a list of names: left out")
		return
	}
	list = slices.DeleteFunc(list, func(n any) bool { return absent[n.(string)] })
	if len(list) > 0 {
		out["required"] = list
	}
}

// absent returns the properties that this direction leaves out or does not
// require: those of the schema and of its allOf, and those of the schema around it.
func (w *walk) absent(at doc.Location, m map[string]any, outer nameSet) nameSet {
	if m["properties"] == nil && m["allOf"] == nil {
		return outer
	}
	own := maps.Clone(outer)
	if own == nil {
		own = nameSet{}
	}
	w.collectAbsent(at, m, own, map[doc.Location]bool{})
	return own
}

func (w *walk) collectAbsent(at doc.Location, m map[string]any, into nameSet, seen map[doc.Location]bool) {
	props, _ := m["properties"].(map[string]any)
	if seen[at] || !w.c.step(1+len(props)/4) {
		return
	}
	seen[at] = true
	for name, p := range props {
		if pm, ok := p.(map[string]any); !ok || pm[jsonschema.Ref] == nil && pm[mark(w.dir)] == nil {
			continue // the usual case, which needs no location
		}
		if w.c.Absent(at.Child("properties", name), p, w.dir) {
			into[name] = true
		}
	}
	all, _ := m["allOf"].([]any)
	for i, e := range all {
		eat, node, err := w.c.Follow(at.Child("allOf", strconv.Itoa(i)), e)
		if em, ok := node.(map[string]any); ok && err == nil {
			w.collectAbsent(eat, em, into, seen)
		}
	}
}

// Absent reports whether a property is readOnly in a request or writeOnly in a
// response, itself or through its reference.
func (c *Converter) Absent(at doc.Location, node any, dir Direction) bool {
	word := mark(dir)
	m, ok := node.(map[string]any)
	if !ok {
		return false
	}
	if b, ok := m[word].(bool); ok && (!c.v30 || m[jsonschema.Ref] == nil) {
		return b
	}
	if m[jsonschema.Ref] == nil {
		return false
	}
	_, target, err := c.Follow(at, node)
	t, ok := target.(map[string]any)
	return err == nil && ok && t[word] == true
}

// mark returns the keyword of the properties that a direction leaves out.
func mark(dir Direction) string {
	if dir == Response {
		return "writeOnly"
	}
	return "readOnly"
}

// exclusive converts the boolean bounds of OpenAPI 3.0 (JSON Schema draft-04) to
// the numeric ones of 2020-12.
func (w *walk) exclusive(at doc.Location, m map[string]any, word, bound string, out map[string]any) {
	switch v := m[word].(type) {
	case nil:
	case bool:
		if limit, ok := out[bound]; ok && v {
			out[word] = limit
			delete(out, bound)
		}
	case json.Number:
		out[word] = v
	default:
		w.c.warn(at.Child(word), word+" must be a number, or a boolean in OpenAPI 3.0: left out")
	}
}

// nullable returns a converted schema that also accepts null (OpenAPI 3.0.3, Schema Object,
// nullable). A composed schema is joined with null by anyOf, because its parts do not mention null.
func nullable(out map[string]any) map[string]any {
	for _, k := range []string{jsonschema.Ref, "allOf", "anyOf", "oneOf", "not", "if"} {
		if _, ok := out[k]; ok {
			return eitherNull(out)
		}
	}
	switch t := out["type"].(type) {
	case string:
		if t != "null" {
			out["type"] = []any{t, "null"}
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			out["type"] = append(slices.Clone(t), "null")
		}
	}
	if l, ok := out["enum"].([]any); ok && !slices.Contains(asNull(l), true) {
		out["enum"] = append(slices.Clone(l), nil)
	}
	if v, ok := out["const"]; ok && v != nil {
		delete(out, "const")
		out["enum"] = []any{v, nil}
	}
	return out
}

func asNull(l []any) []bool {
	out := make([]bool, len(l))
	for i, v := range l {
		out[i] = v == nil
	}
	return out
}

func eitherNull(out map[string]any) map[string]any {
	outer := map[string]any{}
	for _, k := range []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"} {
		if v, ok := out[k]; ok {
			outer[k] = v
			delete(out, k)
		}
	}
	outer["anyOf"] = []any{out, map[string]any{"type": "null"}}
	return outer
}
