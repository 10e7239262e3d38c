package executors

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/template"
)

// envText is a text with places for variables. The places are apart from the text, so
// that no argument can make one, and a plan can be printed without the values.
type envText []envPiece

// envPiece is literal text, or the place of a variable.
type envPiece struct {
	text  string
	place int // the number of the variable, from 1; 0 for literal text
}

func literal(s string) envText {
	if s == "" {
		return nil
	}
	return envText{{text: s}}
}

// variables reports whether the text has places.
func (t envText) variables() bool {
	return slices.ContainsFunc(t, func(p envPiece) bool { return p.place > 0 })
}

// contains looks for s in the literal text.
func (t envText) contains(s string) bool {
	return slices.ContainsFunc(t, func(p envPiece) bool { return strings.Contains(p.text, s) })
}

// edit returns the text with its literal parts changed by f.
func (t envText) edit(f func(string) string) envText {
	out := slices.Clone(t)
	for i, p := range out {
		if p.place == 0 {
			out[i].text = f(p.text)
		}
	}
	return out
}

// cut splits the text before the first of chars in its literal parts.
func (t envText) cut(chars string) (before, after envText) {
	for i, p := range t {
		if at := strings.IndexAny(p.text, chars); at >= 0 {
			before, after = slices.Clone(t[:i]), slices.Clone(t[i:])
			if after[0].text = p.text[at:]; at > 0 {
				before = append(before, envPiece{text: p.text[:at]})
			}
			return before, after
		}
	}
	return t, nil
}

// add appends literal text.
func (t envText) add(s string) envText {
	if s == "" {
		return t
	}
	return append(t[:len(t):len(t)], envPiece{text: s})
}

// fill puts values in the places. escape fits a value into its place; out is what stands before it.
func (t envText) fill(values []string, escape func(out, value string) string) string {
	switch {
	case len(t) == 0:
		return ""
	case len(t) == 1 && t[0].place == 0:
		return t[0].text
	}
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.place == 0:
			b.WriteString(p.text)
		case p.place <= len(values):
			b.WriteString(escape(b.String(), values[p.place-1]))
		}
	}
	return b.String()
}

// plain is the text without its variables.
func (t envText) plain() string { return t.fill(nil, asIs) }

func asIs(_, value string) string { return value }

// urlValue fits the value of a variable into a path, whose slashes it may bring, or a query.
func urlValue(out, value string) string {
	if strings.Contains(out, "?") {
		return percentEncode(value)
	}
	return strings.ReplaceAll(percentEncode(value), "%2F", "/")
}

// jsonValue fits the value of a variable into a JSON string.
func jsonValue(_, value string) string { return inner(value) }

// source is the text as a template has it: its places are slots.
func (t envText) source() string {
	var b strings.Builder
	for _, p := range t {
		if p.place == 0 {
			b.WriteString(p.text)
		} else {
			b.WriteString(template.SlotAction(p.place))
		}
	}
	return b.String()
}

// rendered is what a template made, with the places where its slots were.
func rendered(out string, slots []template.Slot) envText {
	if slots == nil {
		return literal(out)
	}
	t := make(envText, 0, 2*len(slots)+1)
	from := 0
	for _, s := range slots {
		t = append(t.add(out[from:s.At]), envPiece{place: s.N})
		from = s.At
	}
	return t.add(out[from:])
}

// jsonEnvText reads the JSON of a manifest, each of whose strings and names may hold
// variables; parse reads the text of one.
func jsonEnvText(raw json.RawMessage, parse func(string) envText) envText {
	if !bytes.Contains(raw, []byte("${")) {
		return literal(string(raw))
	}
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
			t = t.add(string(raw[copied:i]) + `"`)
			t = append(t, parse(s).edit(inner)...).add(`"`)
			copied = end
		}
		i = end
	}
	return t.add(string(raw[copied:]))
}
