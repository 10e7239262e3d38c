package validate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A fastSchema is a schema of the common keywords, made ready to judge the bytes of a JSON
// text in one pass. It finds a text valid or says nothing: whatever is not known here, and
// whatever is wrong, is for an engine to tell.
type fastSchema struct {
	unknown bool // it has what is not known here, so no value is found valid
	kinds   kinds
	choice  []*fastSchema // anyOf or oneOf, whose kinds are apart: no value fits two
	enum    *fastEnum

	length   limits // of a string, in characters
	pattern  *regexp.Regexp
	size     int // of the pattern, in instructions
	bounds   []fastBound
	multiple int64 // 0: none

	items  *fastSchema // nil: anything
	nItems limits

	members  []fastMember
	index    map[string]int // into members
	required int            // how many of the members are
	others   *fastSchema    // of other members; nil: anything
	closed   bool           // there may be no others
	nMembers limits
}

type fastMember struct {
	schema   *fastSchema
	required bool
}

// kinds are some of the kinds of JSON values.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindInteger // a number of digits alone; 5.0 is one, too, but left to an engine
	kindFraction
	kindString
	kindArray
	kindObject
	allKinds = 1<<iota - 1
)

var kindsOf = map[string]kinds{
	"null": kindNull, "boolean": kindBool, "integer": kindInteger, "number": kindInteger | kindFraction,
	"string": kindString, "array": kindArray, "object": kindObject,
}

type limits struct{ min, max int64 }

var noLimits = limits{0, maxCount}

func (l limits) hold(n int) bool { return int64(n) >= l.min && int64(n) <= l.max }

// fastEnum are allowed values: texts, and other scalars as they are written. Those that
// are objects or arrays are not among them.
type fastEnum struct{ texts, words map[string]bool }

// fastBound is the least or the most that a number may be.
type fastBound struct {
	limit            float64
	short            bool // of so few digits that a double tells it from all others
	upper, exclusive bool
}

// maxMembers is how many members a fastSchema knows by their names.
const maxMembers = 256

// anything is what a nil schema stands for: every value fits it.
var anything = newFast()

func newFast() *fastSchema {
	return &fastSchema{kinds: allKinds, length: noLimits, nItems: noLimits, nMembers: noLimits}
}

// newFastSchema returns a schema in the form that judges bytes; nil when no text would be found valid.
func newFastSchema(schema any, format bool) *fastSchema {
	if f := compileFast(schema, format); !f.unknown {
		return f
	}
	return nil
}

// compileFast makes a compiled schema ready. Each keyword is held to whatever the draft:
// what a draft does not know is at worst left to its engine.
func compileFast(schema any, format bool) *fastSchema {
	f := newFast()
	obj, ok := schema.(map[string]any)
	if !ok {
		f.unknown = schema != true
		return f
	}
	for name, v := range obj {
		if !f.keyword(name, v, format) {
			f.unknown = true
		}
	}
	f.require(obj["required"])
	if f.choice != nil && len(obj) > 1 && !onlyNotes(obj) {
		f.unknown = true
	}
	return f
}

// notes are keywords that ask nothing of a value; "$id" is one, since references are not known here.
var notes = map[string]bool{
	"$id": true, "title": true, "description": true, "default": true, "examples": true, "example": true, "$comment": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "$defs": true, "definitions": true,
}

func isNote(keyword string) bool { return notes[keyword] || strings.HasPrefix(keyword, "x-") }

func onlyNotes(obj map[string]any) bool {
	for name := range obj {
		if name != "anyOf" && name != "oneOf" && !isNote(name) {
			return false
		}
	}
	return obj["anyOf"] == nil || obj["oneOf"] == nil
}

