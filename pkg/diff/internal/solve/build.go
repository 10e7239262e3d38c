package solve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Bounds of a generated value.
const (
	maxItems   = 300
	maxText    = 5000
	maxSomes   = 64
	maxPattern = 6 // maximum number of name patterns in a case analysis
)

// choose takes one requirement that must hold somewhere in the value, and adds a clause with an
// alternative for each possible place. It reports whether there was such a requirement.
func (s *solver) choose(st *state) bool {
	switch {
	case st.kind == kindArray && len(st.some) > 0:
		want := st.some[0]
		st.some = st.some[1:]
		last := st.minItems
		for _, l := range st.layers {
			last = max(last, len(l.prefix))
		}
		for at := range st.items {
			last = max(last, at+1)
		}
		last = max(min(last, maxItems), want.from)
		var c clause
		for at := want.from; at <= last; at++ {
			c = append(c, change(func(sh *shape) { atLeast(&sh.minItems, at+1); sh.item(at, want.rules...) }))
		}
		st.clauses = append(slices.Clip(st.clauses), c)
		return true
	case st.kind == kindArray && st.twice:
		st.twice = false
		last := 1
		for _, l := range st.layers {
			last = max(last, len(l.prefix)+1)
		}
		var c clause
		for i := 0; i <= min(last, 12); i++ {
			for j := i + 1; j <= min(last, 12); j++ {
				c = append(c, change(func(sh *shape) { atLeast(&sh.minItems, j+1); sh.alike = &[2]int{i, j} }))
			}
		}
		st.clauses = append(slices.Clip(st.clauses), c)
		return true
	case st.kind == kindObject && len(st.somes) > 0:
		want := st.somes[0]
		st.somes = st.somes[1:]
		st.clauses = append(slices.Clip(st.clauses), s.places(st, want))
		return true
	case st.kind == kindObject && len(st.required) < st.minProps && st.minProps <= maxSomes:
		st.clauses = append(slices.Clip(st.clauses), s.places(st, someProp{notNames: maps.Clone(st.required)}))
		return true
	}
	return false
}

// places returns an alternative for each name that a property can have: each known name, and one
// new name for each combination of matching patterns.
func (s *solver) places(st *state, want someProp) clause {
	names := map[string]bool{}
	for name := range st.required {
		names[name] = true
	}
	for name := range st.props {
		names[name] = true
	}
	var patterns []*language
	for _, m := range st.members {
		for name := range m.properties {
			names[name] = true
		}
		for _, p := range m.patterns {
			if p.language != nil {
				patterns = append(patterns, p.language)
			}
		}
	}
	for _, l := range st.spare {
		for name := range l.names {
			names[name] = true
		}
		patterns = append(patterns, l.patterns...)
	}
	var c clause
	put := func(name string) {
		c = append(c, change(func(sh *shape) { sh.require(name); sh.prop(name, want.rules...) }))
	}
	kept := text{max: -1, in: want.in, out: want.out}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !want.notNames[name] && kept.fits(name) && s.nameBreaks(name, want.breaks) {
			put(name)
		}
	}
	patterns = slices.DeleteFunc(slices.Compact(patterns), func(l *language) bool { return slices.Contains(want.in, l) || slices.Contains(want.out, l) })
	for name := range want.notNames {
		names[name] = true
	}
	known := oneOf(slices.Sorted(maps.Keys(names)))
	if len(patterns) > maxPattern || known == nil {
		return append(c, alternative{}) // the name is not restricted
	}
	for signs := range 1 << len(patterns) {
		t := text{max: -1, in: slices.Clip(want.in), out: append(slices.Clip(want.out), known)}
		for i, p := range patterns {
			if signs>>i&1 == 1 {
				t.in = append(t.in, p)
			} else {
				t.out = append(t.out, p)
			}
		}
		switch name, answer := s.name(st, t, want.breaks); answer {
		case Found:
			put(name)
		case Unknown:
			return append(c, alternative{})
		}
	}
	return c
}

