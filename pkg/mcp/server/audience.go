package server

import (
	"slices"
)

// Audience decides which principals can see a tool.
type Audience interface {
	// Sees reports whether lists for a principal contain the tool. An unknown principal is "".
	Sees(principal string) bool
	// String returns the same text for audiences with the same members.
	String() string
}

// views holds the distinct audiences of the tools.
type views struct {
	audiences []Audience // no two audiences are equal
	indexOf   map[string]int
}

// add returns the number of an audience. Everyone is 0.
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

// name returns the text of an audience by its number. It is empty for everyone.
func (v *views) name(i int) string {
	if i == 0 {
		return ""
	}
	return v.audiences[i-1].String()
}

// of returns the tools that a principal sees.
func (v *views) of(principal string, all []listed) []listed {
	if len(v.audiences) == 0 {
		return all
	}
	hidden := make([]bool, len(v.audiences)+1)
	for i, a := range v.audiences {
		hidden[i+1] = !a.Sees(principal)
	}
	return slices.DeleteFunc(slices.Clone(all), func(l listed) bool { return hidden[l.audience] })
}
