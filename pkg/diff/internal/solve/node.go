package solve

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/schema"
)

// kind is one of the six types of JSON values.
type kind uint8

const (
	kindObject kind = 1 << iota
	kindString
	kindNumber
	kindBoolean
	kindNull
	kindArray
	anyKind kind = 1<<iota - 1
)

// kinds are in the order in which values are looked for, the simple ones first.
var kinds = []kind{kindString, kindNumber, kindBoolean, kindNull, kindArray, kindObject}

var kindOf = map[string]kind{"object": kindObject, "string": kindString, "number": kindNumber, "integer": kindNumber, "boolean": kindBoolean, "null": kindNull, "array": kindArray}

// Bounds of a document; beyond them the answer is Unknown.
const (
	maxNodes = 20_000
	maxDepth = 200
)

// Schema is a schema that was read for the solver.
type Schema struct {
	root  *node
	draft schema.Draft
	doc   *schema.Document
	at    map[string]*node // by JSON pointer
	count int
	full  bool // it was larger than the bounds
}

// node is one subschema. The zero value accepts everything.
type node struct {
	id     int
	schema *Schema
	never  bool // the schema false
	opaque bool // it has a keyword that the solver does not know the meaning of
	raw    any  // the map that it was read from

	kinds      kind // 0 for all
	wholeOnly  bool // of the numbers, integers alone
	enum       []any
	hasEnum    bool
	constant   any
	hasConst   bool
	min, max   *limit
	multipleOf *big.Rat

	minLength, maxLength *int
	pattern              *language
	patternText          string
	format               string

	prefix              []*node
	items               *node
	contains            *node
	minContains         *int
	maxContains         *int
	minItems, maxItems  *int
	unique              bool
	unevaluatedItems    *node
	properties          map[string]*node
	patterns            []patternNode
	additional          *node
	names               *node
	required            []string
	minProps, maxProps  *int
	needs               map[string][]string
	needsSchema         map[string]*node
	unevaluated         *node
	allOf, anyOf, oneOf []*node
	not, ifs, then, els *node
	ref                 string
	refNode             *node
	none                *node // a list of which no item fits contains; made when it is asked for
}

type patternNode struct {
	text     string
	language *language
	node     *node
}

type limit struct {
	at   *big.Rat
	open bool
}

// Read reads a decoded schema: numbers are [json.Number]s.
func Read(raw any, draft schema.Draft) *Schema {
	s := &Schema{draft: draft, doc: schema.NewDocument(raw), at: map[string]*node{}}
	s.root = s.node(raw, "", 0)
	return s
}

func (s *Schema) node(raw any, at string, depth int) *node {
	if n, ok := s.at[at]; ok {
		return n
	}
	s.count++
	n := &node{id: s.count, schema: s}
	s.at[at] = n
	if s.count > maxNodes || depth > maxDepth {
		n.opaque, s.full = true, true
		return n
	}
	switch raw := raw.(type) {
	case bool:
		n.never = !raw
	case map[string]any:
		n.raw = raw
		n.read(raw, at, depth)
	default:
		n.opaque = true
	}
	return n
}

// reader reads the keywords of one subschema.
type reader struct {
	*node
	raw   map[string]any
	at    string
	depth int
}

func (n *node) read(raw map[string]any, at string, depth int) {
	r := reader{n, raw, at, depth}
	if text, ok := schema.Reference(raw); ok {
		n.ref = text
		if !strings.HasPrefix(text, "#") || at != "" && raw["$id"] != nil {
			n.opaque, n.ref = true, ""
		}
		if n.schema.draft <= schema.Draft7 {
			return // its siblings mean nothing (draft-07 core, section 8.3)
		}
	}
	for _, key := range []string{schema.DynamicRef, schema.RecursiveRef} {
		if _, ok := raw[key]; ok {
			n.opaque = true
		}
	}
	r.values()
	r.numbers()
	r.texts()
	r.arrays()
	r.objects()
	r.applicators()
}

func (r reader) sub(key string) *node {
	raw, ok := r.raw[key]
	if !ok {
		return nil
	}
	return r.schema.node(raw, v1.Pointer(r.at, key), r.depth+1)
}

func (r reader) subs(key string) []*node {
	list, _ := r.raw[key].([]any)
	all := make([]*node, 0, len(list))
	for i, raw := range list {
		all = append(all, r.schema.node(raw, v1.Pointer(r.at, key, strconv.Itoa(i)), r.depth+1))
	}
	return all
}

func (r reader) subMap(key string) map[string]*node {
	m, _ := r.raw[key].(map[string]any)
	all := make(map[string]*node, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, list := m[name].([]any); !list { // draft-07 dependencies have lists too
			all[name] = r.schema.node(m[name], v1.Pointer(r.at, key, name), r.depth+1)
		}
	}
	return all
}

