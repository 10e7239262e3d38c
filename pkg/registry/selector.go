package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Selector selects objects by their labels, as Kubernetes does
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels).
type Selector []requirement

type requirement struct {
	key    string
	op     string // "in", "notin", "exists", "!"
	values []string
}

var (
	setTerm   = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)
	equalTerm = regexp.MustCompile(`^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$`)
	keyTerm   = regexp.MustCompile(`^(!?)\s*([^\s=!(),]+)$`)
)

// ParseSelector parses a selector: terms joined by commas, each in the form key=value, key==value, key!=value, key in
// (a,b), key notin (a,b), key or !key. The empty text selects everything.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	for _, term := range splitTerms(text) {
		switch {
		case setTerm.MatchString(term):
			m := setTerm.FindStringSubmatch(term)
			r := requirement{key: m[1], op: m[2]}
			for v := range strings.SplitSeq(m[3], ",") {
				r.values = append(r.values, strings.TrimSpace(v))
			}
			s = append(s, r)
		case equalTerm.MatchString(term):
			m := equalTerm.FindStringSubmatch(term)
			op := "in"
			if m[2] == "!=" {
				op = "notin"
			}
			s = append(s, requirement{key: m[1], op: op, values: []string{m[3]}})
		case keyTerm.MatchString(term):
			m := keyTerm.FindStringSubmatch(term)
			op := "exists"
			if m[1] == "!" {
				op = "!"
			}
			s = append(s, requirement{key: m[2], op: op})
		default:
			return nil, fmt.Errorf("label selector %q: cannot read %q: expected key=value, key!=value, key in (a,b), key notin (a,b), key or !key", text, term)
		}
	}
	return s, nil
}

// splitTerms splits a text at the commas outside parentheses.
func splitTerms(text string) []string {
	var terms []string
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			terms = append(terms, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if last := strings.TrimSpace(text[start:]); last != "" || len(terms) > 0 {
		terms = append(terms, last)
	}
	return terms
}

// Matches reports whether labels match every term. A missing label matches != and notin.
func (s Selector) Matches(labels map[string]string) bool {
	for _, r := range s {
		v, has := labels[r.key]
		ok := false
		switch r.op {
		case "in":
			ok = has && slices.Contains(r.values, v)
		case "notin":
			ok = !has || !slices.Contains(r.values, v)
		case "exists":
			ok = has
		case "!":
			ok = !has
		}
		if !ok {
			return false
		}
	}
	return true
}
