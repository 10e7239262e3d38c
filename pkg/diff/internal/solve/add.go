package solve

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
)

var one = big.NewRat(1, 1)

func fit(n *node) rule    { return rule{n, false} }
func breaks(n *node) rule { return rule{n, true} }
func fits(ns []*node) []rule {
	all := make([]rule, len(ns))
	for i, n := range ns {
		all[i] = fit(n)
	}
	return all
}

func all(rules ...rule) alternative { return alternative{rules: rules} }

func change(f func(*shape)) alternative {
	return alternative{change: func(s *shape) bool { f(s); return true }}
}

// add makes the value fit a schema; false when it cannot.
func (s *solver) add(st *state, n *node) bool {
	if n.never || n.kinds != 0 && n.kinds&st.kind == 0 {
		return false
	}
	if n.hasConst && !s.equal(st, []any{n.constant}) || n.hasEnum && !s.equal(st, n.enum) {
		return false
	}
	if n.ref != "" {
		if t := n.target(); t != nil {
			st.todo = append(st.todo, fit(t))
		}
	}
	st.todo = append(st.todo, fits(n.allOf)...)
	if n.not != nil {
		st.todo = append(st.todo, breaks(n.not))
	}
	if len(n.anyOf) > 0 {
		var c clause
		for _, m := range n.anyOf {
			c = append(c, all(fit(m)))
		}
		st.clauses = append(slices.Clip(st.clauses), c)
	}
	if len(n.oneOf) > 0 {
		var c clause
		for i := range n.oneOf {
			a := alternative{}
			for j, m := range n.oneOf {
				a.rules = append(a.rules, rule{m, i != j})
			}
			c = append(c, a)
		}
		st.clauses = append(slices.Clip(st.clauses), c)
	}
	if n.ifs != nil {
		yes, no := all(fit(n.ifs)), all(breaks(n.ifs))
		if n.then != nil {
			yes.rules = append(yes.rules, fit(n.then))
		}
		if n.els != nil {
			no.rules = append(no.rules, fit(n.els))
		}
		if n.then != nil || n.els != nil {
			st.clauses = append(slices.Clip(st.clauses), clause{yes, no})
		}
	}
	switch st.kind {
	case kindNumber:
		st.addNumber(n)
	case kindString:
		st.addText(n)
	case kindArray:
		st.addArray(n)
	case kindObject:
		st.addObject(n)
	}
	return true
}

func (st *state) addNumber(n *node) {
	if n.wholeOnly {
		st.steps = append(st.steps, one)
	}
	if n.min != nil {
		st.above(n.min)
	}
	if n.max != nil {
		st.below(n.max)
	}
	if n.multipleOf != nil {
		st.steps = append(st.steps, n.multipleOf)
	}
}

func (st *state) addText(n *node) {
	if n.minLength != nil {
		atLeast(&st.text.min, *n.minLength)
	}
	if n.maxLength != nil {
		atMost(&st.text.max, *n.maxLength)
	}
	if n.pattern != nil {
		st.text.in = append(st.text.in, n.pattern)
	}
	if n.format != "" {
		st.formats = append(st.formats, n.format)
	}
}

func (st *state) addArray(n *node) {
	if n.minItems != nil {
		atLeast(&st.minItems, *n.minItems)
	}
	if n.maxItems != nil {
		atMost(&st.maxItems, *n.maxItems)
	}
	st.unique = st.unique || n.unique
	if len(n.prefix) > 0 || n.items != nil {
		st.layers = append(st.layers, n)
	}
	if n.contains != nil {
		least := 1
		if n.minContains != nil {
			least = *n.minContains
		}
		if least > 0 {
			atLeast(&st.minItems, least)
			st.some = append(st.some, someItem{rules: []rule{fit(n.contains)}})
		}
	}
}

func (st *state) addObject(n *node) {
	for _, name := range n.required {
		st.require(name)
	}
	if n.minProps != nil {
		atLeast(&st.minProps, *n.minProps)
	}
	if n.maxProps != nil {
		atMost(&st.maxProps, *n.maxProps)
	}
	if len(n.properties) > 0 || len(n.patterns) > 0 || n.additional != nil {
		st.members = append(st.members, n)
	}
	if n.names != nil {
		st.names = append(st.names, n.names)
	}
	if n.unevaluated != nil {
		seen := evaluated(n, true)
		if !seen.all {
			st.spare = append(st.spare, spareLayer{seen.names, seen.patterns, n.unevaluated, n.schema})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.needs)) {
		wants := n.needs[name]
		st.clauses = append(slices.Clip(st.clauses), clause{
			change(func(s *shape) { s.prop(name, absent) }),
			change(func(s *shape) {
				s.require(name)
				for _, want := range wants {
					s.require(want)
				}
			}),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(n.needsSchema)) {
		a := change(func(s *shape) { s.require(name) })
		a.rules = []rule{fit(n.needsSchema[name])}
		st.clauses = append(slices.Clip(st.clauses), clause{change(func(s *shape) { s.prop(name, absent) }), a})
	}
}

// equal makes the value one of a list.
func (s *solver) equal(st *state, list []any) bool {
	var c clause
	var texts []string
	for _, v := range list {
		if kindOfValue(v) != st.kind {
			continue
		}
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case bool:
			c = append(c, change(func(s *shape) { s.bools[index(!v)] = false }))
		case nil:
			return true
		case json.Number:
			if at := ratOf(v); at != nil {
				c = append(c, change(func(s *shape) { s.above(&limit{at, false}); s.below(&limit{at, false}) }))
			}
		case []any:
			c = append(c, all(fit(s.literal(v))))
		case map[string]any:
			c = append(c, all(fit(s.literal(v))))
		}
	}
	if st.kind == kindString {
		st.chooseTexts(texts)
		return len(texts) > 0
	}
	if len(c) == 0 {
		return false
	}
	st.clauses = append(slices.Clip(st.clauses), c)
	return true
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func kindOfValue(v any) kind {
	switch v.(type) {
	case nil:
		return kindNull
	case bool:
		return kindBoolean
	case json.Number:
		return kindNumber
	case string:
		return kindString
	case []any:
		return kindArray
	}
	return kindObject
}

// seen is what the keywords beside unevaluatedProperties may, or surely, evaluate.
type seen struct {
	all      bool
	names    map[string]bool
	patterns []*language
}

// evaluated returns what the keywords in place evaluate: with maybe those of every
// branch, else those that always hold.
func evaluated(n *node, maybe bool) seen {
	all := seen{names: map[string]bool{}}
	had := map[*node]bool{}
	var walk func(m *node)
	walk = func(m *node) {
		if m == nil || had[m] {
			return
		}
		had[m] = true
		for name := range m.properties {
			all.names[name] = true
		}
		for _, p := range m.patterns {
			if p.language != nil {
				all.patterns = append(all.patterns, p.language)
			} else {
				all.all = all.all || maybe
			}
		}
		all.all = all.all || m.additional != nil || m.opaque && maybe || m != n && m.unevaluated != nil
		if m.ref != "" {
			walk(m.target())
		}
		branches := slices.Clone(m.allOf)
		if maybe {
			branches = slices.Concat(branches, m.anyOf, m.oneOf, []*node{m.ifs, m.then, m.els})
			for _, b := range m.needsSchema {
				branches = append(branches, b)
			}
		}
		for _, b := range branches {
			walk(b)
		}
	}
	walk(n)
	return all
}
