package executors

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// pair is a parameter of the query, with name and value percent-encoded.
type pair struct{ name, value string }

// separators has the separators of the styles that put a list or an object into one parameter (OpenAPI 3.1.1, section
// 4.8.12.4).
var separators = map[string]string{v1.StyleComma: ",", v1.StyleSpace: "%20", v1.StylePipe: "%7C"}

// maxBrackets limits the depth of a deep_object. Deeper values are written as JSON: OpenAPI does not define them,
// and servers have similar limits.
const maxBrackets = 5

// styled returns the query parameters for an argument.
func styled(name string, raw json.RawMessage, style string) []pair {
	kind := v1.JSONKind(raw)
	separator := separators[style]
	var texts []string
	switch {
	case kind == "object" && style != "":
		var pairs []pair
		for _, m := range membersOf(raw) {
			at, inside := m.name, ""
			if style == v1.StyleDeepObject {
				at = name + "[" + m.name + "]"
				if strings.Count(at, "[") < maxBrackets {
					inside = style
				}
			}
			more := styled(at, m.value, inside)
			for _, p := range more {
				texts = append(texts, percentEncode(m.name), p.value)
			}
			pairs = append(pairs, more...)
		}
		if separator == "" {
			return pairs
		}
	default:
		for _, v := range queryValues(raw) {
			texts = append(texts, percentEncode(v))
		}
	}
	name = percentEncode(name)
	if separator != "" && len(texts) > 0 {
		return []pair{{name, strings.Join(texts, separator)}}
	}
	pairs := make([]pair, len(texts))
	for i, text := range texts {
		pairs[i] = pair{name, text}
	}
	return pairs
}

type member struct {
	name  string
	value []byte
}

// membersOf returns the members of a JSON object in their order; nil for any other value.
func membersOf(object json.RawMessage) (all []*member) {
	jsontext.Members(object, func(name string) *[]byte {
		m := &member{name: jsontext.Unquote([]byte(`"` + name + `"`))}
		all = append(all, m)
		return &m.value
	})
	return all
}

// emptied marks an empty value in a rendered text, so that omit_empty can remove the parameter or header with it. It
// never comes from an argument: in a URL it is percent-encoded, and headers cannot contain it.
const emptied = "\x00"

// marking wraps an escape function so that empty values become the mark.
func marking(escape func([]byte, string) (string, error)) func([]byte, string) (string, error) {
	return func(out []byte, value string) (string, error) {
		s, err := escape(out, value)
		if s == "" && err == nil {
			s = emptied
		}
		return s, err
	}
}

// withoutEmpty removes the parameters with empty values from a rendered path and query.
func withoutEmpty(rest string) string {
	path, query, has := strings.Cut(rest, "?")
	left := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		_, value, assigned := strings.Cut(pair, "=")
		return strings.Contains(pair, emptied) || assigned && value == ""
	})
	if !has || len(left) == 0 {
		return path
	}
	return path + "?" + strings.Join(left, "&")
}

// foundSomething removes the members of a body that are null because the mapping found nothing. A null in the
// arguments is a value (RFC 7396 removes by null), so with one of these nothing is removed.
func foundSomething(mapped json.RawMessage, args map[string]json.RawMessage) json.RawMessage {
	if v1.JSONKind(mapped) != "object" {
		return mapped
	}
	for _, raw := range args {
		if holdsNull(raw) {
			return mapped
		}
	}
	left := map[string]json.RawMessage{}
	for _, m := range membersOf(mapped) {
		if v1.JSONKind(m.value) != "null" {
			left[m.name] = m.value
		}
	}
	return object(left)
}

func holdsNull(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		switch token, err := dec.Token(); {
		case err != nil:
			return false
		case token == nil:
			return true
		}
	}
}

// isEmptyObject reports whether there are no arguments.
func isEmptyObject(raw json.RawMessage) bool {
	inside, ok := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("{"))
	return !ok && len(inside) == 0 || ok && string(bytes.TrimSpace(inside)) == "}"
}

var errEmptyInPath = errors.New("a path segment of the URL cannot be empty")
