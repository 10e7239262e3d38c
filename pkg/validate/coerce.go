package validate

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// maxRepairs is the maximum number of repairs in one round. A document with more violations is not
// a model's slip, and repairing it would take too long.
const maxRepairs = 10_000

// maxRounds is the maximum number of times that a document is coerced and checked again. Each round
// reaches the values that the previous one uncovered, such as the inside of a JSON text.
const (
	maxRounds      = 16
	maxRoundsLarge = 4 // for a document with more than manyValues values
	manyValues     = 10_000
)

// Coerce corrects common mistakes of models in arguments, and reports whether anything
// changed. It never changes doc itself.
//
// It starts from the violations that the engine finds, so it never touches a value that is
// valid at its place, and returns a valid document unchanged. It coerces each value
// separately:
//
//   - a string whose text is JSON of a type that the schema expects there: "5" for
//     an integer or number, "null" for null, and a JSON text for an object or array.
//     Numbers keep every digit.
//   - for a boolean, the texts true, t, yes, on and 1, and false, f, no, off and 0, in
//     any case, and the numbers 1 and 0.
//   - null or "" for a property that is not required, where the schema accepts
//     neither: the property is removed.
//   - a string that differs from exactly one value of an enum or const in case
//     and the space around it only, or whose text is exactly one of its numbers or
//     booleans.
//   - one value for an array whose items are of its type: it becomes the only item.
//
// A change that does not make its place valid is undone, and validation reports the
// original value. Nothing else changes: numbers do not become strings, texts are not
// split into items, and defaults are not filled in.
func (s *Schema) Coerce(doc any) (fixed any, changed bool) {
	fixed, changed, _, err := s.Check(doc, true)
	if err != nil {
		return doc, false
	}
	return fixed, changed
}

// A repair changes or removes the value at one place.
type repair struct {
	path   []string
	remove bool
	value  any
	before any
	wraps  bool // value is an array that contains the previous value
}

// coerceRound repairs doc by its problems. It returns the document to continue with and
// the remaining problems.
func (s *Schema) coerceRound(doc any, problems []problem) (any, bool, []problem, error) {
	fixed, changed := doc, false
	if len(problems) > maxRepairs {
		return doc, false, problems, nil
	}
	rounds := maxRounds
	var seen survey
	if _ = seen.visit(doc, 0); seen.values > manyValues { // problems has checked the bounds
		rounds = maxRoundsLarge
	}
	tried := map[string]bool{}
	for range rounds {
		repairs := plan(fixed, problems, tried)
		if len(repairs) == 0 {
			break
		}
		next := repaired(fixed, repairs)
		left, err := s.problems(next)
		if err != nil {
			return doc, false, problems, err
		}
		if good := effective(repairs, left); len(good) < len(repairs) {
			next = repaired(fixed, good)
			if repairs = good; len(repairs) == 0 {
				continue // other repairs may be planned, now that these are known to fail
			}
			if left, err = s.problems(next); err != nil {
				return doc, false, problems, err
			}
		}
		if len(left) == 1 && left[0].keyword == keywordCost {
			break // the coerced document would be too expensive to check
		}
		fixed, changed, problems = next, true, left
		clear(tried) // repairs that failed before may work now
		if len(problems) == 0 {
			break
		}
	}
	return fixed, changed, problems, nil
}

// plan lists one untried repair for each place.
func plan(doc any, problems []problem, tried map[string]bool) []repair {
	var repairs []repair
	for i := range problems {
		p := &problems[i]
		if p.keyword == "required" || p.keyword == "dependentRequired" {
			continue
		}
		for j, r := range p.repairs(at(doc, p.path)) {
			key := v1.Pointer("", r.path...) + "\x00" + strconv.Itoa(j)
			if !tried[key] {
				tried[key] = true
				repairs = append(repairs, r)
				break
			}
		}
	}
	return repairs
}

