// Package ignore reads lists of files to leave out, in the syntax of gitignore(5).
//
// It differs in two things: a slash within brackets ends the segment, so the pattern
// "a[x/]b" matches nothing; and in "a**/b" the asterisks are one asterisk, as the manual
// says, where git 2.39 takes them for a segment of any depth.
package ignore

import (
	"bytes"
	"strings"
)

// List is the patterns of one file. The zero value matches nothing.
type List struct{ rules []rule }

type rule struct {
	segments []string // of an anchored pattern; else one, for the name alone
	anchored bool
	dirOnly  bool
	negated  bool
}

// Parse reads a file of patterns, one a line. Every text is a list: a pattern that
// cannot be read matches nothing, as in git.
func Parse(data []byte) List {
	var l List
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		var r rule
		line = trimSpaces(line)
		line, r.negated = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		r.anchored = strings.Contains(line, "/")
		if line = strings.TrimPrefix(line, "/"); line == "" {
			continue
		}
		r.segments = []string{line}
		if r.anchored {
			r.segments = strings.Split(line, "/")
		}
		l.rules = append(l.rules, r)
	}
	return l
}

// trimSpaces takes off spaces at the end that no backslash keeps.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = i + 1
	}
	return s[:min(end, len(s))]
}

// Match reports whether the last pattern that fits a path leaves it out, and whether
// any fits. The path is relative to the list's folder, with slashes.
func (l List) Match(path string, dir bool) (out, fits bool) {
	segments := strings.Split(path, "/")
	for i := len(l.rules) - 1; i >= 0; i-- {
		if r := &l.rules[i]; (dir || !r.dirOnly) && r.fits(segments) {
			return !r.negated, true
		}
	}
	return false, false
}

func (r *rule) fits(path []string) bool {
	if !r.anchored {
		return glob(r.segments[0], path[len(path)-1])
	}
	p, at := 0, 0
	again, from := -1, 0 // where to go on when what comes after the last ** does not fit
	for at < len(path) {
		switch {
		case p < len(r.segments) && r.segments[p] == "**":
			if p == len(r.segments)-1 {
				return true // at least one segment is left
			}
			again, from = p, at
			p++
		case p < len(r.segments) && glob(r.segments[p], path[at]):
			p, at = p+1, at+1
		case again >= 0:
			from++
			p, at = again+1, from
		default:
			return false
		}
	}
	return p == len(r.segments)
}

// glob matches one segment of a path: *, ?, [set], and a backslash before a character as it is.
func glob(pattern, name string) bool {
	p, at := 0, 0
	again, from := -1, 0
	for at < len(name) || p < len(pattern) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				again, from = p, at
				p++
				continue
			}
			if at < len(name) {
				if next, ok := one(pattern, p, name[at]); ok {
					p, at = next, at+1
					continue
				}
			}
		}
		if again < 0 || from >= len(name) {
			return false
		}
		from++
		p, at = again+1, from
	}
	return true
}

// one matches one byte with what stands at p, and returns where the pattern goes on. Git
// matches bytes as well.
func one(pattern string, p int, c byte) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return set(pattern, p+1, c)
	case '\\':
		if p++; p == len(pattern) {
			return p, false
		}
	}
	return p + 1, pattern[p] == c
}

// set matches one byte with the set in brackets that starts at p.
func set(pattern string, p int, c byte) (next int, ok bool) {
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	found := false
	for first := true; ; first = false {
		if p >= len(pattern) {
			return p, false // it never ends
		}
		switch {
		case pattern[p] == ']' && !first:
			return p + 1, found != negated
		case strings.HasPrefix(pattern[p:], "[:"):
			name, _, closed := strings.Cut(pattern[p+2:], "]")
			if !closed {
				return p, false
			}
			if class, isClass := strings.CutSuffix(name, ":"); isClass {
				in, known := classes[class]
				if !known {
					return p, false
				}
				found = found || in(c)
				p += len("[:") + len(name) + 1
				continue
			}
		}
		low, after, whole := literal(pattern, p)
		if !whole {
			return p, false
		}
		high := low
		p = after
		if p+1 < len(pattern) && pattern[p] == '-' && pattern[p+1] != ']' {
			if high, p, whole = literal(pattern, p+1); !whole {
				return p, false
			}
		}
		found = found || low <= c && c <= high
	}
}

func literal(pattern string, p int) (c byte, next int, ok bool) {
	if pattern[p] == '\\' {
		if p++; p == len(pattern) {
			return 0, p, false
		}
	}
	return pattern[p], p + 1, true
}

func between(low, high byte) func(byte) bool {
	return func(c byte) bool { return low <= c && c <= high }
}

func either(all ...func(byte) bool) func(byte) bool {
	return func(c byte) bool {
		for _, in := range all {
			if in(c) {
				return true
			}
		}
		return false
	}
}

var (
	lower, upper, digit = between('a', 'z'), between('A', 'Z'), between('0', '9')
	alnum               = either(lower, upper, digit)
)

var classes = map[string]func(byte) bool{
	"lower": lower, "upper": upper, "digit": digit, "alpha": either(lower, upper), "alnum": alnum,
	"xdigit": either(digit, between('a', 'f'), between('A', 'F')),
	"space":  either(between('\t', '\r'), between(' ', ' ')),
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  either(between(0, 31), between(127, 127)),
	"print":  between(' ', '~'), "graph": between('!', '~'),
	"punct": func(c byte) bool { return c > ' ' && c < 127 && !alnum(c) },
}
