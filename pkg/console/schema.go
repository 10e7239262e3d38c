package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// object is a JSON object that keeps the order of its keys.
type object struct {
	keys []string
	of   map[string]any
}

func (o *object) get(key string) any {
	v, _ := o.Get(key)
	return v
}

func (o *object) has(key string) bool {
	_, ok := o.Get(key)
	return ok
}

// Set adds or replaces a member.
//
//go:noinline // it is called in many places
func (o *object) Set(key string, v any) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.of[key] = v
}

func newObject() *object { return &object{of: map[string]any{}} }

func (o *object) clone() *object {
	return &object{keys: slices.Clone(o.keys), of: maps.Clone(o.of)}
}

// Drop removes a member.
func (o *object) Drop(key string) {
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	delete(o.of, key)
}

// MarshalJSON implements [json.Marshaler].
func (o *object) MarshalJSON() ([]byte, error) {
	members := make([]string, len(o.keys))
	for i, k := range o.keys {
		v, err := jsontext.Marshal(o.of[k])
		if err != nil {
			return nil, err
		}
		members[i] = string(jsontext.Quote(k)) + ":" + string(v)
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}

// maxNesting limits the depth of decoded JSON.
const maxNesting = 200

// decode reads JSON and keeps the order of keys and all digits of numbers.
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
			o.Set(key.(string), v)
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

// Names returns the names of the members in their order, for [jsonschema.Object].
func (o *object) Names() []string { return o.keys }

// Get returns a member.
func (o *object) Get(name string) (any, bool) {
	if o == nil {
		return nil, false
	}
	v, ok := o.of[name]
	return v, ok
}

// Clone returns a copy that shares the values.
func (o *object) Clone() jsonschema.Object { return o.clone() }

// schema is a JSON Schema for forms and pages: references are resolved and allOf is merged.
type schema struct {
	doc *jsonschema.Document
	// at is the schema; nil for a schema without constraints, such as true.
	at *object
}

// readSchema reads the schema of a document.
func readSchema(raw []byte) (schema, error) {
	v, err := decode(raw)
	if err != nil {
		return schema{}, err
	}
	return schema{doc: jsonschema.NewDocument(v)}.sub(v), nil
}

// again resets the limit on resolved references.
func (s schema) again() schema {
	s.doc.Again()
	return s
}

// sub returns a part of the document as a schema.
func (s schema) sub(v any) schema {
	at, _ := s.doc.Whole(v).(*object)
	return schema{s.doc, at}
}

// types returns the types that a value may have, guessed from other keywords if necessary; nil if any type is allowed.
func (s schema) types() []string { return jsonschema.Types(s.at) }

func (s schema) text(key string) string {
	t, _ := s.at.get(key).(string)
	return t
}

// with returns the schema with one more keyword.
func (s schema) with(key string, v any) schema {
	at := s.at.clone()
	at.Set(key, v)
	return schema{s.doc, at}
}

// without returns the schema without some keywords.
func (s schema) without(keys ...string) schema {
	at := s.at.clone()
	for _, k := range keys {
		at.Drop(k)
	}
	return schema{s.doc, at}
}

// join returns the conjunction of two schemas.
func (s schema) join(more schema) schema {
	at, _ := jsonschema.Join(s.at, more.at).(*object)
	return schema{s.doc, at}
}

// required reports whether an object must have a property.
func (s schema) required(name string) bool {
	all, _ := s.at.get("required").([]any)
	return slices.Contains(all, any(name))
}

// choices returns the branches of oneOf or anyOf to choose from, each joined with the rest of the schema; nil
// if there is nothing to choose. Branches that only require properties are left to validation.
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
			joined := base.join(part)
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

// shape returns how a form draws and reads a schema: as a choice, also for a value of several types; as a value of one
// type, which may be nullable; or as any JSON, with neither choices nor kind.
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
