package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Filter chooses operations. The zero Filter takes all.
type Filter struct {
	include, exclude map[string][]*regexp.Regexp
}

// filterKeys are what a filter can ask for.
var filterKeys = []string{"tag", "path", "method", "operation"}

// NewFilter reads filters of the form KEY=GLOB, where KEY is tag, path, method or
// operation (the operationId). In a GLOB, * stands for any text without a slash,
// ** for any text, and ? for one character; letters match in both cases except
// in paths. An operation is taken when, for each key that include names, one of
// that key's globs matches, and when no glob of exclude does.
func NewFilter(include, exclude []string) (Filter, error) {
	in, err := parseFilter("include", include)
	if err != nil {
		return Filter{}, err
	}
	out, err := parseFilter("exclude", exclude)
	return Filter{include: in, exclude: out}, err
}

func parseFilter(what string, list []string) (map[string][]*regexp.Regexp, error) {
	m := map[string][]*regexp.Regexp{}
	for _, f := range list {
		key, glob, ok := strings.Cut(f, "=")
		if !ok || glob == "" || !slices.Contains(filterKeys, key) {
			return nil, fmt.Errorf("%s %q: expected KEY=GLOB with a KEY of %s, such as tag=pets or path=/pets/**", what, f, strings.Join(filterKeys, ", "))
		}
		re, err := compileGlob(glob, key == "path")
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, f, err)
		}
		m[key] = append(m[key], re)
	}
	return m, nil
}

func compileGlob(glob string, caseMatters bool) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("(?s")
	if !caseMatters {
		b.WriteString("i")
	}
	b.WriteString(`)\A`)
	for i := 0; i < len(glob); {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i += 2
			continue
		case glob[i] == '*':
			b.WriteString("[^/]*")
		case glob[i] == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
		i++
	}
	b.WriteString(`\z`)
	return regexp.Compile(b.String())
}

// takes reports whether the filter takes an operation.
func (f Filter) takes(tags []string, path, method, operationID string) bool {
	values := map[string][]string{"tag": tags, "path": {path}, "method": {method}, "operation": {operationID}}
	for key, globs := range f.include {
		if !anyMatch(globs, values[key]) {
			return false
		}
	}
	for key, globs := range f.exclude {
		if anyMatch(globs, values[key]) {
			return false
		}
	}
	return true
}

func anyMatch(globs []*regexp.Regexp, values []string) bool {
	return slices.ContainsFunc(globs, func(g *regexp.Regexp) bool { return slices.ContainsFunc(values, g.MatchString) })
}
