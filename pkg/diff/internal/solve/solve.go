// Package solve looks for a JSON value that fits some schemas and breaks others, or
// proves that there is none.
//
// A schema is a set of values, so "what the old one accepts, the new one accepts" is "no
// value fits the old one and breaks the new one". The solver works on [rule]s, each a
// schema that a value must fit or must break. For each of the six types it turns the
// rules into one shape (bounds, languages, items, properties) and clauses of which one
// alternative each must hold, tries the alternatives as a SAT solver does, and builds a
// value from a shape that is left. Parts of the value (items, properties) are found the
// same way; a part that needs itself is not there, since values are finite.
//
// A shape never loses a value, so Empty is a proof. It may allow too much where a
// keyword cannot be expressed, so a value that is Found is for a schema engine to confirm.
package solve

import (
	"slices"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/pkg/schema"
)

// Answer says how a search ended.
type Answer int

const (
	// Unknown says that neither a value nor a proof was found within the bounds.
	Unknown Answer = iota
	// Found says that there is a value that is likely to fit.
	Found
	// Empty says that it is proven that there is none.
	Empty
)

// Format reports whether a text has a format, and whether the format is known.
type Format func(name, text string) (has, known bool)

// Query is what a value has to be.
type Query struct {
	// Fit is the schema that the value fits, Break the one that it breaks; either may be nil.
	Fit, Break *Schema
	// Declared keeps the properties of objects to those that Fit declares.
	Declared bool
	// Format decides "format".
	Format Format
}

// maxSteps bounds one search.
const maxSteps = 4_000

// Find looks for a value.
func Find(q Query) (any, Answer) {
	s := &solver{Query: q, known: map[string]outcome{}, ids: map[*node]int{}, same: map[string]int{}, parts: map[string]*node{}}
	var rules []rule
	if q.Fit != nil {
		rules = append(rules, rule{q.Fit.root, false})
	}
	if q.Break != nil {
		rules = append(rules, rule{q.Break.root, true})
	}
	v, answer := s.value(rules)
	if s.steps > maxSteps && answer == Empty {
		return nil, Unknown
	}
	return v, answer
}

// rule is a schema that a value must fit, or must break.
type rule struct {
	*node
	not bool
}

type outcome struct {
	value  any
	answer Answer
}

type solver struct {
	Query
	known map[string]outcome
	open  []string // keys of the values that are looked for, the outermost first
	// assumed is the lowest place in open whose value was taken for not there.
	assumed int
	steps   int
	ids     map[*node]int
	same    map[string]int   // ids by the canonical text of a schema
	parts   map[string]*node // literals by their JSON
}

// id numbers the nodes; those that mean the same have one number.
func (s *solver) id(n *node) int {
	if id, ok := s.ids[n]; ok {
		return id
	}
	id := len(s.ids) + 1
	if text := n.canonical(); text != "" {
		if n.schema != nil && n.schema.draft <= schema.Draft7 {
			text = "7" + text
		}
		if same, ok := s.same[text]; ok {
			id = same
		} else {
			s.same[text] = id
		}
	}
	s.ids[n] = id
	return id
}

