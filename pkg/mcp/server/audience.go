package server

import (
	"slices"
	"sync"
)

// Audience says who sees a tool that is hidden from some principals.
type Audience interface {
	// Sees reports whether the tool is listed for a principal; "" is one that is not known.
	Sees(principal string) bool
	// String is the same for audiences that see the same.
	String() string
}

// maxViews bounds how many different lists are remembered.
const maxViews = 64

// views are the lists of principals that do not see every tool.
type views struct {
	audiences []Audience // no two see the same
	indexOf   map[string]int

	mu    sync.Mutex
	lists map[string][]listed // by who of audiences sees: a byte for each
}

// add returns the number of an audience: 0 for everyone, else from 1.
func (v *views) add(a Audience) int {
	if a == nil {
		return 0
	}
	if i, ok := v.indexOf[a.String()]; ok {
		return i
	}
	if v.indexOf == nil {
		v.indexOf = map[string]int{}
	}
	v.audiences = append(v.audiences, a)
	v.indexOf[a.String()] = len(v.audiences)
	return len(v.audiences)
}

// name returns the text of an audience by its number, "" for everyone.
func (v *views) name(i int) string {
	if i == 0 {
		return ""
	}
	return v.audiences[i-1].String()
}

// of returns those of the tools that a principal sees.
func (v *views) of(principal string, all []listed) []listed {
	if len(v.audiences) == 0 {
		return all
	}
	seen := make([]byte, len(v.audiences))
	for i, a := range v.audiences {
		if a.Sees(principal) {
			seen[i] = 1
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list, ok := v.lists[string(seen)]
	if !ok {
		list = slices.DeleteFunc(slices.Clone(all), func(l listed) bool { return l.audience > 0 && seen[l.audience-1] == 0 })
		if v.lists == nil || len(v.lists) >= maxViews {
			v.lists = map[string][]listed{}
		}
		v.lists[string(seen)] = list
	}
	return list
}
