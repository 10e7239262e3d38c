package server

import "strings"

// maxName is the longest name that clients and models take.
const maxName = 64

// identity is what the name that clients know something by is made of.
type identity struct{ namespace, name, full string }

// wireNames returns the names that clients know things by; see [Offer]. They do not
// depend on the order, and hidden tools take part, so that a tool keeps its name while
// others come and go ready. A name is empty when it is not unique even with its hash,
// which is to say that something came twice.
func wireNames(all []identity) []string {
	names := make([]string, len(all))
	taken := map[string]bool{}
	rest := make([]int, len(all))
	for i := range all {
		rest[i] = i
	}
	short := func(id identity) string { return id.name }
	long := func(id identity) string { return id.namespace + "__" + id.name }
	for _, form := range []func(identity) string{short, long} {
		rest = claim(all, rest, names, taken, form)
	}
	for _, i := range rest {
		const tail = 8
		stem := legal(short(all[i]))
		name := stem[:min(len(stem), maxName-1-tail)] + "_" + hash(all[i].full)[:tail]
		if !taken[name] {
			taken[name], names[i] = true, name
		}
	}
	return names
}

// claim gives a form of their names to those of rest that are alone in it, or the
// only ones that need no change for it. It returns those that got none.
func claim(all []identity, rest []int, names []string, taken map[string]bool, form func(identity) string) []int {
	exact, changed := map[string][]int{}, map[string][]int{}
	for _, i := range rest {
		name := form(all[i])
		switch wire := legal(name); {
		case len(wire) > maxName:
		case wire == name:
			exact[wire] = append(exact[wire], i)
		default:
			changed[wire] = append(changed[wire], i)
		}
	}
	won := map[int]bool{}
	award := func(name string, is []int) {
		if len(is) == 1 && !taken[name] {
			names[is[0]], won[is[0]] = name, true
		}
	}
	for name, is := range exact {
		award(name, is)
	}
	for name, is := range changed {
		if len(exact[name]) == 0 {
			award(name, is)
		}
	}
	var left []int
	for _, i := range rest {
		// A form that two claimed goes to none, in later forms too.
		if wire := legal(form(all[i])); len(wire) <= maxName {
			taken[wire] = true
		}
		if !won[i] {
			left = append(left, i)
		}
	}
	return left
}

// legal replaces what clients do not take in a name.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
}
