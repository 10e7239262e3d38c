package solve

import (
	"maps"
	"math/big"
	"slices"
)

// shape is the set of requirements for a value of one type that rules have been converted to. All
// of them must hold.
type shape struct {
	kind kind
	had  []rule // rules that are included in the shape

	bools [2]bool // whether false and true are allowed

	lo, hi   *limit
	steps    []*big.Rat // the number is a multiple of each
	notSteps []*big.Rat // the number is a multiple of no entry
	notNums  []*big.Rat

	text       text
	choice     []string // allowed strings; only valid if chosen
	chosen     bool     // choice applies
	notTexts   []string
	formats    []string
	notFormats []string

	minItems, maxItems int // no upper bound if max < 0
	unique, twice      bool
	alike              *[2]int        // indexes of two equal items
	layers             []*node        // nodes whose prefix and items apply
	items              map[int][]rule // rules by index
	some               []someItem

	minProps, maxProps int
	required           map[string]bool
	props              map[string][]rule
	members            []*node // nodes whose properties, patterns and additional apply
	names              []*node
	somes              []someProp
	spare              []spareLayer
}

// someItem is an item that must exist at some index.
type someItem struct {
	rules []rule
	from  int // minimum index
}

// someProp is a property that must exist under some name.
type someProp struct {
	in, out  []*language // languages of its name
	notNames map[string]bool
	breaks   *node // schema that its name must break; nil for any name
	rules    []rule
}

// spareLayer is the rule of unevaluatedProperties for names that no other keyword evaluates.
type spareLayer struct {
	names    map[string]bool
	patterns []*language
	node     *node
	schema   *Schema
}

func newShape(k kind) shape {
	return shape{kind: k, bools: [2]bool{true, true}, text: text{max: -1}, maxItems: -1, maxProps: -1}
}

func (s *shape) clone() shape {
	c := *s
	c.items, c.required, c.props = maps.Clone(s.items), maps.Clone(s.required), maps.Clone(s.props)
	for _, l := range []*[]*big.Rat{&c.steps, &c.notSteps, &c.notNums} {
		*l = slices.Clip(*l)
	}
	for _, l := range []*[]string{&c.choice, &c.notTexts, &c.formats, &c.notFormats} {
		*l = slices.Clip(*l)
	}
	c.text.in, c.text.out = slices.Clip(s.text.in), slices.Clip(s.text.out)
	c.layers, c.members, c.names = slices.Clip(s.layers), slices.Clip(s.members), slices.Clip(s.names)
	c.some, c.somes, c.spare, c.had = slices.Clip(s.some), slices.Clip(s.somes), slices.Clip(s.spare), slices.Clip(s.had)
	return c
}

// contradicts reports whether a quick check shows that no value has the shape. False does not mean
// that a value exists.
func (s *shape) contradicts() bool {
	switch s.kind {
	case kindBoolean:
		return !s.bools[0] && !s.bools[1]
	case kindNumber:
		if s.lo != nil && s.hi != nil {
			c := s.lo.at.Cmp(s.hi.at)
			return c > 0 || c == 0 && (s.lo.open || s.hi.open)
		}
	case kindString:
		if s.chosen {
			return !slices.ContainsFunc(s.choice, s.fitsText)
		}
		return s.text.max >= 0 && s.text.min > s.text.max || slices.ContainsFunc(s.formats, func(f string) bool { return slices.Contains(s.notFormats, f) })
	case kindArray:
		return s.maxItems >= 0 && s.minItems > s.maxItems
	case kindObject:
		return s.maxProps >= 0 && max(s.minProps, len(s.required)) > s.maxProps
	}
	return false
}

func (s *shape) fitsText(v string) bool {
	return s.text.fits(v) && !slices.Contains(s.notTexts, v)
}

func (s *shape) above(l *limit) {
	if s.lo == nil || l.at.Cmp(s.lo.at) > 0 || l.at.Cmp(s.lo.at) == 0 && l.open {
		s.lo = l
	}
}

func (s *shape) below(l *limit) {
	if s.hi == nil || l.at.Cmp(s.hi.at) < 0 || l.at.Cmp(s.hi.at) == 0 && l.open {
		s.hi = l
	}
}

// atLeast and atMost narrow a count. A negative most means no bound.
func atLeast(least *int, n int) { *least = max(*least, n) }

func atMost(most *int, n int) {
	if *most < 0 || n < *most {
		*most = n
	}
}

func (s *shape) require(name string) {
	if s.required == nil {
		s.required = map[string]bool{}
	}
	s.required[name] = true
}

func (s *shape) prop(name string, rules ...rule) {
	if s.props == nil {
		s.props = map[string][]rule{}
	}
	s.props[name] = append(slices.Clip(s.props[name]), rules...)
}

func (s *shape) item(at int, rules ...rule) {
	if s.items == nil {
		s.items = map[int][]rule{}
	}
	s.items[at] = append(slices.Clip(s.items[at]), rules...)
}

// chooseTexts restricts the string to a list, in addition to earlier lists.
func (s *shape) chooseTexts(all []string) {
	if s.chosen {
		all = slices.DeleteFunc(slices.Clone(all), func(v string) bool { return !slices.Contains(s.choice, v) })
	}
	s.choice, s.chosen = all, true
}

var nothing = &node{never: true}

// absent is the rule for a property that must not exist.
var absent = rule{nothing, false}
