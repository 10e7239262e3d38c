package jsonpath

import (
	"encoding/json"
	"strings"
)

// translator converts the steps of a kubectl path to RFC 9535. In kubectl, any name may follow a
// point, with "\." for a point in the name, so the translation puts names in brackets.
type translator struct {
	in  string
	out strings.Builder
}

// steps reads as many steps .name, ..name, .* and [...] as possible. In a filter, an operator also
// ends a name.
func (t *translator) steps(filter bool) {
	for t.in != "" {
		switch {
		case t.in[0] == '[':
			if !t.brackets() {
				return
			}
		case t.in == ".": // the value itself
			t.in = ""
		case t.in[0] == '.':
			rest := t.in[1:]
			if strings.HasPrefix(rest, ".") {
				t.out.WriteString("..")
				if rest = rest[1:]; strings.HasPrefix(rest, "[") {
					t.in = rest
					continue
				}
			}
			if strings.HasPrefix(rest, "[") { // .items.[0], which kubectl accepts
				t.in = rest
				continue
			}
			name, rest := cutName(rest, filter)
			if name == "" {
				return
			}
			t.in = rest
			if name == "*" {
				t.out.WriteString("[*]")
				continue
			}
			quoted, _ := json.Marshal(name) // a string can always be encoded
			t.out.WriteString("[" + string(quoted) + "]")
		default:
			return
		}
	}
}

// cutName splits a text after a name.
func cutName(s string, filter bool) (name, rest string) {
	ends := ".["
	if filter {
		ends += " \t=!<>&|()"
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case strings.IndexByte(ends, s[i]) >= 0:
			return b.String(), s[i:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// brackets copies [...] and translates the paths inside a filter. It reports whether the bracket is
// closed.
func (t *translator) brackets() bool {
	depth := 0
	var quote byte
	for t.in != "" {
		c := t.in[0]
		t.out.WriteByte(c)
		t.in = t.in[1:]
		switch {
		case quote != 0:
			switch {
			case c == '\\' && t.in != "":
				t.out.WriteByte(t.in[0])
				t.in = t.in[1:]
			case c == quote:
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return true
			}
		case c == '@' || c == '$':
			t.steps(true)
		}
	}
	return false
}
