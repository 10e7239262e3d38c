// Package params reads the parameters of an assertion or a validator into the struct that declares them. The JSON tags
// of the fields are the only list of parameter names: error messages and the reference are generated from these tags.
package params

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Checker is a struct of parameters that have rules beyond their types.
type Checker interface {
	// Invalid returns a description of the violated rule, or "" if the parameters are valid.
	Invalid() string
}

// Read reads a JSON object of parameters into structs. Fields with the tag need:"WHAT" form a group for each WHAT, and
// at least one field of each group must be given. An embedded struct with the tag passes it on to its fields. An
// unknown parameter is an error, except in lenient mode (for PromptKit manifests), where Read returns the unknown
// names. Read always accepts the parameter "message", as PromptKit does. The returned message describes the error; it
// is "" if there is no error.
func Read(raw json.RawMessage, lenient bool, into ...any) (unknown []string, message string) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return nil, "the parameters must be an object, got " + v1.JSONKind(raw)
	}
	known := fields(into...)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(known, func(f field) bool { return f.name == key })
		switch {
		case i >= 0:
			if message := known[i].read(given[key]); message != "" {
				return nil, message
			}
		case key == "message":
		case lenient && (key == "min_score" || key == "max_score"):
			return nil, "it needs a score (" + key + ")"
		case lenient:
			unknown = append(unknown, key)
		default:
			names := Names(into...)
			return nil, fmt.Sprintf("unknown parameter %q: expected %s", key, strings.Join(names, ", ")) + v1.DidYouMean(key, names)
		}
	}
	for _, f := range known {
		isGiven := func(other field) bool { return other.need == f.need && !other.empty() }
		if f.need != "" && !slices.ContainsFunc(known, isGiven) {
			return nil, "the parameter " + f.need + " is missing"
		}
	}
	for _, one := range into {
		if c, ok := one.(Checker); ok && c.Invalid() != "" {
			return nil, c.Invalid()
		}
	}
	return unknown, ""
}

// Names returns the names of the parameters of structs.
func Names(of ...any) []string {
	var names []string
	for _, f := range fields(of...) {
		names = append(names, f.name)
	}
	return names
}

// field is one parameter.
type field struct {
	name, need string
	value      reflect.Value
}

// fields returns the parameters of structs, including those of nested structs.
func fields(of ...any) (all []field) {
	var add func(v reflect.Value, need string)
	add = func(v reflect.Value, need string) {
		for i := range v.NumField() {
			tag, in := v.Type().Field(i).Tag, v.Field(i)
			need := cmp.Or(tag.Get("need"), need)
			if name := tag.Get("json"); name != "" {
				all = append(all, field{name, need, in})
			} else if in.Kind() == reflect.Struct {
				add(in, need)
			}
		}
	}
	for _, one := range of {
		add(reflect.ValueOf(one).Elem(), "")
	}
	return all
}

func (f *field) empty() bool {
	if k := f.value.Kind(); k == reflect.Slice || k == reflect.Map {
		return f.value.Len() == 0
	}
	return f.value.IsZero()
}

// read reads the value of a parameter. It returns a description of the error, or "" if there is no error.
func (f *field) read(raw json.RawMessage) (message string) {
	err := json.Unmarshal(raw, f.value.Addr().Interface())
	if err == nil {
		return ""
	}
	if bad, ok := err.(*expressionError); ok { //nolint:errorlint // one inside another value has no name of its own
		return f.name + bad.at + " is " + bad.what
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		name := strings.TrimSuffix(f.name+"."+wrong.Field, ".")
		return fmt.Sprintf("parameter %q: expected %s, got %s", name, typeName(wrong.Type), strings.TrimPrefix(wrong.Value, "number "))
	}
	return fmt.Sprintf("parameter %q: %v", f.name, err)
}

// typeName returns the name of a Go type as users know it.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}