func (r reader) values() {
	var types []any
	switch t := r.raw["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	}
	whole, number := false, false
	for _, t := range types {
		name, _ := t.(string)
		r.kinds |= kindOf[name]
		whole, number = whole || name == "integer", number || name == "number"
	}
	r.wholeOnly = whole && !number
	if list, ok := r.raw["enum"].([]any); ok {
		r.enum, r.hasEnum = list, true
	}
	if v, ok := r.raw["const"]; ok && r.schema.draft >= schema.Draft6 {
		r.constant, r.hasConst = v, true
	}
}

func (r reader) rat(key string) *big.Rat {
	text, ok := r.raw[key].(json.Number)
	if !ok {
		return nil
	}
	return ratOf(text)
}

// ratOf reads a number; nil for one so large that arithmetic on it would take long.
func ratOf(text json.Number) *big.Rat {
	if _, exp, ok := strings.Cut(strings.ToLower(string(text)), "e"); ok {
		if e, err := strconv.Atoi(exp); err != nil || e > 400 || e < -400 {
			return nil
		}
	}
	if len(text) > 400 {
		return nil
	}
	v, _ := new(big.Rat).SetString(string(text))
	return v
}

func (r reader) count(key string) *int {
	v := r.rat(key)
	if v == nil || v.Sign() < 0 || !v.IsInt() || !v.Num().IsInt64() {
		return nil
	}
	n := int(min(v.Num().Int64(), 1<<40))
	return &n
}

func (r reader) numbers() {
	if v := r.rat("minimum"); v != nil {
		r.min = &limit{v, r.raw["exclusiveMinimum"] == true}
	}
	if v := r.rat("maximum"); v != nil {
		r.max = &limit{v, r.raw["exclusiveMaximum"] == true}
	}
	if v := r.rat("exclusiveMinimum"); v != nil && (r.min == nil || v.Cmp(r.min.at) >= 0) {
		r.min = &limit{v, true}
	}
	if v := r.rat("exclusiveMaximum"); v != nil && (r.max == nil || v.Cmp(r.max.at) <= 0) {
		r.max = &limit{v, true}
	}
	if v := r.rat("multipleOf"); v != nil && v.Sign() > 0 {
		r.multipleOf = v
	}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		if text, ok := r.raw[key].(json.Number); ok && ratOf(text) == nil {
			r.opaque = true
		}
	}
}

func (r reader) texts() {
	r.minLength, r.maxLength = r.count("minLength"), r.count("maxLength")
	if text, ok := r.raw["pattern"].(string); ok {
		r.patternText = text
		if r.pattern = newLanguage(text); r.pattern == nil {
			r.opaque = true
		}
	}
	r.format, _ = r.raw["format"].(string)
}

func (r reader) arrays() {
	r.minItems, r.maxItems = r.count("minItems"), r.count("maxItems")
	r.unique = r.raw["uniqueItems"] == true
	if r.schema.draft >= schema.Draft2020 {
		r.prefix, r.items = r.subs("prefixItems"), r.sub("items")
	} else if _, tuple := r.raw["items"].([]any); tuple {
		r.prefix, r.items = r.subs("items"), r.sub("additionalItems")
	} else {
		r.items = r.sub("items")
	}
	if r.schema.draft >= schema.Draft6 {
		r.contains = r.sub("contains")
	}
	if r.schema.draft >= schema.Draft2019 {
		r.minContains, r.maxContains = r.count("minContains"), r.count("maxContains")
		r.unevaluatedItems = r.sub("unevaluatedItems")
	}
}

func (r reader) objects() {
	r.properties, r.additional = r.subMap("properties"), r.sub("additionalProperties")
	patterns := r.subMap("patternProperties")
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		p := patternNode{text, newLanguage(text), patterns[text]}
		if p.language == nil {
			r.opaque = true
		}
		r.patterns = append(r.patterns, p)
	}
	list, _ := r.raw["required"].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			r.required = append(r.required, name)
		}
	}
	r.minProps, r.maxProps = r.count("minProperties"), r.count("maxProperties")
	if r.schema.draft >= schema.Draft6 {
		r.names = r.sub("propertyNames")
	}
	key, schemas := "dependentRequired", "dependentSchemas"
	if r.schema.draft <= schema.Draft7 {
		key, schemas = "dependencies", "dependencies"
	} else {
		r.unevaluated = r.sub("unevaluatedProperties")
	}
	r.needsSchema = r.subMap(schemas)
	m, _ := r.raw[key].(map[string]any)
	for name, v := range m {
		if list, ok := v.([]any); ok {
			if r.needs == nil {
				r.needs = map[string][]string{}
			}
			r.needs[name] = []string{}
			for _, v := range list {
				if want, ok := v.(string); ok {
					r.needs[name] = append(r.needs[name], want)
				}
			}
		}
	}
}

func (r reader) applicators() {
	r.allOf, r.anyOf, r.oneOf, r.not = r.subs("allOf"), r.subs("anyOf"), r.subs("oneOf"), r.sub("not")
	if r.schema.draft >= schema.Draft7 {
		r.ifs, r.then, r.els = r.sub("if"), r.sub("then"), r.sub("else")
	}
}

// target returns the subschema that a $ref leads to; nil when it cannot be told.
func (n *node) target() *node {
	if n.refNode != nil {
		return n.refNode
	}
	raw, at, ok := n.schema.doc.Resolve(n.ref)
	if !ok {
		return nil
	}
	n.refNode = n.schema.node(raw, at, 0)
	return n.refNode
}
