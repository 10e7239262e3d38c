package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// frontMatterKey matches the start of a field in the front matter of agent files. It matches known names only,
// because a description of several lines may contain words with colons too.
var frontMatterKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(name|title|description|template|template_syntax|system_prompt|model|provider|parameters|input|output|format|result_form|tools|thinking|thinking_budget|policy|arguments|color|allowed-tools|disallowed-tools|argument-hint|version|author|tags)[ \t]*:(?:[ \t]|$)`)
})

// frontMatterText names the fields with text values. Such a value is used unchanged if it is not YAML. The map value
// is true for fields that are used; ignored fields need no warning about quotes.
var frontMatterText = map[string]bool{"title": true, "description": true, "model": true, "tools": true, "allowed-tools": true,
	"color": false, "disallowed-tools": false, "argument-hint": false, "version": false, "author": false, "tags": false}

// frontMatter reads front matter as YAML. Many agent files have a description that contains ": " without quotes,
// which is not YAML although its meaning is clear. If nothing else is wrong, the fields are read one by one, and a
// warning names each such field.
func (r *reader) frontMatter(d *document, head []byte) (*yaml.Node, *v1.Violation) {
	var spec *yaml.Node
	violation := parseYAML(r.name, head, func(n *yaml.Node) bool { spec = n; return false })
	if violation == nil {
		return spec, nil
	}
	if conflictMarker(head) > 0 {
		return nil, violation
	}
	if spec = plainFields(r.name, head, d); spec == nil {
		return nil, violation
	}
	return spec, nil
}

// plainFields reads the fields of broken front matter one by one. It returns nil if a broken field is not a text
// field, or if text other than the opening "---" precedes the first field.
func plainFields(file string, head []byte, d *document) *yaml.Node {
	spec := mappingNode()
	var field []byte // the lines of the current field
	var key string
	begin, broken := 0, false
	flush := func() bool {
		if key == "" {
			return len(bytes.TrimSpace(field)) == 0
		}
		pairs, ok := oneField(file, field, begin)
		if !ok {
			if _, isText := frontMatterText[key]; !isText {
				return false
			}
			_, text, _ := strings.Cut(string(field), ":")
			k, v := textNode(key, begin), textNode(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), begin)
			pairs, broken = []*yaml.Node{k, v}, true
			if frontMatterText[key] {
				d.violation(k, v1.Violation{Severity: v1.SeverityWarning, Path: v1.Pointer("/spec", key), Source: v1.Source{File: file, Line: begin, Column: 1}, Expected: "YAML", Got: "a text that needs quotes",
					Message: fmt.Sprintf("the text of %q is not YAML and is used as plain text: quote it", key)})
			}
		}
		spec.Content = append(spec.Content, pairs...)
		return true
	}
	line := 0
	for text := range bytes.Lines(head) {
		if line++; line == 1 {
			continue // the opening "---"
		}
		if m := frontMatterKey().FindSubmatch(text); m != nil {
			if !flush() {
				return nil
			}
			key, begin, field = string(m[1]), line, nil
		}
		field = append(field, text...)
	}
	if !flush() || !broken {
		return nil // something other than a text field is wrong
	}
	return spec
}

// oneField reads the lines of a field that starts at line begin of the file.
func oneField(file string, field []byte, begin int) ([]*yaml.Node, bool) {
	var n *yaml.Node
	padded := append(bytes.Repeat([]byte("\n"), begin-1), field...) // blank lines keep the line numbers of the file
	f := parseYAML(file, padded, func(doc *yaml.Node) bool { n = doc; return false })
	if f != nil || n == nil || n.Kind != yaml.MappingNode {
		return nil, false
	}
	return n.Content, true
}

// markdownFields maps alternative field names in the front matter of agent files to those of a Prompt.
var markdownFields = map[string]string{"format": "output", "allowed-tools": "tools"}

// renameFields renames front matter fields to their names in a Prompt, unless the Prompt already has such a field.
func renameFields(spec *yaml.Node) {
	for i := 0; i+1 < len(spec.Content); i += 2 {
		k, v := spec.Content[i], spec.Content[i+1]
		ours := markdownFields[k.Value]
		if ours == "" || ours == "output" && v.Kind != yaml.MappingNode {
			continue
		}
		if other, _ := member(spec, ours); other == nil {
			k.Value = ours
		}
	}
}
