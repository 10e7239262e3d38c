// Package merge merges two sets of changes to a JSON tree, and writes a changed tree into the YAML text that it came
// from.
//
// A tree is made of map[string]any, []any, string, [encoding/json.Number], bool
// and nil.
package merge

import (
	"maps"
	"reflect"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Absent stands for a missing field.
var Absent any = absent{}

type absent struct{}

// A Conflict is a field that both sides changed differently.
type Conflict struct {
	// Path is the JSON pointer of the field.
	Path string
	// Base, Ours and Theirs are its values, or [Absent] if the field is missing.
	Base, Ours, Theirs any
}

// Three merges two versions of base, field by field. It takes changes that only one side made. Lists of distinct texts
// are merged as sets; other lists are one field. A field that both sides changed differently keeps the value of ours and
// is reported as a conflict.
func Three(base, ours, theirs any) (any, []Conflict) {
	m := merger{}
	out := m.value("", base, ours, theirs)
	return out, m.conflicts
}

type merger struct{ conflicts []Conflict }

func (m *merger) value(path string, base, ours, theirs any) any {
	switch {
	case Equal(ours, theirs), Equal(theirs, base):
		return ours
	case Equal(ours, base):
		return theirs
	}
	o, oursMap := ours.(map[string]any)
	t, theirsMap := theirs.(map[string]any)
	if oursMap && theirsMap {
		b, _ := base.(map[string]any)
		return m.object(path, b, o, t)
	}
	if list, ok := mergeSets(base, ours, theirs); ok {
		return list
	}
	m.conflicts = append(m.conflicts, Conflict{path, base, ours, theirs})
	return ours
}

func (m *merger) object(path string, base, ours, theirs map[string]any) map[string]any {
	keys := map[string]bool{}
	for _, side := range []map[string]any{base, ours, theirs} {
		for k := range side {
			keys[k] = true
		}
	}
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if v := m.value(v1.Pointer(path, k), get(base, k), get(ours, k), get(theirs, k)); v != Absent {
			out[k] = v
		}
	}
	return out
}

func get(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return Absent
}

// Equal reports whether two trees are equal.
func Equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// mergeSets merges three lists of distinct texts: theirs, without the texts that ours removed, and with those that ours
// added.
func mergeSets(base, ours, theirs any) (any, bool) {
	b, okB := set(base)
	o, okO := set(ours)
	t, okT := set(theirs)
	if !okB || !okO || !okT {
		return nil, false
	}
	out := []any{}
	for _, v := range t {
		if !slices.Contains(b, v) || slices.Contains(o, v) {
			out = append(out, v)
		}
	}
	for _, v := range o {
		if !slices.Contains(b, v) && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, true
}

func set(v any) ([]any, bool) {
	l, ok := v.([]any)
	seen := make(map[any]bool, len(l))
	for _, e := range l {
		if _, isText := e.(string); !isText || seen[e] {
			return nil, false
		}
		seen[e] = true
	}
	return l, ok
}
