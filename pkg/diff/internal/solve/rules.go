package solve

import (
	"encoding/json"
	"slices"
)

// add makes the value fit a schema. It returns false if no value can.
func (s *solver) add(st *state, n *node) bool {
	if n.never || n.kinds != 0 && n.kinds&st.kind == 0 {
		return false
	}
	for _, list := range n.enums {
		if !s.equal(st, list) {
			return false
		}
	}
	for _, t := range n.tests {
		if t.kinds&st.kind == 0 {
			continue
		}
		if len(t.keep) > 1 {
			st.clauses = append(slices.Clip(st.clauses), t.keep)
			continue
		}
		st.todo = append(st.todo, t.keep[0].rules...)
		if f := t.keep[0].change; f != nil && !f(&st.shape) {
			return false
		}
	}
	return true
}

// deny makes the value break a schema: one of its keywords must fail.
func (s *solver) deny(st *state, n *node) bool {
	if n.never || n.kinds != 0 && n.kinds&st.kind == 0 || n.opaque { // an unknown keyword may be the one that fails
		return true
	}
	var c clause
	for _, list := range n.enums {
		c = append(c, s.other(st, list))
	}
	for _, t := range n.tests {
		if t.kinds&st.kind != 0 {
			c = append(c, t.fails...)
		}
	}
	if len(c) == 0 {
		return false
	}
	st.clauses = append(slices.Clip(st.clauses), c)
	return true
}

// equal restricts the value to a list of values.
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
		default:
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

// other returns the alternative that the value is not in a list.
func (s *solver) other(st *state, list []any) alternative {
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
		if k := kindOfValue(v); k == st.kind && (k == kindArray || k == kindObject) {
			a.rules = append(a.rules, breaks(s.literal(v)))
		}
	}
	return a
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
