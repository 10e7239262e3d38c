package executors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"toolctl.dev/toolctl/internal/jmespath"
	"toolctl.dev/toolctl/internal/jsontext"
)

// mapping is a JMESPath expression. go-jmespath computes with float64, which cannot
// represent every JSON number. How a number that would lose digits is passed depends on the
// expression:
//
//   - if it only moves values, the number is passed as text of a type of its own and keeps all digits;
//   - if it compares or computes, the number is passed as the nearest float64, and changed back if it
//     is in the result. If two numbers of the document have the same nearest float64, or to_string
//     would show it, the mapping fails.
type mapping struct {
	field    string
	path     *jmespath.Expression
	computes bool
	prints   bool
}

var (
	computing = regexp.MustCompile(`[<>]|[=!]=|\b(abs|avg|ceil|contains|floor|max|max_by|min|min_by|sort|sort_by|sum|to_number|type)\s*\(`)
	printing  = regexp.MustCompile(`\bto_string\s*\(`)
)

func compileMapping(field, expr string) (*mapping, error) {
	path, err := jmespath.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &mapping{field: field, path: path, computes: computing.MatchString(expr), prints: printing.MatchString(expr)}, nil
}

// apply evaluates the expression over a JSON document.
func (m *mapping) apply(doc json.RawMessage) (json.RawMessage, error) {
	var data any
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&data); err != nil {
		return nil, fmt.Errorf("%s: the document is not JSON: %w", m.field, err)
	}
	n := numbers{exactOnly: !m.computes}
	data = n.in(data)
	if m.computes && len(n.long) > 0 && (m.prints || n.clash) {
		return nil, fmt.Errorf("%s: the expression computes with numbers that it cannot tell apart (above 2^53)", m.field)
	}
	found, err := m.path.Search(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.field, err)
	}
	if len(n.long) > 0 {
		found = n.back(found)
	}
	text, err := jsontext.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("%s: the result is not JSON: %w", m.field, err)
	}
	return text, nil
}

// numbers converts the numbers of a document to float64 and back.
type numbers struct {
	exactOnly bool
	long      map[float64]json.Number // numbers with more digits, by their nearest float64
	short     map[float64]bool        // numbers that float64 represents exactly
	clash     bool                    // two numbers have the same nearest float64
}

func (n *numbers) in(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = n.in(e)
		}
	case []any:
		for i, e := range v {
			v[i] = n.in(e)
		}
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err == nil && sameNumber(string(v), f) {
			if !n.exactOnly {
				if n.short == nil {
					n.short = map[float64]bool{}
				}
				n.short[f] = true
				n.clash = n.clash || n.long[f] != ""
			}
			return f
		}
		if n.exactOnly || err != nil {
			return v
		}
		if n.long == nil {
			n.long = map[float64]json.Number{}
		}
		n.clash = n.clash || n.short[f] || n.long[f] != "" && n.long[f] != v
		n.long[f] = v
		return f
	}
	return v
}

// back returns a copy, because parts of found belong to the document and may occur twice.
func (n *numbers) back(found any) any {
	switch v := found.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = n.back(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = n.back(e)
		}
		return l
	case float64:
		if long, ok := n.long[v]; ok {
			return long
		}
	}
	return found
}

// sameNumber reports whether a float64 represents a JSON number exactly.
func sameNumber(text string, f float64) bool {
	if strconv.FormatFloat(f, 'f', -1, 64) == text {
		return true
	}
	a, okA := jsontext.Number(text)
	b, okB := jsontext.Number(strconv.FormatFloat(f, 'e', -1, 64))
	return okA && okB && a.Cmp(b) == 0
}
