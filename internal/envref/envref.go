// Package envref reads the references to environment variables in a text of a manifest: ${VAR}, and
// ${VAR:-fallback} for a variable that may be absent. $${ stands for the text ${. The syntax is
// that of POSIX shells (Shell Command Language, section 2.6.2), without the forms that manifests do
// not need.
package envref

import (
	"fmt"
	"strings"
)

// Piece is a part of a text: literal text, or a reference.
type Piece struct {
	// Text is the literal text, or a reference as written.
	Text string
	// Ref is the reference; nil for literal text.
	Ref *Ref
}

// Ref is a reference to one variable.
type Ref struct {
	// Name is the variable's name.
	Name string
	// Fallback is the value of an unset variable if Optional is true.
	Fallback string
	// Optional means that the reference has a fallback, which may be empty.
	Optional bool
}

// Value returns the value of the reference. It returns false if the variable is not set and the
// reference has no fallback. With a fallback, an empty variable counts as not set, as in a shell.
// read means that the value is that of the variable.
func (r Ref) Value(env Env) (value string, read, ok bool) {
	v, set := env.Value(r.Name)
	switch {
	case set && (v != "" || !r.Optional):
		return v, true, true
	case r.Optional:
		return r.Fallback, false, true
	}
	return "", false, false
}

// Parse splits a text into pieces. The error describes the first invalid reference and how to fix
// it.
func Parse(s string) ([]Piece, error) {
	var pieces []Piece
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			pieces = append(pieces, Piece{Text: text.String()})
			text.Reset()
		}
	}
	for {
		before, rest, ok := strings.Cut(s, "${")
		if !ok {
			text.WriteString(s)
			flush()
			return pieces, nil
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			text.WriteString(literal + "${")
			s = rest
			continue
		}
		text.WriteString(before)
		body, after, ok := strings.Cut(rest, "}")
		if !ok {
			return nil, fmt.Errorf(`"${" has no "}"; write $${ for the text itself`)
		}
		var r Ref
		r.Name, r.Fallback, r.Optional = strings.Cut(body, ":-")
		if !IsName(r.Name) {
			return nil, fmt.Errorf("%q is not the name of a variable; write $${ for the text itself", r.Name)
		}
		flush()
		pieces = append(pieces, Piece{Text: "${" + body + "}", Ref: &r})
		s = after
	}
}

// IsName reports whether a text is a valid environment variable name: letters, digits and "_", not
// starting with a digit (POSIX Base Definitions, section 3.216).
func IsName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
