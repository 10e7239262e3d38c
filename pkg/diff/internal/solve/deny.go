package solve

import (
	"encoding/json"
	"maps"
	"slices"
)

// deny makes the value break a schema: one of its keywords must not hold.
func (s *solver) deny(st *state, n *node) bool {
	if n.never || n.kinds != 0 && n.kinds&st.kind == 0 {
		return true
	}
	var c clause
	if n.opaque {
		return true // it may break what is not known
	}
	if n.hasConst {
		c = s.other(c, st, []any{n.constant})
	}
	if n.hasEnum {
		c = s.other(c, st, n.enum)
	}
	if n.ref != "" {
		t := n.target()
		if t == nil {
			return true
		}
		c = append(c, all(breaks(t)))
	}
	for _, m := range n.allOf {
		c = append(c, all(breaks(m)))
	}
	if n.not != nil {
		c = append(c, all(fit(n.not)))
	}
	if len(n.anyOf) > 0 {
		a := alternative{}
		for _, m := range n.anyOf {
			a.rules = append(a.rules, breaks(m))
		}
		c = append(c, a)
	}
	if len(n.oneOf) > 0 {
		none := alternative{}
		for i, m := range n.oneOf {
			none.rules = append(none.rules, breaks(m))
			for _, other := range n.oneOf[i+1:] {
				c = append(c, all(fit(m), fit(other)))
			}
		}
		c = append(c, none)
	}
	if n.ifs != nil && n.then != nil {
		c = append(c, all(fit(n.ifs), breaks(n.then)))
	}
	if n.ifs != nil && n.els != nil {
		c = append(c, all(breaks(n.ifs), breaks(n.els)))
	}
	switch st.kind {
	case kindNumber:
		c = denyNumber(c, n)
	case kindString:
		c = denyText(c, n)
	case kindArray:
		c = denyArray(c, n)
	case kindObject:
		c = denyObject(c, n)
	}
	if len(c) == 0 {
		return false
	}
	st.clauses = append(slices.Clip(st.clauses), c)
	return true
}

// other is the alternative that the value is none of a list.
func (s *solver) other(c clause, st *state, list []any) clause {
	a := alternative{change: func(sh *shape) bool {
		for _, v := range list {
			if kindOfValue(v) != sh.kind {
				continue
			}
			switch v := v.(type) {
			case nil:
				return false
			case bool:
				sh.bools[index(v)] = false
			case string:
				sh.notTexts = append(slices.Clip(sh.notTexts), v)
			case json.Number:
				if at := ratOf(v); at != nil {
					sh.notNums = append(slices.Clip(sh.notNums), at)
				}
			}
		}
		return true
	}}
	for _, v := range list {
		switch v.(type) {
		case []any, map[string]any:
			if kindOfValue(v) == st.kind {
				a.rules = append(a.rules, breaks(s.literal(v)))
			}
		}
	}
	return append(c, a)
}

func denyNumber(c clause, n *node) clause {
	if n.wholeOnly {
		c = append(c, change(func(s *shape) { s.notSteps = append(slices.Clip(s.notSteps), one) }))
	}
	if n.min != nil {
		c = append(c, change(func(s *shape) { s.below(&limit{n.min.at, !n.min.open}) }))
	}
	if n.max != nil {
		c = append(c, change(func(s *shape) { s.above(&limit{n.max.at, !n.max.open}) }))
	}
	if n.multipleOf != nil {
		c = append(c, change(func(s *shape) { s.notSteps = append(slices.Clip(s.notSteps), n.multipleOf) }))
	}
	return c
}

