package schema

import (
	"encoding/json"
	"math/big"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
)

// A keyword is a keyword of JSON Schema 2020-12 that is kept.
type keyword struct {
	// annotation means that the keyword constrains nothing.
	annotation bool
	// convert returns the converted value. If ok is false, the value does not suit the keyword, and
	// the keyword is left out.
	convert func(w *walk, at doc.Location, v any) (out any, ok bool)
	// wants describes the required value, for the warning.
	wants string
}

// keywords is the list of kept keywords; all others are dropped: discriminator, xml, externalDocs
// and x-… are not constraints, and $defs, $id and $anchor are only used to resolve references.
// References, nullable, example, required and the exclusive bounds are handled separately.
func keywords() map[string]keyword {
	text := keyword{convert: is[string], wants: "text"}
	note := keyword{convert: is[string], wants: "text", annotation: true}
	flag := keyword{convert: is[bool], wants: "true or false", annotation: true}
	number := keyword{convert: isNumber, wants: "a number"}
	count := keyword{convert: isCount, wants: "a whole number of at least 0"}
	one := keyword{convert: oneSchema, wants: "a schema"}
	list := keyword{convert: schemaList, wants: "a non-empty list of schemas"}
	named := keyword{convert: schemaMap, wants: "an object of schemas"}
	return map[string]keyword{
		"title": note, "description": note, "deprecated": flag, "readOnly": flag, "writeOnly": flag,
		"default":  {convert: anything, annotation: true},
		"examples": {convert: fullList, wants: "a list", annotation: true},
		"type":     {convert: typeNames, wants: "a type of JSON Schema, or a list of them"},
		"enum":     {convert: fullList, wants: "a non-empty list"},
		"const":    {convert: anything},
		"format":   text, "contentMediaType": text, "contentEncoding": text, "contentSchema": one,
		"pattern": {convert: pattern, wants: "a regular expression (ECMA-262)"},
		"minimum": number, "maximum": number, "multipleOf": {convert: isPositive, wants: "a number above 0"},
		"minLength": count, "maxLength": count, "minItems": count, "maxItems": count,
		"minContains": count, "maxContains": count, "minProperties": count, "maxProperties": count,
		"uniqueItems": {convert: is[bool], wants: "true or false"},
		"items":       one, "contains": one, "additionalProperties": one, "propertyNames": one, "unevaluatedItems": one, "unevaluatedProperties": one,
		"not": one, "if": one, "then": one, "else": one,
		"allOf": list, "anyOf": list, "oneOf": list, "prefixItems": list,
		"properties": named, "dependentSchemas": named,
		"patternProperties": {convert: patternMap, wants: "an object of schemas by regular expression (ECMA-262)"},
		"dependentRequired": {convert: nameLists, wants: "an object of lists of names"},
	}
}

func is[T any](_ *walk, _ doc.Location, v any) (any, bool) {
	_, ok := v.(T)
	return v, ok
}

func anything(_ *walk, _ doc.Location, v any) (any, bool) { return v, true }

func isNumber(_ *walk, _ doc.Location, v any) (any, bool) {
	_, ok := rat(v)
	return v, ok
}

func isPositive(_ *walk, _ doc.Location, v any) (any, bool) {
	r, ok := rat(v)
	return v, ok && r.Sign() > 0
}

func isCount(_ *walk, _ doc.Location, v any) (any, bool) {
	r, ok := rat(v)
	if !ok || r.Sign() < 0 || !r.IsInt() {
		return nil, false
	}
	return json.Number(r.Num().String()), true
}

func rat(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(n)) // doc.Parse bounds exponents
}

var typeList = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func typeNames(_ *walk, _ doc.Location, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, slices.Contains(typeList, v)
	case []any:
		var out []any
		for _, e := range v {
			s, ok := e.(string)
			if !ok || !slices.Contains(typeList, s) {
				return nil, false
			}
			if !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
		if len(out) == 1 {
			return out[0], true
		}
		return out, len(out) > 0
	}
	return nil, false
}

func fullList(_ *walk, _ doc.Location, v any) (any, bool) {
	l, ok := v.([]any)
	return v, ok && len(l) > 0
}

func pattern(_ *walk, _ doc.Location, v any) (any, bool) {
	s, ok := v.(string)
	return v, ok && isRegexp(s)
}

const maxPattern = 10_000

// isRegexp reports whether the engines of pkg/validate can use a pattern.
func isRegexp(s string) bool {
	if len(s) > maxPattern {
		return false
	}
	if _, err := syntax.Parse(s, syntax.Perl); err == nil {
		return true
	}
	_, err := regexp2.Compile(s, regexp2.ECMAScript|regexp2.Unicode)
	return err == nil
}

func oneSchema(w *walk, at doc.Location, v any) (any, bool) {
	switch v.(type) {
	case bool, map[string]any:
		return w.schema(at, v, nil), true
	}
	return nil, false
}

func schemaList(w *walk, at doc.Location, v any) (any, bool) {
	l, ok := v.([]any)
	if !ok || len(l) == 0 {
		return nil, false
	}
	return w.list(at, l, nil), true
}

func schemaMap(w *walk, at doc.Location, v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		out[k] = w.schema(at.Child(k), e, nil)
	}
	return out, true
}

func patternMap(w *walk, at doc.Location, v any) (any, bool) {
	m, ok := v.(map[string]any)
	for k := range m {
		ok = ok && isRegexp(k)
	}
	if !ok {
		return nil, false
	}
	return schemaMap(w, at, v)
}

func nameLists(_ *walk, _ doc.Location, v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		l, ok := names(e)
		if !ok {
			return nil, false
		}
		out[k] = l
	}
	return out, true
}

// names reads a list of distinct names.
func names(v any) ([]any, bool) {
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]any, 0, len(l))
	for _, e := range l {
		if _, ok := e.(string); !ok {
			return nil, false
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return out, true
}
