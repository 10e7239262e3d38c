package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// object is a JSON object that keeps the order of its keys.
type object struct {
	keys []string
	of   map[string]any
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.of[key]
}

func (o *object) has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.of[key]
	return ok
}

// set adds or changes what a key has.
//
//go:noinline // it is called in many places
func (o *object) set(key string, v any) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.of[key] = v
}

func newObject() *object { return &object{of: map[string]any{}} }

func (o *object) clone() *object {
	return &object{keys: slices.Clone(o.keys), of: maps.Clone(o.of)}
}

// drop takes keys out.
func (o *object) drop(keys ...string) {
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return slices.Contains(keys, k) })
	for _, k := range keys {
		delete(o.of, k)
	}
}

// MarshalJSON implements [json.Marshaler].
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := jsontext.Marshal(k)
		if err != nil {
			return nil, err
		}
		v, err := jsontext.Marshal(o.of[k])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// maxNesting bounds the depth of JSON that is decoded here.
const maxNesting = 200

// decode reads JSON with the order of its keys and every digit of its numbers.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text follows the JSON")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v)
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

// schema is a JSON Schema as a form and a page need it: references looked up, allOf joined.
type schema struct {
	root any
	// left is how much more of the document may be looked up, so that references which lead
	// back to themselves in many ways end.
	left *int
	// at is the schema; nil for one that says nothing, such as true.
	at *object
}

// readSchema reads the schema of a document.
func readSchema(raw []byte) (schema, error) {
	v, err := decode(raw)
	if err != nil {
		return schema{}, err
	}
	return schema{root: v, left: new(int)}.again().sub(v), nil
}

const maxLookups = 20_000

// again lets as much be looked up as at the beginning.
func (s schema) again() schema {
	*s.left = maxLookups
	return s
}

const maxRefs = 32

// sub is a part of the document as a schema of its own.
func (s schema) sub(v any) schema { return schema{s.root, s.left, s.resolved(v, maxRefs)} }

// resolved follows references and joins allOf.
func (s schema) resolved(v any, left int) *object {
	o, _ := v.(*object)
	if o == nil || left == 0 {
		return o
	}
	if *s.left--; *s.left < 0 {
		return nil
	}
	ref, _ := o.get("$ref").(string)
	if ref != "" {
		target := s.resolved(s.lookup(ref), left-1)
		if target == nil {
			return o
		}
		rest := o.clone()
		rest.drop("$ref")
		o = join(target, rest)
	}
	if all, ok := o.get("allOf").([]any); ok {
		whole := o.clone()
		whole.drop("allOf")
		for _, one := range slices.Backward(all) {
			if part := s.resolved(one, left-1); part != nil {
				whole = join(part, whole)
			}
		}
		o = whole
	}
	return o
}