// key names a set of rules; false when two of them exclude each other.
func (s *solver) key(rules []rule) (string, bool) {
	ids := make([]int, 0, len(rules))
	for _, r := range rules {
		id := s.id(r.node)
		if r.not {
			id = -id
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i, j := 0, len(ids)-1; i < j; {
		switch sum := ids[i] + ids[j]; {
		case sum == 0:
			return "", false
		case sum < 0:
			i++
		default:
			j--
		}
	}
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(strconv.Itoa(id))
		b.WriteByte(' ')
	}
	return b.String(), true
}

// value looks for a value that keeps all rules.
func (s *solver) value(rules []rule) (any, Answer) {
	key, ok := s.key(rules)
	if !ok {
		return nil, Empty
	}
	if o, ok := s.known[key]; ok {
		return o.value, o.answer
	}
	// The smallest value does not hold a smaller one of its own kind.
	if at := slices.Index(s.open, key); at >= 0 {
		s.assumed = min(s.assumed, at)
		return nil, Empty
	}
	if s.steps++; s.steps > maxSteps || len(s.open) > maxDepth {
		return nil, Unknown
	}
	depth, before := len(s.open), s.assumed
	s.open, s.assumed = append(s.open, key), depth
	found := outcome{answer: Empty}
	for _, k := range s.order(rules) {
		v, answer := s.ofKind(k, rules)
		if answer == Found {
			found = outcome{v, Found}
			break
		}
		if answer == Unknown {
			found.answer = Unknown
		}
	}
	s.open = s.open[:depth]
	if found.answer != Empty || s.assumed >= depth {
		s.known[key] = found
	}
	s.assumed = min(before, s.assumed)
	return found.value, found.answer
}

// order puts the types first that the rules name.
func (s *solver) order(rules []rule) []kind {
	can := anyKind
	for _, r := range rules {
		if !r.not && r.kinds != 0 {
			can &= r.kinds
		}
	}
	var order []kind
	for _, k := range kinds {
		if can&k != 0 {
			order = append(order, k)
		}
	}
	return order
}

func (s *solver) ofKind(k kind, rules []rule) (any, Answer) {
	st := newState(k)
	st.todo = slices.Clone(rules)
	return s.search(st)
}

// state is a shape and what is not yet part of it.
type state struct {
	shape
	todo    []rule
	clauses []clause
	depth   int
}

// clause is alternatives of which one must hold.
type clause []alternative

// alternative is rules for the same value, and a change of the shape, either of which may be missing.
type alternative struct {
	rules  []rule
	change func(*shape) bool // false when it cannot be
}

func newState(k kind) *state { return &state{shape: newShape(k)} }

// take makes an alternative part of a copy of the state; nil when it contradicts it.
func (s *solver) take(st *state, a alternative) *state {
	if s.steps++; s.steps > maxSteps {
		return st
	}
	next := &state{shape: st.shape.clone(), todo: slices.Clone(a.rules), clauses: slices.Clip(st.clauses), depth: st.depth}
	if a.change != nil && !a.change(&next.shape) || !s.settle(next) {
		return nil
	}
	return next
}

// settle turns the rules that wait into the shape and clauses.
func (s *solver) settle(st *state) bool {
	for len(st.todo) > 0 {
		if s.steps++; s.steps > maxSteps {
			return true
		}
		r := st.todo[len(st.todo)-1]
		st.todo = st.todo[:len(st.todo)-1]
		if at := slices.IndexFunc(st.had, func(h rule) bool { return h.node == r.node }); at >= 0 {
			if slices.ContainsFunc(st.had, func(h rule) bool { return h.node == r.node && h.not != r.not }) {
				return false
			}
			continue
		}
		st.had = append(slices.Clip(st.had), r)
		ok := false
		if r.not {
			ok = s.deny(st, r.node)
		} else {
			ok = s.add(st, r.node)
		}
		if !ok {
			return false
		}
	}
	return !st.contradicts()
}

// search tries the alternatives of the clauses, the fewest first.
func (s *solver) search(st *state) (any, Answer) {
	if !s.settle(st) {
		return nil, Empty
	}
	for {
		if s.steps > maxSteps {
			return nil, Unknown
		}
		if len(st.clauses) == 0 {
			if !s.choose(st) {
				return s.build(st)
			}
			continue
		}
		best, at := []*state(nil), -1
		var committed *state
		for i, c := range st.clauses {
			var live []*state
			for _, a := range c {
				if next := s.take(st, a); next != nil {
					live = append(live, next)
				}
			}
			if len(live) == 0 {
				return nil, Empty
			}
			if len(live) == 1 {
				committed, at = live[0], i
				break
			}
			if at < 0 || len(live) < len(best) {
				best, at = live, i
			}
			if i >= 16 { // enough to choose from
				break
			}
		}
		if s.steps > maxSteps {
			return nil, Unknown
		}
		picked := st.clauses[at]
		if committed != nil {
			committed.drop(picked)
			st = committed
			continue
		}
		result := Empty
		for _, next := range best {
			next.drop(picked)
			v, answer := s.search(next)
			if answer == Found {
				return v, Found
			}
			if answer == Unknown {
				result = Unknown
			}
		}
		return nil, result
	}
}

// drop removes a clause that holds now.
func (st *state) drop(c clause) {
	for i := range st.clauses {
		if len(st.clauses[i]) > 0 && &st.clauses[i][0] == &c[0] {
			st.clauses = slices.Delete(slices.Clone(st.clauses), i, i+1)
			return
		}
	}
}
