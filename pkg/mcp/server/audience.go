package server

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

// hides stands for an audience that does not see a tool.
const hides = '-'

// key returns which audiences a principal belongs to, with one byte each.
func (v *views) key(principal string) []byte {
	key := make([]byte, len(v.audiences))
	for i, a := range v.audiences {
		if key[i] = hides; a.Sees(principal) {
			key[i] = '+'
		}
	}
	return key
}
