package solve

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/schema"
)

var one = big.NewRat(1, 1)

func fit(n *node) rule    { return rule{n, false} }
func breaks(n *node) rule { return rule{n, true} }

func each(ns []*node, of func(*node) rule) []rule {
	all := make([]rule, len(ns))
	for i, n := range ns {
		all[i] = of(n)
	}
	return all
}

// all returns the alternative that all rules hold; change, the alternative that narrows the shape.
func all(rules ...rule) alternative { return alternative{rules: rules} }

func change(f func(*shape)) alternative {
	return alternative{change: func(s *shape) bool { f(s); return true }}
}

// unsure is an alternative without rules or change. It rules out no value, because nothing is known about
// it.
var unsure alternative

// test adds the requirement of a keyword for values of some kinds.
func (n *node) test(k kind, keep alternative, fails ...alternative) {
	n.tests = append(n.tests, test{k, clause{keep}, fails})
}

// read converts each keyword to the alternatives that keep it and those that break it.
func (r reader) read() {
	if _, ok := schema.Reference(r.raw); ok {
		r.reference()
		if r.schema.draft <= schema.Draft7 {
			return // siblings of a reference are ignored (draft-07 core, section 8.3)
		}
	}
	for _, key := range []string{schema.DynamicRef, schema.RecursiveRef} {
		if _, ok := r.raw[key]; ok {
			r.opaque = true
		}
	}
	r.values()
	r.applicators()
	r.numbers()
	r.texts()
	r.arrays()
	r.objects()
}

func (r reader) reference() {
	ref, _ := schema.Reference(r.raw)
	raw, at, ok := r.schema.doc.Resolve(ref)
	if !ok || !strings.HasPrefix(ref, "#") || r.at != "" && r.raw["$id"] != nil {
		r.opaque = true
		return
	}
	target := r.schema.node(raw, at, 0)
	r.inPlace = append(r.inPlace, target)
	r.test(anyKind, all(fit(target)), all(breaks(target)))
}

func (r reader) types() []any {
	if types, ok := r.raw["type"].([]any); ok {
		return types
	}
	return []any{r.raw["type"]}
}

func (r reader) values() {
	for _, t := range r.types() {
		name, _ := t.(string)
		r.kinds |= kindOf[name]
	}
	if v, ok := r.raw["const"]; ok && r.schema.draft >= schema.Draft6 {
		r.enums = append(r.enums, []any{v})
	}
	if list, ok := r.raw["enum"].([]any); ok {
		r.enums = append(r.enums, list)
	}
}

func (r reader) applicators() {
	for _, m := range r.subs("allOf") {
		r.inPlace = append(r.inPlace, m)
		r.test(anyKind, all(fit(m)), all(breaks(m)))
	}
	if not := r.sub("not"); not != nil {
		r.test(anyKind, all(breaks(not)), all(fit(not)))
	}
	if anyOf := r.subs("anyOf"); len(anyOf) > 0 {
		t := test{kinds: anyKind, fails: clause{all(each(anyOf, breaks)...)}}
		for _, m := range anyOf {
			t.keep = append(t.keep, all(fit(m)))
		}
		r.tests, r.perhaps = append(r.tests, t), append(r.perhaps, anyOf...)
	}
	const most = 500 // the maximum length, because each pair is compared
	oneOf := r.subs("oneOf")
	r.perhaps = append(r.perhaps, oneOf...)
	if len(oneOf) > most {
		r.opaque = true
	} else if len(oneOf) > 0 {
		t := test{kinds: anyKind}
		for i, m := range oneOf {
			alone := each(oneOf, breaks)
			alone[i] = fit(m)
			t.keep = append(t.keep, all(alone...))
			for _, other := range oneOf[i+1:] {
				t.fails = append(t.fails, all(fit(m), fit(other)))
			}
		}
		t.fails = append(t.fails, all(each(oneOf, breaks)...))
		r.tests = append(r.tests, t)
	}
	condition := r.sub("if")
	if condition == nil || r.schema.draft < schema.Draft7 {
		return
	}
	yes, no := all(fit(condition)), all(breaks(condition))
	t := test{kinds: anyKind}
	r.perhaps = append(r.perhaps, condition)
	if then := r.sub("then"); then != nil {
		yes.rules, r.perhaps = append(yes.rules, fit(then)), append(r.perhaps, then)
		t.fails = append(t.fails, all(fit(condition), breaks(then)))
	}
	if otherwise := r.sub("else"); otherwise != nil {
		no.rules, r.perhaps = append(no.rules, fit(otherwise)), append(r.perhaps, otherwise)
		t.fails = append(t.fails, all(breaks(condition), breaks(otherwise)))
	}
	if len(t.fails) > 0 {
		t.keep = clause{yes, no}
		r.tests = append(r.tests, t)
	}
}

