package executors

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// envText is a text with placeholders for variables, so that a plan can be printed without their values. A
// placeholder is the number of the variable, from 1, between two marks.
type envText string

// mark never comes from an argument, which could otherwise read a variable: in a URL it is percent-encoded,
// and headers and the JSON of a manifest cannot contain it. Texts of manifests that contain it are
// refused.
const mark = "\x01"

// place returns the placeholder of a variable.
func place(n int) envText { return envText(mark + strconv.Itoa(n) + mark) }

// variables reports whether the text has placeholders.
func (t envText) variables() bool { return strings.Contains(string(t), mark) }

// edit returns the text with f applied to everything except placeholders.
func (t envText) edit(f func(string) string) envText {
	pieces := strings.Split(string(t), mark)
	for i := 0; i < len(pieces); i += 2 {
		pieces[i] = f(pieces[i])
	}
	return envText(strings.Join(pieces, mark))
}

// cut splits the text before the first of chars.
func (t envText) cut(chars string) (before, after envText) {
	if at := strings.IndexAny(string(t), chars); at >= 0 {
		return t[:at], t[at:]
	}
	return t, ""
}

// fill replaces the placeholders by values. escape escapes a value for its place; out is the text before it.
func (t envText) fill(values []string, escape func(out, value string) string) string {
	var b strings.Builder
	for i, piece := range strings.Split(string(t), mark) {
		if i%2 == 0 {
			b.WriteString(piece)
		} else if n, err := strconv.Atoi(piece); err == nil && n <= len(values) {
			b.WriteString(escape(b.String(), values[n-1]))
		}
	}
	return b.String()
}

// plain returns the text without its variables.
func (t envText) plain() string { return t.fill(nil, asIs) }

func asIs(_, value string) string { return value }

// urlValue escapes the value of a variable for a path, where it may contain slashes, or a query.
func urlValue(out, value string) string {
	if strings.Contains(out, "?") {
		return percentEncode(value)
	}
	return strings.ReplaceAll(percentEncode(value), "%2F", "/")
}

// jsonValue escapes the value of a variable for a JSON string.
func jsonValue(_, value string) string { return inner(value) }

// jsonEnvText reads JSON of a manifest, whose strings and names may contain variables;
// parse reads the text of a string.
func jsonEnvText(raw json.RawMessage, parse func(string) envText) envText {
	var t envText
	copied := 0
	for i := 0; i < len(raw); {
		end := scalarEnd(raw, i)
		if end == i {
			i++
			continue
		}
		var s string
		if raw[i] == '"' && bytes.Contains(raw[i:end], []byte("${")) && json.Unmarshal(raw[i:end], &s) == nil {
			t += envText(raw[copied:i]) + `"` + parse(s).edit(inner) + `"`
			copied = end
		}
		i = end
	}
	return t + envText(raw[copied:])
}
