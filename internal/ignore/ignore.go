// Package ignore reads lists of ignored files in the syntax of gitignore(5).
//
// It differs from Git in two ways: a slash within brackets ends the segment, so the pattern "a[x/]b" matches nothing;
// and the asterisks in "a**/b" count as a single asterisk, as the manual says, whereas Git 2.39 matches a segment of
// any depth.
package ignore

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// List holds the patterns of one file. The zero value matches nothing.
type List struct{ rules []rule }

type rule struct {
	segments []*regexp.Regexp // one for each segment of an anchored pattern, nil for **; otherwise one for the name
	anchored bool
	dirOnly  bool
	negated  bool
}

// Parse reads a file with one pattern per line. Every text is valid: an invalid pattern matches nothing, as in Git.
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
		readable := true
		for segment := range strings.SplitSeq(line, "/") {
			if r.anchored && segment == "**" {
				r.segments = append(r.segments, nil)
				continue
			}
			re, err := regexp.Compile(latin1(`(?s)\A` + expression(segment) + `\z`))
			readable = readable && err == nil
			r.segments = append(r.segments, re)
		}
		if readable {
			l.rules = append(l.rules, r)
		}
	}
	return l
}

// trimSpaces removes trailing spaces that are not escaped by a backslash.
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

// Match reports whether the last matching pattern excludes a path, and whether any pattern matches. The path is
// relative to the list's folder, with slashes.
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
		return matches(r.segments[0], path[len(path)-1])
	}
	p, at := 0, 0
	again, from := -1, 0 // where to retry if the part after the last ** does not match
	for at < len(path) {
		switch {
		case p < len(r.segments) && r.segments[p] == nil:
			if p == len(r.segments)-1 {
				return true // at least one segment remains
			}
			again, from = p, at
			p++
		case p < len(r.segments) && matches(r.segments[p], path[at]):
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

func matches(segment *regexp.Regexp, name string) bool { return segment.MatchString(latin1(name)) }

// latin1 converts each byte to a character: Git matches bytes, and regular expressions match characters.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// never is an invalid regular expression. A pattern that contains it matches nothing.
const never = "("

// expression returns the regular expression for one segment: *, ?, [set], and a backslash before a literal character.
func expression(segment string) string {
	var b strings.Builder
	for segment != "" {
		c := segment[0]
		segment = segment[1:]
		switch {
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteByte('.')
		case c == '[':
			var set string
			if set, segment = bracket(segment); set == "" {
				return never
			}
			b.WriteString(set)
		case c == '\\' && segment == "":
			return never
		case c == '\\':
			c, segment = segment[0], segment[1:]
			fallthrough
		default:
			b.WriteString(regexp.QuoteMeta(string([]byte{c})))
		}
	}
	return b.String()
}

// bracket returns the regular expression for the set that starts after a bracket, and the text after the set. The
// expression is empty if the set is not closed.
func bracket(text string) (set, rest string) {
	set = "[/" // no segment contains a slash, which keeps the set from being empty
	if text != "" && (text[0] == '!' || text[0] == '^') {
		set, text = "[^/", text[1:]
	}
	for first := true; text != ""; first = false {
		if text[0] == ']' && !first {
			return set + "]", text[1:]
		}
		if strings.HasPrefix(text, "[:") {
			if name, after, closed := strings.Cut(text[2:], "]"); !closed {
				return "", ""
			} else if strings.HasSuffix(name, ":") {
				set, text = set+"[:"+name+"]", after // an unknown class makes the expression invalid
				continue
			}
		}
		var ok bool
		var low, high byte
		if low, text, ok = literal(text); !ok {
			return "", ""
		}
		high = low
		if len(text) > 1 && text[0] == '-' && text[1] != ']' {
			if high, text, ok = literal(text[1:]); !ok {
				return "", ""
			}
		}
		if low <= high {
			set += fmt.Sprintf(`\x{%x}-\x{%x}`, low, high)
		}
	}
	return "", ""
}

func literal(text string) (c byte, rest string, ok bool) {
	if text[0] == '\\' {
		text = text[1:]
	}
	if text == "" {
		return 0, "", false
	}
	return text[0], text[1:], true
}