func (r reader) numbers() {
	if types := r.types(); slices.Contains(types, any("integer")) && !slices.Contains(types, any("number")) {
		r.step(one)
	}
	bound := func(keyword, exclusive string, nearer int) *limit {
		var l *limit
		if v := r.rat(keyword); v != nil {
			l = &limit{v, r.raw[exclusive] == true} // a boolean in draft-04
		}
		if v := r.rat(exclusive); v != nil && (l == nil || v.Cmp(l.at)*nearer >= 0) {
			l = &limit{v, true}
		}
		return l
	}
	if lo := bound("minimum", "exclusiveMinimum", 1); lo != nil {
		r.test(kindNumber, change(func(s *shape) { s.above(lo) }), change(func(s *shape) { s.below(&limit{lo.at, !lo.open}) }))
	}
	if hi := bound("maximum", "exclusiveMaximum", -1); hi != nil {
		r.test(kindNumber, change(func(s *shape) { s.below(hi) }), change(func(s *shape) { s.above(&limit{hi.at, !hi.open}) }))
	}
	if step := r.rat("multipleOf"); step != nil && step.Sign() > 0 {
		r.step(step)
	}
}

// step adds the requirement of a multiple of a number.
func (n *node) step(step *big.Rat) {
	n.test(kindNumber, change(func(s *shape) { s.steps = append(slices.Clip(s.steps), step) }),
		change(func(s *shape) { s.notSteps = append(slices.Clip(s.notSteps), step) }))
}

// counts reads the bounds of a count, such as the length or the number of items.
func (r reader) counts(k kind, minimum, maximum string, of func(*shape) (least, most *int)) {
	atLeast := func(n int) alternative {
		return change(func(s *shape) { least, _ := of(s); *least = max(*least, n) })
	}
	atMost := func(n int) alternative {
		return change(func(s *shape) { _, most := of(s); atMost(most, n) })
	}
	if n := r.count(minimum, 0); n > 0 {
		r.test(k, atLeast(n), atMost(n-1))
	}
	if n := r.count(maximum, -1); n >= 0 {
		r.test(k, atMost(n), atLeast(n+1))
	}
}

func (r reader) texts() {
	r.counts(kindString, "minLength", "maxLength", func(s *shape) (least, most *int) { return &s.text.min, &s.text.max })
	if text, ok := r.raw["pattern"].(string); ok {
		if pattern := newLanguage(text); pattern == nil {
			r.opaque = true
		} else {
			r.test(kindString, change(func(s *shape) { s.text.in = append(slices.Clip(s.text.in), pattern) }),
				change(func(s *shape) { s.text.out = append(slices.Clip(s.text.out), pattern) }))
		}
	}
	if format, _ := r.raw["format"].(string); format != "" {
		r.test(kindString, change(func(s *shape) { s.formats = append(slices.Clip(s.formats), format) }),
			change(func(s *shape) { s.notFormats = append(slices.Clip(s.notFormats), format) }))
	}
}

func (r reader) arrays() {
	r.counts(kindArray, "minItems", "maxItems", func(s *shape) (least, most *int) { return &s.minItems, &s.maxItems })
	if r.raw["uniqueItems"] == true {
		r.test(kindArray, change(func(s *shape) { s.unique = true }), change(func(s *shape) { s.twice = true; atLeast(&s.minItems, 2) }))
	}
	if r.schema.draft >= schema.Draft2020 {
		r.prefix, r.items = r.subs("prefixItems"), r.sub("items")
	} else if _, tuple := r.raw["items"].([]any); tuple {
		r.prefix, r.items = r.subs("items"), r.sub("additionalItems")
	} else {
		r.items = r.sub("items")
	}
	r.layer()
	if contains := r.sub("contains"); contains != nil && r.schema.draft >= schema.Draft6 {
		r.contains(contains)
	}
	if r.schema.draft >= schema.Draft2019 && r.raw["unevaluatedItems"] != nil {
		r.test(kindArray, unsure, unsure)
	}
}

// layer adds the requirements of prefix and items.
func (n *node) layer() {
	if len(n.prefix) == 0 && n.items == nil {
		return
	}
	var fails clause
	for i, m := range n.prefix {
		fails = append(fails, change(func(s *shape) { atLeast(&s.minItems, i+1); s.item(i, breaks(m)) }))
	}
	if n.items != nil {
		fails = append(fails, change(func(s *shape) { s.some = append(slices.Clip(s.some), someItem{[]rule{breaks(n.items)}, len(n.prefix)}) }))
	}
	n.test(kindArray, change(func(s *shape) { s.layers = append(slices.Clip(s.layers), n) }), fails...)
}

func (r reader) contains(contains *node) {
	least, most := 1, -1
	if r.schema.draft >= schema.Draft2019 {
		least, most = r.count("minContains", 1), r.count("maxContains", -1)
	}
	there := func(n int) alternative {
		return change(func(s *shape) {
			atLeast(&s.minItems, n)
			s.some = append(slices.Clip(s.some), someItem{rules: []rule{fit(contains)}})
		})
	}
	switch {
	case least == 1:
		other, none := &node{}, &node{}
		other.test(anyKind, all(breaks(contains)), all(fit(contains)))
		none.items = other
		none.layer()
		r.test(kindArray, there(1), all(fit(none)))
	case least > 1:
		r.test(kindArray, there(least), unsure) // "fewer than least" cannot be expressed
	}
	if most >= 0 {
		r.test(kindArray, unsure, there(most+1))
	}
}