// lookup returns what a reference within the document names; nil when it is not there.
func (s schema) lookup(ref string) any {
	if !strings.HasPrefix(ref, "#") {
		return s.anchored(s.root, "", ref, 0)
	}
	if name := ref[1:]; name != "" && !strings.HasPrefix(name, "/") {
		return s.anchored(s.root, name, "", 0)
	}
	at := s.root
	for _, part := range strings.Split(strings.TrimPrefix(ref[1:], "/"), "/") {
		if part == "" && ref == "#" {
			return at
		}
		part = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%22", `"`).Replace(part)
		switch v := at.(type) {
		case *object:
			at = v.get(part)
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// anchored finds a schema by its $anchor or its $id.
func (s schema) anchored(v any, anchor, id string, depth int) any {
	if depth > maxNesting {
		return nil
	}
	switch v := v.(type) {
	case *object:
		if anchor != "" && (v.get("$anchor") == anchor || v.get("$dynamicAnchor") == anchor || v.get("$id") == "#"+anchor) || id != "" && v.get("$id") == id {
			return v
		}
		for _, k := range v.keys {
			if found := s.anchored(v.of[k], anchor, id, depth+1); found != nil {
				return found
			}
		}
	case []any:
		for _, one := range v {
			if found := s.anchored(one, anchor, id, depth+1); found != nil {
				return found
			}
		}
	}
	return nil
}

// join is what two schemas say together, the second before the first.
func join(a, b *object) *object {
	out := a.clone()
	for _, k := range b.keys {
		old, had := out.of[k]
		switch {
		case !had:
			out.set(k, b.of[k])
		case k == "properties":
			x, okX := old.(*object)
			y, okY := b.of[k].(*object)
			if okX && okY {
				props := x.clone()
				for _, name := range y.keys {
					if was, ok := props.of[name].(*object); ok {
						if now, ok := y.of[name].(*object); ok {
							props.set(name, join(was, now))
							continue
						}
					}
					props.set(name, y.of[name])
				}
				out.set(k, props)
				continue
			}
			out.set(k, b.of[k])
		case k == "required":
			x, _ := old.([]any)
			y, _ := b.of[k].([]any)
			out.set(k, append(slices.Clip(x), y...))
		default:
			out.set(k, b.of[k])
		}
	}
	return out
}

// types are the types that a value may have; nil for any, when nothing hints at one.
func (s schema) types() []string {
	switch t := s.at.get("type").(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				all = append(all, name)
			}
		}
		return all
	}
	for _, hint := range []struct {
		keys []string
		kind string
	}{
		{[]string{"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired"}, "object"},
		{[]string{"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}, "array"},
		{[]string{"pattern", "minLength", "maxLength", "format"}, "string"},
		{[]string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}, "number"},
	} {
		if slices.ContainsFunc(hint.keys, s.at.has) {
			return []string{hint.kind}
		}
	}
	return nil
}

func (s schema) text(key string) string {
	t, _ := s.at.get(key).(string)
	return t
}

// with is the schema with one more keyword.
func (s schema) with(key string, v any) schema {
	at := s.at.clone()
	at.set(key, v)
	return schema{s.root, s.left, at}
}

// without is the schema without some keywords.
func (s schema) without(keys ...string) schema {
	at := s.at.clone()
	at.drop(keys...)
	return schema{s.root, s.left, at}
}

// required reports whether an object must have a property.
func (s schema) required(name string) bool {
	all, _ := s.at.get("required").([]any)
	return slices.Contains(all, any(name))
}

// choices are the schemas of oneOf or anyOf of which a person chooses one, joined with what
// holds for all of them; nil when there is nothing to choose. A branch that only asks for
// properties is left to validation.
func (s schema) choices() []schema {
	for _, key := range []string{"oneOf", "anyOf"} {
		list, _ := s.at.get(key).([]any)
		if len(list) == 0 {
			continue
		}
		base := s.without(key)
		var all []schema
		tells := false
		for _, one := range list {
			part := s.sub(one)
			if part.at == nil {
				part.at = newObject()
			}
			tells = tells || slices.ContainsFunc([]string{"type", "properties", "const", "enum", "items", "pattern", "format", "minimum", "maximum", "oneOf", "anyOf"}, part.at.has)
			joined := schema{s.root, s.left, join(base.at.clone(), part.at)}
			if !part.at.has("title") && base.at.has("title") {
				joined = joined.without("title")
			}
			if !part.at.has("description") && base.at.has("description") {
				joined = joined.without("description")
			}
			all = append(all, joined)
		}
		if tells || len(s.types()) == 0 && !s.at.has("properties") {
			return all
		}
	}
	return nil
}

// shape says as what a schema is drawn and read: as one of some choices, of which several types
// are some too; else as a value of a type, which may be null as well; else as any JSON.
func (s schema) shape() (all []schema, kind string, nullable bool) {
	if all := s.choices(); len(all) > 0 && len(all) <= maxChoices {
		return all, "", false
	}
	types := s.types()
	if len(types) > 1 {
		rest := slices.DeleteFunc(slices.Clone(types), func(t string) bool {
			return t == "null" || t == "integer" && slices.Contains(types, "number")
		})
		nullable = slices.Contains(types, "null")
		if len(rest) > 1 {
			if nullable {
				rest = append(rest, "null")
			}
			for _, t := range rest {
				all = append(all, s.without("default", "title", "description").with("type", t))
			}
			return all, "", false
		}
		types = rest
	}
	if len(types) == 0 {
		return nil, "", nullable
	}
	return nil, types[0], nullable
}
