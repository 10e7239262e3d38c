package doc

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// orders hold the order in which the members of objects were written, where it is not that of their names. An object is
// known by its address, and not by its place: what aliases name is shared, and is noted once.
type orders map[uintptr][]string

func address(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

func (o orders) note(m map[string]any, names []string) {
	if !slices.IsSorted(names) {
		o[address(m)] = names
	}
}

// names returns the names of an object's members in the order of the text.
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

// read notes the order of the objects in v, the value that dec reads next. It was read once without error.
func (o orders) read(dec *json.Decoder, v any) {
	open, _ := dec.Token()
	switch open {
	case json.Delim('{'):
		m, _ := v.(map[string]any)
		var names []string
		for dec.More() {
			key, _ := dec.Token()
			name, _ := key.(string)
			names = append(names, name)
			o.read(dec, m[name])
		}
		if m != nil { // of a name that stands twice the last is in the tree, and may be no object
			o.note(m, names)
		}
	case json.Delim('['):
		list, _ := v.([]any)
		for i := 0; dec.More(); i++ {
			var element any
			if i < len(list) {
				element = list[i]
			}
			o.read(dec, element)
		}
	default:
		return
	}
	_, _ = dec.Token() // the end
}
