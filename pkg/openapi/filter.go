package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Filter selects operations. The zero Filter selects all.
type Filter struct {
	include, exclude map[string][]*regexp.Regexp
}

// filterKeys are the keys of filters, in the order of messages.
var filterKeys = []string{"tag", "path", "method", "operation"}

// globFlags are the regular expression flags for a key: matching ignores case, except in paths.
var globFlags = map[string]string{"tag": "(?si)", "path": "(?s)", "method": "(?si)", "operation": "(?si)"}

// globs converts an escaped glob to a regular expression.
var globs = strings.NewReplacer(`\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]")

// NewFilter parses filters of the form KEY=GLOB, where KEY is tag, path, method or operation (the
// operationId). In a GLOB, * matches any text without a slash, ** any text, and ? one character;
// matching ignores case except in paths. An operation is selected if, for each key in include, one
// of that key's globs matches it, and no glob in exclude does.
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
		re, err := regexp.Compile(globFlags[key] + `\A` + globs.Replace(regexp.QuoteMeta(glob)) + `\z`)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, f, err)
		}
		m[key] = append(m[key], re)
	}
	return m, nil
}

// takes reports whether the filter selects an operation.
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
