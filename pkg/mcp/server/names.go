package server

import "strings"

// maxName is the longest name that clients and models take.
const maxName = 64

// wireNames returns the name that clients know each offer by; see [Offer]. The names
// depend on the offers and not on their order, hidden ones included, so that a tool
// keeps its name while others come and go ready. A name is empty when it is not
// unique even with its hash, which is to say that an offer came twice.
func wireNames(all []Offer) []string {
	names := make([]string, len(all))
	taken := map[string]bool{}
	rest := make([]int, len(all))
	for i := range all {
		rest[i] = i
	}
	short := func(o Offer) string { return o.Tool.Metadata.Name }
	long := func(o Offer) string { return o.Tool.Namespace() + "__" + o.Tool.Metadata.Name }
	for _, form := range []func(Offer) string{short, long} {
		rest = claim(all, rest, names, taken, form)
	}
	for _, i := range rest {
		const tail = 8
		stem := legal(short(all[i]))
		name := stem[:min(len(stem), maxName-1-tail)] + "_" + hash(all[i].Name)[:tail]
		if !taken[name] {
			taken[name], names[i] = true, name
		}
	}
	return names
}

// claim gives a form of their names to those of rest that are alone in it, or the
// only ones that need no change for it. It returns those that got none.
func claim(all []Offer, rest []int, names []string, taken map[string]bool, form func(Offer) string) []int {
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
