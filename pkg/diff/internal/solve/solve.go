// Package solve finds a JSON value that fits some schemas and breaks others, or proves that no such
// value exists.
//
// A schema is a set of values, so "the new schema accepts every value that the old one accepts" means
// "no value fits the old schema and breaks the new one". The solver works on [rule]s, each of which
// is a schema that a value must fit or must break. For each of the six types it converts the rules to
// one shape (bounds, languages, items, properties) and to clauses, each of which needs one
// alternative to hold. It tries the alternatives as a SAT solver does, and builds a value from a
// remaining shape. Parts of the value (items, properties) are found the same way. A part that
// requires itself does not exist, because values are finite.
//
// A shape never excludes a possible value, so Empty is a proof. It may allow too much if a keyword
// cannot be expressed, so a schema engine must confirm a Found value.
package solve

import (
	"slices"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/pkg/schema"
)

// Answer is the result of a search.
type Answer int

const (
	// Unknown means that neither a value nor a proof was found within the bounds.
	Unknown Answer = iota
	// Found means that a value was found that probably fits.
	Found
	// Empty means that no value exists, which is proven.
	Empty
)

// Format reports whether a text has a format, and whether the format is known.
type Format func(name, text string) (has, known bool)

// Query describes the value to find.
type Query struct {
	// Fit is the schema that the value fits, and Break the schema that it breaks; either may be nil.
	Fit, Break *Schema
	// Declared restricts the properties of objects to those that Fit declares.
	Declared bool
	// Format checks values of the keyword format.
	Format Format
}

// maxSteps is the maximum number of steps in one search.
const maxSteps = 4_000

// Find searches for a value that satisfies the query.
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
	open  []string // keys of the values being searched for, the outermost first
	// assumed is the lowest index in open of a value that was assumed not to exist.
	assumed int
	steps   int
	ids     map[*node]int
	same    map[string]int   // ids by the canonical text of a schema
	parts   map[string]*node // literals by their JSON
}

// id returns the number of a node. Nodes with the same meaning share a number.
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

// key returns a text that identifies a set of rules. It returns false if two rules exclude each
// other.
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

// value searches for a value that satisfies all rules.
func (s *solver) value(rules []rule) (any, Answer) {
	key, ok := s.key(rules)
	if !ok {
		return nil, Empty
	}
	if o, ok := s.known[key]; ok {
		return o.value, o.answer
	}
	// A smallest value cannot contain another value for the same rules.
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

// order returns the types that the rules allow, in search order.
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

// state is a shape and the rules and clauses that are not yet included in it.
type state struct {
	shape
	todo    []rule
	clauses []clause
	depth   int
}

// clause is a list of alternatives, one of which must hold.
type clause []alternative

// alternative is a set of rules for the same value and a change of the shape; either may be missing.
type alternative struct {
	rules  []rule
	change func(*shape) bool // returns false if the shape cannot change
}

func newState(k kind) *state { return &state{shape: newShape(k)} }

// take includes an alternative in a copy of the state. It returns nil if the alternative contradicts
// the state.
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

// settle converts the pending rules to the shape and to clauses.
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

// search tries the alternatives of the clauses, starting with the clause that has the fewest.
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
			if i >= 16 { // enough clauses to choose from
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

// drop removes a clause that is satisfied.
func (st *state) drop(c clause) {
	for i := range st.clauses {
		if len(st.clauses[i]) > 0 && &st.clauses[i][0] == &c[0] {
			st.clauses = slices.Delete(slices.Clone(st.clauses), i, i+1)
			return
		}
	}
}