// name finds a new name that the rules for names allow.
func (s *solver) name(st *state, t text, breaking *node) (string, Answer) {
	if len(st.names) == 0 && breaking == nil {
		readable := t
		readable.min = 1
		if name, answer := readable.find(); answer == Found {
			return name, answer
		}
		return t.find()
	}
	rules := each(st.names, fit)
	if breaking != nil {
		rules = append(rules, breaks(breaking))
	}
	v, answer := s.search(&state{shape: shape{kind: kindString, bools: [2]bool{true, true}, text: t, maxItems: -1, maxProps: -1}, todo: rules})
	name, _ := v.(string)
	return name, answer
}

// nameBreaks reports whether a name may break a schema.
func (s *solver) nameBreaks(name string, n *node) bool {
	if n == nil {
		return true
	}
	_, answer := s.value([]rule{fit(s.constant(name)), breaks(n)})
	return answer != Empty
}

// build makes a value of a complete shape.
func (s *solver) build(st *state) (any, Answer) {
	switch st.kind {
	case kindNull:
		return nil, Found
	case kindBoolean:
		return st.bools[1], Found
	case kindNumber:
		return st.number()
	case kindString:
		return s.text(&st.shape)
	case kindArray:
		return s.array(&st.shape)
	}
	return s.object(&st.shape)
}

func (s *solver) text(sh *shape) (any, Answer) {
	known := func(f string) bool {
		_, known := s.hasFormat(f, "")
		return known
	}
	formats := slices.DeleteFunc(slices.Clone(sh.formats), func(f string) bool { return !known(f) })
	for _, f := range sh.notFormats {
		if !known(f) {
			return nil, Empty // every text has an unknown format
		}
	}
	right := func(v string) bool {
		if !sh.fitsText(v) {
			return false
		}
		for _, f := range formats {
			if has, _ := s.hasFormat(f, v); !has {
				return false
			}
		}
		for _, f := range sh.notFormats {
			if has, _ := s.hasFormat(f, v); has {
				return false
			}
		}
		return true
	}
	if sh.chosen {
		if i := slices.IndexFunc(sh.choice, right); i >= 0 {
			return sh.choice[i], Found
		}
		return nil, Empty
	}
	if len(formats) > 0 {
		for _, v := range samples(formats) {
			if right(v) {
				return v, Found
			}
		}
	}
	t := sh.text
	if len(sh.notTexts) > 0 {
		not := oneOf(sh.notTexts)
		if not == nil {
			return nil, Unknown
		}
		t.out = append(slices.Clip(t.out), not)
	}
	if len(t.in)+len(t.out) == 0 { // only the length is restricted
		if t.max >= 0 && t.min > t.max {
			return nil, Empty
		}
		if t.min > maxText {
			return nil, Unknown
		}
		size := t.min
		if size == 0 && t.max != 0 {
			size = 1
		}
		if v := strings.Repeat("x", size); right(v) {
			return v, Found
		}
	}
	v, answer := t.find()
	if answer == Found && !right(v) {
		return nil, Unknown
	}
	return v, answer
}

func (s *solver) hasFormat(name, text string) (has, known bool) {
	if s.Format == nil {
		return true, false
	}
	return s.Format(name, text)
}

// array builds an array of the minimum length.
func (s *solver) array(sh *shape) (any, Answer) {
	for at := range sh.items {
		atLeast(&sh.minItems, at+1)
	}
	if sh.maxItems >= 0 && sh.minItems > sh.maxItems {
		return nil, Empty
	}
	if sh.minItems > maxItems {
		return nil, Unknown
	}
	rules := make([][]rule, sh.minItems)
	for at := range rules {
		rules[at] = slices.Clone(sh.items[at])
		for _, l := range sh.layers {
			if at < len(l.prefix) {
				rules[at] = append(rules[at], fit(l.prefix[at]))
			} else if l.items != nil {
				rules[at] = append(rules[at], fit(l.items))
			}
		}
	}
	if sh.alike != nil {
		if sh.unique {
			return nil, Empty
		}
		both := slices.Concat(rules[sh.alike[0]], rules[sh.alike[1]])
		rules[sh.alike[0]], rules[sh.alike[1]] = both, both
	}
	list, result := make([]any, len(rules)), Found
	for at := range rules {
		v, answer := s.value(rules[at])
		switch answer {
		case Empty:
			return nil, Empty
		case Unknown:
			result = Unknown
		}
		list[at] = v
	}
	if result == Found && sh.unique {
		result = s.unique(list, rules)
	}
	return list, result
}