// keyword takes in one keyword; false when that is not known, or its value is not.
func (f *fastSchema) keyword(name string, v any, format bool) (known bool) {
	switch name {
	case "type":
		f.kinds, known = typeKinds(v)
	case "enum":
		list, ok := v.([]any)
		f.enum, known = newFastEnum(list), ok && f.enum == nil
	case "const":
		f.enum, known = newFastEnum([]any{v}), f.enum == nil
	case "minLength":
		known = setCount(&f.length.min, v)
	case "maxLength":
		known = setCount(&f.length.max, v)
	case "minItems":
		known = setCount(&f.nItems.min, v)
	case "maxItems":
		known = setCount(&f.nItems.max, v)
	case "minProperties":
		known = setCount(&f.nMembers.min, v)
	case "maxProperties":
		known = setCount(&f.nMembers.max, v)
	case "pattern":
		text, _ := v.(string)
		var err error
		if f.size, err = patternSize(text); err == nil {
			f.pattern, err = regexp.Compile(text)
		}
		known = err == nil
	case "format":
		known = !format
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		known = f.bound(name, v)
	case "multipleOf":
		n, _ := v.(json.Number)
		m, err := strconv.ParseInt(string(n), 10, 64)
		f.multiple, known = m, err == nil && len(n) <= shortNumber && m > 0
	case "uniqueItems":
		known = v == false
	case "items":
		if _, list := v.([]any); !list {
			f.items, known = compileFast(v, format), true
		}
	case "properties":
		known = f.properties(v, format)
	case "additionalProperties":
		if f.closed, known = v == false, true; !f.closed {
			f.others = compileFast(v, format)
		}
	case "anyOf", "oneOf":
		known = f.branches(v, format)
	case "required":
		known = true // after all others
	default:
		known = isNote(name)
	}
	return known
}

func typeKinds(v any) (kinds, bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var all kinds
	for _, item := range list {
		name, _ := item.(string)
		k, ok := kindsOf[name]
		if !ok {
			return 0, false
		}
		all |= k
	}
	return all, true
}

func newFastEnum(list []any) *fastEnum {
	e := &fastEnum{texts: map[string]bool{}, words: map[string]bool{}}
	for _, item := range list {
		switch item := item.(type) {
		case string:
			e.texts[item] = true
		case json.Number:
			e.words[string(item)] = true
		case bool:
			e.words[strconv.FormatBool(item)] = true
		case nil:
			e.words["null"] = true
		}
	}
	return e
}

func setCount(into *int64, v any) (ok bool) {
	n, _ := v.(json.Number)
	*into, ok = asCount(n)
	return ok
}

// shortNumber is how many characters a number may have that a double tells from all others
// of so many: it keeps 15 digits.
const shortNumber = 15

func (f *fastSchema) bound(name string, v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false // draft-04 has booleans beside minimum and maximum
	}
	limit, err := n.Float64()
	f.bounds = append(f.bounds, fastBound{
		limit: limit, short: isShort(string(n)),
		upper: strings.HasSuffix(strings.ToLower(name), "maximum"), exclusive: strings.HasPrefix(name, "exclusive"),
	})
	return err == nil
}

func isShort(number string) bool {
	return len(number) <= shortNumber && !strings.ContainsAny(number, "eE")
}

func (f *fastSchema) properties(v any, format bool) bool {
	obj, ok := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		f.member(name, compileFast(obj[name], format))
	}
	return ok && len(obj) <= maxMembers
}

func (f *fastSchema) member(name string, s *fastSchema) *fastMember {
	i, ok := f.index[name]
	if !ok {
		if f.index == nil {
			f.index = map[string]int{}
		}
		i = len(f.members)
		f.index[name] = i
		f.members = append(f.members, fastMember{schema: s})
	}
	return &f.members[i]
}

// require marks the members that must be there; those without a schema of their own have that of others.
func (f *fastSchema) require(v any) {
	list, ok := v.([]any)
	for _, item := range list {
		name, isString := item.(string)
		m := f.member(name, f.others)
		if !isString || m.required || f.closed && m.schema == nil {
			f.unknown = true
		}
		m.required = true
		f.required++
	}
	if v != nil && !ok || len(f.members) > maxMembers {
		f.unknown = true
	}
}

// branches takes in an anyOf or oneOf of which the type of a value chooses one branch, such as
// string or null.
func (f *fastSchema) branches(v any, format bool) bool {
	list, _ := v.([]any)
	var all kinds
	for _, item := range list {
		b := compileFast(item, format)
		if b.kinds&all != 0 {
			return false
		}
		all |= b.kinds
		f.choice = append(f.choice, b)
	}
	return len(list) > 0
}