func (r reader) objects() {
	r.properties, r.additional = r.subMap("properties"), r.sub("additionalProperties")
	patterns := r.subMap("patternProperties")
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		p := patternNode{newLanguage(text), patterns[text]}
		r.opaque = r.opaque || p.language == nil
		r.patterns = append(r.patterns, p)
	}
	for _, name := range r.names(r.raw["required"]) {
		r.require(name)
	}
	r.counts(kindObject, "minProperties", "maxProperties", func(s *shape) (least, most *int) { return &s.minProps, &s.maxProps })
	r.members()
	if names := r.sub("propertyNames"); names != nil && r.schema.draft >= schema.Draft6 {
		r.test(kindObject, change(func(s *shape) { s.names = append(slices.Clip(s.names), names) }), someProperty(someProp{breaks: names}))
	}
	key, schemas := "dependentRequired", "dependentSchemas"
	if r.schema.draft <= schema.Draft7 {
		key, schemas = "dependencies", "dependencies"
	} else if r.unevaluated = r.sub("unevaluatedProperties"); r.unevaluated != nil {
		r.spare()
	}
	needs, _ := r.raw[key].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if _, list := needs[name].([]any); list {
			r.dependent(name, r.names(needs[name]))
		}
	}
	needed := r.subMap(schemas)
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		r.perhaps = append(r.perhaps, needed[name])
		r.dependent(name, nil, needed[name])
	}
}

func (n *node) require(name string) {
	n.test(kindObject, change(func(s *shape) { s.require(name) }), change(func(s *shape) { s.prop(name, absent) }))
}

// members adds the requirements of properties, patterns and additional.
func (n *node) members() {
	if len(n.properties) == 0 && len(n.patterns) == 0 && n.additional == nil {
		return
	}
	var fails clause
	known, patterns := map[string]bool{}, []*language(nil)
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		known[name] = true
		fails = append(fails, change(func(s *shape) { s.require(name); s.prop(name, breaks(n.properties[name])) }))
	}
	for _, p := range n.patterns {
		patterns = append(patterns, p.language)
		fails = append(fails, someProperty(someProp{in: []*language{p.language}, rules: []rule{breaks(p.node)}}))
	}
	if n.additional != nil {
		fails = append(fails, someProperty(someProp{out: patterns, notNames: known, rules: []rule{breaks(n.additional)}}))
	}
	n.test(kindObject, change(func(s *shape) { s.members = append(slices.Clip(s.members), n) }), fails...)
}

func someProperty(p someProp) alternative {
	return change(func(s *shape) { s.somes = append(slices.Clip(s.somes), p) })
}

// spare adds the requirement of unevaluatedProperties. The properties that other keywords evaluate are
// known only after all keywords have been read.
func (r reader) spare() {
	n := r.node
	keep := change(func(s *shape) {
		if seen := evaluated(n, true); !seen.all {
			s.spare = append(slices.Clip(s.spare), spareLayer{seen.names, seen.patterns, n.unevaluated, n.schema})
		}
	})
	n.test(kindObject, keep, alternative{change: func(s *shape) bool {
		sure := evaluated(n, false)
		if !sure.all {
			s.somes = append(slices.Clip(s.somes), someProp{out: sure.patterns, notNames: sure.names, rules: []rule{breaks(n.unevaluated)}})
		}
		return !sure.all
	}})
}

// dependent adds the requirements that hold if a property exists: other properties, and schemas for the
// object.
func (n *node) dependent(name string, wants []string, schemas ...*node) {
	there := change(func(s *shape) {
		s.require(name)
		for _, want := range wants {
			s.require(want)
		}
	})
	there.rules = each(schemas, fit)
	t := test{kinds: kindObject, keep: clause{change(func(s *shape) { s.prop(name, absent) }), there}}
	for _, want := range wants {
		t.fails = append(t.fails, change(func(s *shape) { s.require(name); s.prop(want, absent) }))
	}
	for _, m := range schemas {
		fails := change(func(s *shape) { s.require(name) })
		fails.rules = []rule{breaks(m)}
		t.fails = append(t.fails, fails)
	}
	n.tests = append(n.tests, t)
}

// seen is the set of properties that the keywords beside unevaluatedProperties evaluate, possibly or
// certainly.
type seen struct {
	all      bool
	names    map[string]bool
	patterns []*language
}

// evaluated returns the properties that the in-place keywords evaluate: in any branch if maybe is set,
// else in all cases.
func evaluated(n *node, maybe bool) seen {
	all := seen{names: map[string]bool{}}
	had := map[*node]bool{}
	var walk func(m *node)
	walk = func(m *node) {
		if had[m] {
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
		for _, b := range m.inPlace {
			walk(b)
		}
		for _, b := range m.perhaps {
			if maybe {
				walk(b)
			}
		}
	}
	walk(n)
	return all
}
