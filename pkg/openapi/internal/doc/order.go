package doc

import (
	"maps"
	"reflect"
	"slices"
)

// orders holds the written order of the members of objects, if it differs from the order of their names. An object is
// identified by its address and not by its place, because aliases share objects.
type orders map[uintptr][]string

func address(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

func (o orders) note(m map[string]any, names []string) {
	if !slices.IsSorted(names) {
		o[address(m)] = names
	}
}

// names returns the member names of an object in the order of the text.
func (o orders) names(m map[string]any) []string {
	written, ok := o[address(m)]
	if !ok {
		return slices.Sorted(maps.Keys(m))
	}
	seen := make(map[string]bool, len(m))
	out := make([]string, 0, len(m))
	for _, name := range written {
		if _, there := m[name]; there && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