// repairs lists possible repairs of a problem, the most likely first.
func (p *problem) repairs(v any) []repair {
	var out []repair
	text, isString := v.(string)
	if len(p.path) > 0 && (v == nil || isString && text == "") {
		switch p.keyword {
		case keywordValue, "format", "pattern", "minLength":
			out = append(out, repair{path: p.path, before: v, remove: true})
		}
	}
	if p.keyword != keywordValue {
		return out
	}
	add := func(value any, ok bool) {
		if ok {
			out = append(out, repair{path: p.path, before: v, value: value})
		}
	}
	if isString {
		add(coerceEnum(text, p.allowed))
		add(coerceType(text, p.types))
	}
	if slices.Contains(p.types, "boolean") || slices.ContainsFunc(p.allowed, isBool) {
		add(coerceBool(v))
	}
	if v != nil && v != any("") && slices.Contains(p.types, "array") {
		if _, already := v.([]any); !already {
			out = append(out, repair{path: p.path, before: v, value: []any{v}, wraps: true})
		}
	}
	return out
}

func isBool(v any) bool {
	_, ok := v.(bool)
	return ok
}

// coerceBool reads the texts and numbers that stand for a boolean.
func coerceBool(v any) (value any, ok bool) {
	var text string
	switch v := v.(type) {
	case string:
		text = strings.ToLower(strings.TrimSpace(v))
	case json.Number:
		text = v.String()
		return text == "1", text == "1" || text == "0"
	}
	switch text {
	case "true", "t", "yes", "on", "1":
		return true, true
	case "false", "f", "no", "off", "0":
		return false, true
	}
	return nil, false
}

// coerceType reads a string as JSON of one of the types.
func coerceType(text string, types []string) (any, bool) {
	v, err := Decode([]byte(strings.TrimSpace(text)))
	if err != nil {
		return nil, false
	}
	ok := false
	switch v := v.(type) {
	case nil:
		ok = slices.Contains(types, "null")
	case json.Number:
		ok = slices.Contains(types, "number") || slices.Contains(types, "integer") && isInteger(v)
	case []any:
		ok = slices.Contains(types, "array")
	case map[string]any:
		ok = slices.Contains(types, "object")
	}
	return v, ok
}

// coerceEnum finds the one allowed value that a string was meant to be.
func coerceEnum(text string, allowed []any) (any, bool) {
	var found []any
	trimmed := strings.TrimSpace(text)
	for _, a := range allowed {
		s, ok := a.(string)
		if ok && s == trimmed {
			return s, true
		}
		if ok && strings.EqualFold(strings.TrimSpace(s), trimmed) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		v, err := Decode([]byte(trimmed))
		if err != nil {
			return nil, false
		}
		for _, a := range allowed {
			if _, isString := a.(string); !isString && reflect.DeepEqual(a, v) {
				found = append(found, v) // not a, which belongs to the schema
			}
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// effective returns the repairs that corrected the type, value or presence at their place. The next
// round or the caller handles nested values and violated bounds.
func effective(repairs []repair, left []problem) []repair {
	wrong := map[string]bool{}
	gone := map[string]bool{}
	for i := range left {
		key := v1.Pointer("", left[i].path...)
		switch left[i].keyword {
		case keywordValue, "anyOf", "oneOf", "not", keywordFalse, keywordUnknown:
			wrong[key] = true
		case "required", "dependentRequired":
			gone[key] = true
		}
	}
	var good []repair
	for _, r := range repairs {
		key := v1.Pointer("", r.path...)
		if !wrong[key] && !gone[key] && !(r.wraps && wrong[key+"/0"]) {
			good = append(good, r)
		}
	}
	return good
}

// repaired returns a copy of a document with the repairs applied.
func repaired(doc any, repairs []repair) any {
	doc = cloned(doc)
	for _, r := range repairs {
		if len(r.path) == 0 {
			doc = r.value
			continue
		}
		name := r.path[len(r.path)-1]
		switch parent := at(doc, r.path[:len(r.path)-1]).(type) {
		case map[string]any:
			if _, ok := parent[name]; ok && !r.remove {
				parent[name] = r.value
			} else if ok {
				delete(parent, name)
			}
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(parent) && !r.remove {
				parent[i] = r.value
			}
		}
	}
	return doc
}

func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			out[k] = cloned(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = cloned(item)
		}
		return out
	}
	return v
}