func denyText(c clause, n *node) clause {
	if n.minLength != nil && *n.minLength > 0 {
		c = append(c, change(func(s *shape) { atMost(&s.text.max, *n.minLength-1) }))
	}
	if n.maxLength != nil {
		c = append(c, change(func(s *shape) { atLeast(&s.text.min, *n.maxLength+1) }))
	}
	if n.pattern != nil {
		c = append(c, change(func(s *shape) { s.text.out = append(slices.Clip(s.text.out), n.pattern) }))
	}
	if n.format != "" {
		c = append(c, change(func(s *shape) { s.notFormats = append(slices.Clip(s.notFormats), n.format) }))
	}
	return c
}

func denyArray(c clause, n *node) clause {
	if n.minItems != nil && *n.minItems > 0 {
		c = append(c, change(func(s *shape) { atMost(&s.maxItems, *n.minItems-1) }))
	}
	if n.maxItems != nil {
		c = append(c, change(func(s *shape) { atLeast(&s.minItems, *n.maxItems+1) }))
	}
	if n.unique {
		c = append(c, change(func(s *shape) { s.twice = true; atLeast(&s.minItems, 2) }))
	}
	for i, m := range n.prefix {
		c = append(c, change(func(s *shape) { atLeast(&s.minItems, i+1); s.item(i, breaks(m)) }))
	}
	if n.items != nil {
		c = append(c, change(func(s *shape) { s.some = append(slices.Clip(s.some), someItem{[]rule{breaks(n.items)}, len(n.prefix)}) }))
	}
	if n.contains != nil {
		least := 1
		if n.minContains != nil {
			least = *n.minContains
		}
		if least == 1 {
			if n.none == nil {
				n.none = &node{items: &node{not: n.contains}}
			}
			c = append(c, all(fit(n.none)))
		} else if least > 1 {
			c = append(c, alternative{}) // too few of them is not expressed
		}
		if n.maxContains != nil {
			c = append(c, change(func(s *shape) {
				atLeast(&s.minItems, *n.maxContains+1)
				for range min(*n.maxContains+1, 1) {
					s.some = append(slices.Clip(s.some), someItem{rules: []rule{fit(n.contains)}})
				}
			}))
		}
	}
	if n.unevaluatedItems != nil {
		c = append(c, alternative{})
	}
	return c
}

func denyObject(c clause, n *node) clause {
	for _, name := range n.required {
		c = append(c, change(func(s *shape) { s.prop(name, absent) }))
	}
	if n.minProps != nil && *n.minProps > 0 {
		c = append(c, change(func(s *shape) { atMost(&s.maxProps, *n.minProps-1) }))
	}
	if n.maxProps != nil {
		c = append(c, change(func(s *shape) { atLeast(&s.minProps, *n.maxProps+1) }))
	}
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		c = append(c, change(func(s *shape) { s.require(name); s.prop(name, breaks(n.properties[name])) }))
	}
	known, patterns := map[string]bool{}, []*language(nil)
	for name := range n.properties {
		known[name] = true
	}
	for _, p := range n.patterns {
		patterns = append(patterns, p.language)
		c = append(c, someProperty(someProp{in: []*language{p.language}, rules: []rule{breaks(p.node)}}))
	}
	if n.additional != nil {
		c = append(c, someProperty(someProp{out: patterns, notNames: known, rules: []rule{breaks(n.additional)}}))
	}
	if n.names != nil {
		c = append(c, someProperty(someProp{breaks: n.names}))
	}
	if n.unevaluated != nil {
		if sure := evaluated(n, false); !sure.all {
			c = append(c, someProperty(someProp{out: sure.patterns, notNames: sure.names, rules: []rule{breaks(n.unevaluated)}}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.needs)) {
		for _, want := range n.needs[name] {
			c = append(c, change(func(s *shape) { s.require(name); s.prop(want, absent) }))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.needsSchema)) {
		a := change(func(s *shape) { s.require(name) })
		a.rules = []rule{breaks(n.needsSchema[name])}
		c = append(c, a)
	}
	return c
}

func someProperty(p someProp) alternative {
	return change(func(s *shape) { s.somes = append(slices.Clip(s.somes), p) })
}
