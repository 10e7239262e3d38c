package validate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A fastSchema is a schema of common keywords, prepared to check the bytes of a JSON text in one pass. It
// either finds a text valid or decides nothing: an engine handles unknown keywords and reports violations. If
// nothing in the schema is doubtful, its metaschema and an engine are only needed for the first undecided
// text. Compiling takes far longer than this pass, and the graph has checked the sizes of patterns and schema.
type fastSchema struct {
	unknown  bool // it has an unknown keyword, so no value is found valid
	doubtful bool // the schema or a subschema may be illegal in draft-07 or later
	kinds    kinds
	choice   []*fastSchema // anyOf or oneOf with disjoint kinds, so that no value fits two branches
	enum     *fastEnum

	length   limits // of a string, in characters
	pattern  *regexp.Regexp
	size     int // of the pattern, in instructions
	bounds   []fastBound
	multiple int64 // 0 if absent

	items  *fastSchema // nil accepts anything
	nItems limits

	members  []fastMember
	index    map[string]int // into members
	required int            // number of required members
	others   *fastSchema    // schema of other members; nil accepts anything
	closed   bool           // no other members are allowed
	nMembers limits
}

type fastMember struct {
	schema   *fastSchema
	required bool
}

// kinds is a set of kinds of JSON values.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindInteger // a number written with digits only; 5.0 is also an integer, but left to an engine
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

// fastEnum holds the allowed texts, and other allowed scalars as written. It leaves out objects and arrays.
type fastEnum struct{ texts, words map[string]bool }

// fastBound is the minimum or maximum of a number.
type fastBound struct {
	limit            float64
	short            bool // few enough digits that a double distinguishes it
	upper, exclusive bool
}

// maxMembers is the maximum number of named members.
const maxMembers = 256

// anything accepts every value, as a nil schema does.
var anything = newFast()

func newFast() *fastSchema {
	return &fastSchema{kinds: allKinds, length: noLimits, nItems: noLimits, nMembers: noLimits}
}

// newFastSchema prepares a schema. It applies every keyword in every draft. A keyword that the draft does not
// have at worst leaves the document to the engine.
func newFastSchema(schema any, format bool) *fastSchema {
	f := newFast()
	obj, ok := schema.(map[string]any)
	if !ok {
		f.unknown = schema != true
		_, isBool := schema.(bool)
		f.doubtful = !isBool
		return f
	}
	for name, v := range obj {
		known, legal := f.keyword(name, v, format)
		f.unknown = f.unknown || !known
		f.doubtful = f.doubtful || !legal
	}
	f.require(obj["required"])
	if f.choice != nil && len(obj) > 1 && !onlyNotes(obj) {
		f.unknown = true
	}
	return f
}

// sub prepares a schema within this one.
func (f *fastSchema) sub(schema any, format bool) *fastSchema {
	s := newFastSchema(schema, format)
	f.doubtful = f.doubtful || s.doubtful
	return s
}

// notes are keywords without constraints. They include "$id", because this pass follows no references.
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

// keyword adds one keyword. known is false if the keyword or its value is not supported here. legal is false
// if a metaschema may refuse it; it is also false for ids, references and patterns that RE2 cannot read.
func (f *fastSchema) keyword(name string, v any, format bool) (known, legal bool) {
	text, isText := v.(string)
	list, isList := v.([]any)
	number, isNumber := v.(json.Number)
	_, isBool := v.(bool)
	switch name {
	case "type":
		f.kinds, known = typeKinds(v)
		return known, known && (isText || len(list) > 0 && uniqueStrings(v))
	case "enum":
		known = isList && f.enum == nil
		f.enum = newFastEnum(list)
		return known, legalEnum(list)
	case "const":
		known = f.enum == nil
		f.enum = newFastEnum([]any{v})
		return known, true
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		*f.count(name), known = asCount(number)
		return known, known
	case "pattern":
		var err error
		if f.size, err = patternSize(text); err == nil {
			f.pattern, err = regexp.Compile(text)
		}
		return err == nil, err == nil && isText
	case "format":
		return !format, isText
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return f.bound(name, v), isNumber
	case "multipleOf":
		m, err := strconv.ParseInt(string(number), 10, 64)
		f.multiple = m
		divisor, _ := number.Float64()
		return err == nil && len(number) <= shortNumber && m > 0, divisor > 0
	case "uniqueItems":
		return v == false, isBool
	case "items":
		if isList {
			return false, false
		}
		f.items = f.sub(v, format)
		return true, true
	case "properties":
		obj, ok := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(obj)) {
			f.member(name, f.sub(obj[name], format))
		}
		return ok && len(obj) <= maxMembers, ok
	case "additionalProperties":
		if f.closed = v == false; !f.closed {
			f.others = f.sub(v, format)
		}
		return true, true
	case "anyOf", "oneOf":
		return f.branches(list, format), len(list) > 0
	case "allOf":
		for _, part := range list {
			f.sub(part, format)
		}
		return false, len(list) > 0
	case "not":
		f.sub(v, format)
		return false, true
	case "$defs", "definitions":
		obj, ok := v.(map[string]any)
		for _, def := range obj {
			f.sub(def, format)
		}
		return true, ok
	case "required":
		return true, uniqueStrings(v) // handled after all other keywords
	case "title", "description", "$comment":
		return true, isText
	case "readOnly", "writeOnly", "deprecated":
		return true, isBool
	case "examples":
		return true, isList
	}
	return isNote(name), isNote(name) && name != "$id"
}

// count returns the field for the bound of a counting keyword.
func (f *fastSchema) count(name string) *int64 {
	l := map[string]*limits{"Length": &f.length, "Items": &f.nItems, "Properties": &f.nMembers}[name[3:]]
	if strings.HasPrefix(name, "min") {
		return &l.min
	}
	return &l.max
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

// legalEnum reports whether the items are certainly unique, judged by their text.
func legalEnum(list []any) bool {
	seen := make(map[any]bool, len(list))
	for _, item := range list {
		switch item := item.(type) {
		case string, bool, nil:
		case json.Number:
			if !isShort(string(item)) || strings.ContainsRune(string(item), '.') || item == "-0" {
				return false
			}
		default:
			return false
		}
		if seen[item] {
			return false
		}
		seen[item] = true
	}
	return len(list) > 0
}

func uniqueStrings(v any) bool {
	list, ok := v.([]any)
	seen := make(map[any]bool, len(list))
	for _, item := range list {
		if _, isText := item.(string); !isText || seen[item] {
			return false
		}
		seen[item] = true
	}
	return ok
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

// shortNumber is the maximum length of numbers that doubles distinguish: a double keeps 15 digits.
const shortNumber = 15

func (f *fastSchema) bound(name string, v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false // in draft-04 these are booleans beside minimum and maximum
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

// require marks the required members. A required member without its own schema gets that of other members.
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

// branches adds an anyOf or oneOf in which the type of a value selects the branch, such as
// string or null.
func (f *fastSchema) branches(list []any, format bool) bool {
	var all kinds
	apart := len(list) > 0
	for _, item := range list {
		b := f.sub(item, format)
		apart = apart && b.kinds&all == 0
		all |= b.kinds
		f.choice = append(f.choice, b)
	}
	return apart
}
