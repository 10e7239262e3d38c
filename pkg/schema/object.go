package schema

import (
	"maps"
	"slices"
)

// An Object is a JSON object. A decoded document holds map[string]any, or values of another type that
// implements Object, such as one that keeps the order of the members.
type Object interface {
	Names() []string
	Get(name string) (value any, ok bool)
	Set(name string, value any)
	Drop(name string)
	// Clone returns a copy that shares the values of the members.
	Clone() Object
}

// ObjectOf returns a value as an object, or nil if it is not an object. A map[string]any stays the same
// map.
func ObjectOf(v any) Object {
	switch v := v.(type) {
	case map[string]any:
		return object(v)
	case Object:
		return v
	}
	return nil
}

// Map returns an object that [Join] or [Document.Whole] made from maps, or nil for any other object.
func Map(o Object) map[string]any {
	m, _ := o.(object)
	return m
}

// plain returns a value with the types of decoded documents.
func plain(v any) any {
	if o, ok := v.(object); ok {
		return map[string]any(o)
	}
	return v
}

type object map[string]any

func (o object) Names() []string { return slices.Sorted(maps.Keys(o)) }

func (o object) Get(name string) (any, bool) {
	v, ok := o[name]
	return v, ok
}

func (o object) Set(name string, v any) { o[name] = plain(v) }
func (o object) Drop(name string)       { delete(o, name) }
func (o object) Clone() Object          { return maps.Clone(o) }
