package schema

import "slices"

// Join combines two schemas, as far as one object can: properties are joined one by one, required names are
// added up, and every other keyword of b replaces that of a.
func Join(a, b Object) Object {
	out := a.Clone()
	for _, k := range b.Names() {
		v, _ := b.Get(k)
		if old, had := out.Get(k); had {
			v = joined(k, old, v)
		}
		out.Set(k, v)
	}
	return out
}

// joined returns the combined value of a keyword that both schemas have.
func joined(keyword string, a, b any) any {
	switch keyword {
	case "required":
		x, _ := a.([]any)
		y, _ := b.([]any)
		return append(slices.Clip(x), y...)
	case "properties":
		x, y := ObjectOf(a), ObjectOf(b)
		if x == nil || y == nil {
			return b
		}
		out := x.Clone()
		for _, name := range y.Names() {
			now, _ := y.Get(name)
			was, _ := x.Get(name)
			if was, one := ObjectOf(was), ObjectOf(now); was != nil && one != nil {
				now = Join(was, one)
			}
			out.Set(name, now)
		}
		return out
	}
	return b
}