// unique makes the items of an array distinct.
func (s *solver) unique(list []any, rules [][]rule) Answer {
	alike := true // all items have the same rules, so their order does not matter
	first, _ := s.key(rules0(rules))
	had := map[string]bool{}
	for at := range list {
		key, _ := s.key(rules[at])
		alike = alike && key == first
		if had[textOf(list[at])] {
			more := slices.Clone(rules[at])
			for _, v := range list[:at] {
				more = append(more, breaks(s.constant(v)))
			}
			v, answer := s.value(more)
			if answer == Empty && !alike {
				return Unknown
			}
			if answer != Found {
				return answer
			}
			list[at] = v
		}
		had[textOf(list[at])] = true
	}
	return Found
}

func rules0(rules [][]rule) []rule {
	if len(rules) == 0 {
		return nil
	}
	return rules[0]
}

func textOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// object builds an object with the required properties only.
func (s *solver) object(sh *shape) (any, Answer) {
	if sh.maxProps >= 0 && len(sh.required) > sh.maxProps {
		return nil, Empty
	}
	object, result := map[string]any{}, Found
	if len(sh.required) < sh.minProps {
		result = Unknown
	}
	for _, name := range slices.Sorted(maps.Keys(sh.required)) {
		rules, declared := sh.rulesOf(name, s.Fit)
		if s.Declared && !declared && sh.declares(s.Fit) {
			return nil, Empty
		}
		for _, n := range sh.names {
			switch _, answer := s.value([]rule{fit(s.constant(name)), fit(n)}); answer {
			case Empty:
				return nil, Empty
			case Unknown:
				result = Unknown
			}
		}
		v, answer := s.value(rules)
		switch answer {
		case Empty:
			return nil, Empty
		case Unknown:
			result = Unknown
		}
		object[name] = v
	}
	return object, result
}

// rulesOf returns the rules for the property of a name, and whether a schema declares the property.
func (sh *shape) rulesOf(name string, by *Schema) (rules []rule, declared bool) {
	rules = slices.Clone(sh.props[name])
	for _, m := range sh.members {
		named, unsure := false, false
		if p, ok := m.properties[name]; ok {
			named, rules = true, append(rules, fit(p))
		}
		for _, p := range m.patterns {
			switch {
			case p.language == nil:
				unsure = true
			case p.language.match.MatchString(name):
				named, rules = true, append(rules, fit(p.node))
			}
		}
		if !named && !unsure && m.additional != nil {
			rules = append(rules, fit(m.additional))
			named = m.additional.never || m.additional.says()
		}
		declared = declared || m.schema == by && named || m.schema == nil
	}
	for _, l := range sh.spare {
		if !l.names[name] && !slices.ContainsFunc(l.patterns, func(p *language) bool { return p.match.MatchString(name) }) {
			rules = append(rules, fit(l.node))
			declared = declared || l.schema == by && l.node.says()
		}
	}
	return rules, declared
}

// declares reports whether a schema names properties. A schema that names no properties is a map,
// in which every name is data.
func (sh *shape) declares(by *Schema) bool {
	return slices.ContainsFunc(sh.members, func(m *node) bool { return m.schema == by && len(m.properties)+len(m.patterns) > 0 })
}

// says reports whether a schema has any keyword besides annotations.
func (n *node) says() bool { return n.raw != nil && len(Plain(n.raw).(map[string]any)) > 0 }
