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

// kinds are the kinds in search order, the simplest first.
var kinds = []kind{kindString, kindNumber, kindBoolean, kindNull, kindArray, kindObject}

var kindOf = map[string]kind{"object": kindObject, "string": kindString, "number": kindNumber, "integer": kindNumber, "boolean": kindBoolean, "null": kindNull, "array": kindArray}

// Bounds of a schema. Beyond them, the answer is Unknown.
const (
	maxNodes = 20_000
	maxDepth = 200
)

// Schema is a schema in the solver's form.
type Schema struct {
	root  *node
	draft schema.Draft
	doc   *schema.Document
	at    map[string]*node // by JSON pointer
}

// node is one subschema. The zero value accepts everything.
type node struct {
	schema *Schema
	never  bool           // the schema false
	opaque bool           // it has a keyword that the solver does not understand
	raw    map[string]any // the source of the node

	kinds kind    // 0 for all
	enums [][]any // the value must be in each of these lists
	tests []test  // requirements of all other keywords

	// The schemas of items and members, which hold together, and the schemas for the same value.
	prefix           []*node
	items            *node
	properties       map[string]*node
	patterns         []patternNode
	additional       *node
	unevaluated      *node
	inPlace, perhaps []*node // those that always apply, and those that apply in one of several cases
}

// test is the requirement of a keyword for values of some kinds. A value keeps it if one alternative of keep holds,
// and breaks it if one alternative of fails holds.
type test struct {
	kinds       kind
	keep, fails clause
}

type patternNode struct {
	language *language
	node     *node
}

type limit struct {
	at   *big.Rat
	open bool
}

// Read reads a decoded schema, in which numbers are [json.Number]s.
func Read(raw any, draft schema.Draft) *Schema {
	s := &Schema{draft: draft, doc: schema.NewDocument(raw), at: map[string]*node{}}
	s.root = s.node(raw, "", 0)
	return s
}

func (s *Schema) node(raw any, at string, depth int) *node {
	if n, ok := s.at[at]; ok {
		return n
	}
	n := &node{schema: s}
	s.at[at] = n
	if len(s.at) > maxNodes || depth > maxDepth {
		n.opaque = true
		return n
	}
	switch raw := raw.(type) {
	case bool:
		n.never = !raw
	case map[string]any:
		n.raw = raw
		reader{n, at, depth}.read()
	default:
		n.opaque = true
	}
	return n
}

// reader reads the keywords of one subschema.
type reader struct {
	*node
	at    string
	depth int
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

func (r reader) rat(key string) *big.Rat {
	text, ok := r.raw[key].(json.Number)
	if !ok {
		return nil
	}
	v := ratOf(text)
	r.opaque = r.opaque || v == nil
	return v
}

// ratOf reads a number. It returns nil for a number so large that arithmetic would take long.
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

// count reads a count. It returns otherwise if the value is not a count.
func (r reader) count(key string, otherwise int) int {
	v := r.rat(key)
	if v == nil || v.Sign() < 0 || !v.IsInt() || !v.Num().IsInt64() {
		return otherwise
	}
	return int(min(v.Num().Int64(), 1<<40))
}

func (r reader) names(v any) []string {
	list, _ := v.([]any)
	names := []string{}
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
