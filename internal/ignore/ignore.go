// Package ignore reads lists of files to leave out, in the syntax of gitignore(5).
//
// It differs in two things: a slash within brackets ends the segment, so the pattern
// "a[x/]b" matches nothing; and in "a**/b" the asterisks are one asterisk, as the manual
// says, where git 2.39 takes them for a segment of any depth.
package ignore

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// List is the patterns of one file. The zero value matches nothing.
type List struct{ rules []rule }

type rule struct {
	segments []*regexp.Regexp // of an anchored pattern, nil for **; else one, for the name alone
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
		return matches(r.segments[0], path[len(path)-1])
	}
	p, at := 0, 0
	again, from := -1, 0 // where to go on when what comes after the last ** does not fit
	for at < len(path) {
		switch {
		case p < len(r.segments) && r.segments[p] == nil:
			if p == len(r.segments)-1 {
				return true // at least one segment is left
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

// latin1 makes a character of each byte: git matches bytes, and expressions match characters.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// never is not a valid expression. A pattern that contains it matches nothing.
const never = "("

// expression is the regular expression of one segment: *, ?, [set], and a backslash before a character as it is.
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

// bracket is the expression of the set whose text follows a bracket, and what follows the set; an empty one for a set
// that never ends.
func bracket(text string) (set, rest string) {
	set = "[/" // which no segment has, so that the set is never empty
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
				set, text = set+"[:"+name+"]", after // an unknown class is no expression
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
