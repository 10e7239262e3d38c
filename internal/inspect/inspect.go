package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/schema"
)

const (
	// maxText is the number of bytes of one text that are inspected.
	maxText = 256 << 10
	// maxFindings is the maximum number of findings in one text or schema.
	maxFindings = 20
	// maxDepth is the depth to which a schema is inspected.
	maxDepth = 64
)

// Text returns a warning for each hidden character and instruction in a text. path is the JSON pointer of the text in
// its document.
func Text(path, s string) []v1.Violation {
	if len(s) > maxText {
		s = s[:maxText]
	}
	var fs []v1.Violation
	for _, f := range append(hidden(s), orders(s)...) {
		f.Path, f.Severity = path, v1.SeverityWarning
		fs = append(fs, f)
	}
	return fs[:min(len(fs), maxFindings)]
}

// Schema returns the findings of all texts in a JSON Schema, because models read the names and descriptions of
// properties too. Invalid JSON has no findings.
func Schema(path string, schema json.RawMessage) []v1.Violation {
	if len(bytes.TrimSpace(schema)) == 0 || unsuspicious(schema) {
		return nil
	}
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return nil
	}
	var fs []v1.Violation
	walk(path, v, 0, &fs)
	return fs[:min(len(fs), maxFindings)]
}

// unsuspicious reports whether a JSON text certainly has no findings: it consists of visible ASCII characters without
// escapes, and contains no word that a rule requires.
func unsuspicious(text []byte) bool {
	for _, c := range text {
		if c == '\\' || c >= 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	folded := redact.Fold(string(text))
	return !slices.ContainsFunc(rules, func(r rule) bool { return redact.HasAny(folded, r.needs) })
}

// mechanical holds the keywords whose texts only programs read.
var mechanical = map[string]bool{schema.Ref: true, schema.DynamicRef: true, "$id": true, "$schema": true, "$anchor": true, "pattern": true, "format": true, "type": true, "contentEncoding": true, "contentMediaType": true}

func walk(path string, v any, depth int, fs *[]v1.Violation) {
	if depth > maxDepth || len(*fs) >= maxFindings {
		return
	}
	switch v := v.(type) {
	case string:
		*fs = append(*fs, Text(path, v)...)
	case []any:
		for i, item := range v {
			walk(v1.Pointer(path, strconv.Itoa(i)), item, depth+1, fs)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			*fs = append(*fs, Text(path, k)...)
			if _, ok := v[k].(string); ok && mechanical[k] {
				continue
			}
			walk(v1.Pointer(path, k), v[k], depth+1, fs)
		}
	}
}

// Object returns the findings of all texts of an object that models read: those of a [Tool], the overrides of an
// MCPServer, or the description of a Toolset.
func Object(o v1.Object) []v1.Violation {
	switch o := o.(type) {
	case *v1.Tool:
		return Tool(o)
	case *v1.MCPServer:
		var all []v1.Violation
		for _, name := range slices.Sorted(maps.Keys(o.Spec.Overrides)) {
			path := v1.Pointer("/spec/overrides", name)
			all = append(all, Text(path+"/description", o.Spec.Overrides[name].Description)...)
			all = append(all, Schema(path+"/input_schema", o.Spec.Overrides[name].InputSchema)...)
		}
		return all
	case *v1.Toolset: // clients pass it to models as the instructions of the server
		return Text("/spec/description", o.Spec.Description)
	}
	return nil
}

// Tool returns the findings of all texts of a tool that a model reads.
func Tool(t *v1.Tool) []v1.Violation {
	fs := Text("/spec/description", t.Spec.Description)
	if h := t.Spec.Hints; h != nil {
		fs = append(fs, Text("/spec/hints/title", h.Title)...)
	}
	fs = append(fs, Schema("/spec/input_schema", t.Spec.InputSchema)...)
	fs = append(fs, Schema("/spec/output_schema", t.Spec.OutputSchema)...)
	return fs[:min(len(fs), maxFindings)]
}

// excerpt returns the text around a place, with hidden characters as ⟨U+200B⟩.
func excerpt(runes []rune, from, to int) string {
	const around = 12
	var b strings.Builder
	start, end := max(from-around, 0), min(to+around, len(runes))
	if start > 0 {
		b.WriteString("…")
	}
	for i, r := range runes[start:end] {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case class(r) != "" && (class(r) != variation || start+i >= from && start+i < to):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	if end < len(runes) {
		b.WriteString("…")
	}
	return b.String()
}

// Show returns a text for a person's terminal: hidden characters as ⟨U+200B⟩, except
// for the selectors and joiners that hold emoji and words together.
func Show(s string) string {
	runes := []rune(s)
	rtl := hasRTL(runes)
	var b strings.Builder
	for i := 0; i < len(runes); {
		c, end := class(runes[i]), i+1
		if c != "" {
			for end < len(runes) && class(runes[end]) == c {
				end++
			}
		}
		if c == "" || allowed(runes, i, end, c, rtl) && c != bidi {
			b.WriteString(string(runes[i:end]))
		} else {
			for _, r := range runes[i:end] {
				fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			}
		}
		i = end
	}
	return b.String()
}
