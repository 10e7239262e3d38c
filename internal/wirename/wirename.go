// Package wirename gives tools and prompts the names by which MCP clients and models
// know them: ^[a-zA-Z0-9_-]{1,64}$, and no two the same.
//
// A thing is known by its name; where two namespaces have the name, or it becomes
// another's when it is made legal, by namespace__name; where that fails too, or is too
// long, by its name and a hash.
package wirename

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is the longest name that clients and models take.
const maxName = 64

// ID is what a wire name is made of.
type ID struct {
	Namespace, Name string
	// Full is a name that nothing else has.
	Full string
}

// Names returns the names that clients know things by, one for each. They do not
// depend on the order. What is there and not shown should take part, so that a tool
// keeps its name while others come and go. A name is empty when it is not unique even
// with its hash, which is to say that something came twice.
func Names(all []ID) []string {
	names := make([]string, len(all))
	taken := map[string]bool{}
	rest := make([]int, len(all))
	for i := range all {
		rest[i] = i
	}
	for _, form := range []func(ID) string{short, long} {
		rest = claim(all, rest, names, taken, form)
	}
	for _, i := range rest {
		name := hashed(all[i])
		if !taken[name] {
			taken[name], names[i] = true, name
		}
	}
	return names
}

// Forms returns every name that Names may give a thing, whatever else there is.
func Forms(id ID) []string { return []string{Clean(short(id)), Clean(long(id)), hashed(id)} }

func short(id ID) string { return id.Name }

func long(id ID) string { return id.Namespace + "__" + id.Name }

func hashed(id ID) string {
	return Stem(short(id)) + "_" + hash(id.Full)[:hashLength]
}

const hashLength = 8

// Stem returns what every form of a name without its namespace begins with.
func Stem(name string) string {
	clean := Clean(name)
	return clean[:min(len(clean), maxName-1-hashLength)]
}

// claim gives a form of their names to those of rest that are alone in it, or the
// only ones that need no change for it. It returns those that got none.
func claim(all []ID, rest []int, names []string, taken map[string]bool, form func(ID) string) []int {
	exact, changed := map[string][]int{}, map[string][]int{}
	for _, i := range rest {
		name := form(all[i])
		switch wire := Clean(name); {
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
		if wire := Clean(form(all[i])); len(wire) <= maxName {
			taken[wire] = true
		}
		if !won[i] {
			left = append(left, i)
		}
	}
	return left
}

// Clean replaces what clients do not take in a name.
func Clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
}

func hash(full string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", len(full), full))
	return hex.EncodeToString(sum[:])
}
