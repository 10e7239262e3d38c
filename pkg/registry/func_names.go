package registry

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"toolctl.dev/toolctl/internal/jsontext"
)

// tagged applies the tags doc, description and enum of a field to its property.
func tagged(p *jsonschema.Schema, f reflect.StructField) error {
	for _, tag := range []string{"doc", "description"} {
		if text := f.Tag.Get(tag); text != "" {
			p.Description = text
		}
	}
	list, ok := f.Tag.Lookup("enum")
	if !ok {
		return nil
	}
	t := f.Type
	of := p
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		if t.Kind() != reflect.Pointer {
			of = of.Items
		}
		t = t.Elem()
	}
	if of == nil {
		return fmt.Errorf("field %s: enum: its type has no items", f.Name)
	}
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		value := any(text)
		if t.Kind() != reflect.String {
			into := reflect.New(t)
			if err := json.Unmarshal([]byte(text), into.Interface()); err != nil {
				return fmt.Errorf("field %s: enum: %q is no %s", f.Name, text, t)
			}
			value = json.RawMessage(text)
		}
		of.Enum = append(of.Enum, value)
	}
	if slices.Contains(of.Types, "null") {
		of.Enum = append(of.Enum, nil)
	}
	return nil
}

// rename renames a property.
func rename(s *jsonschema.Schema, from, to string) error {
	if from == to {
		return nil
	}
	if s.Properties[to] != nil {
		return fmt.Errorf("two fields are named %q: give one of them a json tag", to)
	}
	s.Properties[to] = s.Properties[from]
	delete(s.Properties, from)
	for _, names := range [][]string{s.Required, s.PropertyOrder} {
		if i := slices.Index(names, from); i >= 0 {
			names[i] = to
		}
	}
	return nil
}

// lowerCamel returns the JSON name of a Go field: Location becomes location, HTTPPort httpPort, UserID userID.
func lowerCamel(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}

// lowered renames the members that encoding/json wrote for fields without a tag.
func lowered(raw json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	if !untagged(t, nil) {
		return raw, nil
	}
	var out bytes.Buffer
	if err := lower(&out, raw, t); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// writesItself reports whether a type has its own JSON encoding.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

// untagged reports whether values of the type have members to rename.
func untagged(t reflect.Type, seen []reflect.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	seen = append(seen, t)
	if writesItself(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return untagged(t.Elem(), seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && !f.Anonymous && (jsonName(f) == "" || untagged(f.Type, seen)) {
				return true
			}
		}
	}
	return false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// lower writes a value of a type with the property names of the schema.
func lower(out *bytes.Buffer, raw json.RawMessage, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !untagged(t, nil) || string(raw) == "null" {
		out.Write(raw)
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	if _, err := in.Token(); err != nil {
		return err
	}
	list := t.Kind() == reflect.Slice || t.Kind() == reflect.Array
	out.WriteByte(raw[0])
	for n := 0; in.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		elem := reflect.TypeFor[any]()
		if t.Kind() != reflect.Struct {
			elem = t.Elem()
		}
		if !list {
			token, err := in.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if f, ok := t, t.Kind() == reflect.Struct; ok {
				name, elem = fieldOf(f, name)
			}
			key, err := jsontext.Marshal(name)
			if err != nil {
				return err
			}
			out.Write(key)
			out.WriteByte(':')
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		if err := lower(out, value, elem); err != nil {
			return err
		}
	}
	out.WriteByte(raw[len(raw)-1])
	return nil
}

// fieldOf returns the field that encoding/json writes under a name, and its property name.
func fieldOf(t reflect.Type, name string) (string, reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		switch tag := jsonName(f); {
		case tag == name:
			return name, f.Type
		case tag == "" && f.Name == name:
			return lowerCamel(name), f.Type
		}
	}
	return name, reflect.TypeFor[any]()
}
