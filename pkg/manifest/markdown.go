package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// minTitle is the minimum length of a heading, in characters, that is used as a title. A shorter
// heading ("Role") says too little about the prompt.
const minTitle = 10

// hasFrontMatter reports whether a markdown file begins with a line "---".
func hasFrontMatter(data []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	return string(bytes.TrimRight(line, " \t\r")) == "---"
}

// splitFrontMatter splits a markdown file after its front matter. head keeps the opening line, so
// that its line numbers match those of the file.
func splitFrontMatter(data []byte) (head, body []byte, bodyLine int, ok bool) {
	rest, line := data, 0
	for len(rest) > 0 {
		text, after, _ := bytes.Cut(rest, []byte("\n"))
		line++
		if line > 1 && string(bytes.TrimRight(text, " \t\r")) == "---" {
			return data[:len(data)-len(rest)], after, line + 1, true
		}
		rest = after
	}
	return nil, nil, 0, false
}

// markdown reads a markdown prompt. It builds the tree of the equivalent Prompt manifest, so that
// one decoder reads both.
func (r *reader) markdown(data []byte) {
	if path.Base(filepath.ToSlash(r.name)) == "SKILL.md" {
		at := v1.Source{File: r.name, Line: 1, Column: 1}
		if !r.named {
			r.end(&v1.Violation{Source: at, Severity: v1.SeverityWarning, Message: "SKILL.md describes an agent skill and is not a Prompt: skipped; pass the file itself to read it as one"})
			return
		}
		r.end(&v1.Violation{Source: at, Severity: v1.SeverityWarning, Message: "SKILL.md describes an agent skill: read as a Prompt, because it was passed directly"})
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if f := invalidUTF8(r.name, data); f != nil {
		r.violations = append(r.violations, *f)
		return
	}
	d := &document{file: r.name, markdown: true, anchors: map[*yaml.Node]int{}}
	spec, body, bodyLine, f := r.splitMarkdown(d, data)
	if f != nil {
		r.violations = append(r.violations, *f)
		return
	}
	if line := conflictMarker(body); line > 0 { // the prompt may be about conflicts
		v := conflicted(r.name, bodyLine+line-1)
		v.Severity = v1.SeverityWarning
		r.violations = append(r.violations, *v)
	}
	if text := strings.TrimSpace(string(body)); text != "" {
		at := bodyLine + bytes.Count(body[:len(body)-len(bytes.TrimLeft(body, " \t\r\n"))], []byte("\n"))
		spec.Content = append(spec.Content, textNode("template", at), textNode(strings.ReplaceAll(text, "\r\n", "\n"), at))
	}
	renameFields(spec)
	listTools(spec)
	d.root = mappingNode(textNode("apiVersion", 1), textNode(v1.APIVersion, 1), textNode("kind", 1), textNode(v1.KindPrompt, 1),
		textNode("metadata", 1), mappingNode(textNode("name", 1), d.markdownName(spec)), textNode("spec", 1), spec)
	r.add(d, v1.KindPrompt, func(obj v1.Object) {
		if p := obj.(*v1.Prompt); p.Spec.Title == "" {
			p.Spec.Title = firstHeading(body)
		}
	})
}

// splitMarkdown returns the fields of the front matter and the text after it. A file named by the
// user needs no front matter; without it, the whole file is the text.
func (r *reader) splitMarkdown(d *document, data []byte) (spec *yaml.Node, body []byte, bodyLine int, _ *v1.Violation) {
	at := v1.Source{File: r.name, Line: 1, Column: 1}
	if !hasFrontMatter(data) {
		d.violation(nil, v1.Violation{Severity: v1.SeverityWarning, Expected: "front matter", Got: "none", Source: at,
			Message: `no front matter: the whole text is the template; fields of a Prompt's spec may come before it, between two lines "---"`})
		return mappingNode(), data, 1, nil
	}
	head, body, bodyLine, ok := splitFrontMatter(data)
	if !ok {
		return nil, nil, 0, &v1.Violation{Expected: `a line "---"`, Got: "the end of the file", Source: at,
			Message: `the front matter is not closed: a line "---" must follow it`}
	}
	spec, f := r.frontMatter(d, head)
	switch {
	case f != nil:
		return nil, nil, 0, f
	case spec == nil || spec.Kind == yaml.ScalarNode && spec.Value == "":
		spec = mappingNode()
	case spec.Kind != yaml.MappingNode:
		return nil, nil, 0, &v1.Violation{Expected: "an object", Got: describe(spec), Source: d.source(spec), Message: "the front matter must contain fields, got " + describe(spec)}
	}
	return spec, body, bodyLine, nil
}

// markdownName returns a legal name, made from the field name or from the file name.
func (d *document) markdownName(spec *yaml.Node) *yaml.Node {
	file := path.Base(filepath.ToSlash(d.file))
	name := textNode(strings.TrimSuffix(file, path.Ext(file)), 1)
	name.Value = legalName(name.Value)
	for i := 0; i+1 < len(spec.Content); i += 2 {
		v := spec.Content[i+1]
		if spec.Content[i].Value != "name" || v.Kind != yaml.ScalarNode || v.Value == "" {
			continue
		}
		v.Style |= yaml.DoubleQuotedStyle // a name is text, even 007
		name.Value, name.Line, name.Column = v.Value, v.Line, v.Column
		if !v1.IsName(v.Value) {
			name.Value = legalName(v.Value)
			d.violation(v, v1.Violation{Severity: v1.SeverityWarning, Path: "/spec/name", Expected: "a DNS-1123 name", Got: strconv.Quote(clip.Bytes(v.Value, maxShown)),
				Message: fmt.Sprintf("%q is not a legal name: read as %q", clip.Bytes(v.Value, maxShown), name.Value)})
		}
	}
	return name
}

func mappingNode(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: pairs, Line: 1, Column: 1}
}

func textNode(s string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagStr, Style: yaml.DoubleQuotedStyle, Value: s, Line: line, Column: 1}
}

// listTools converts "tools: a, b", as agent files write it, to a list.
func listTools(spec *yaml.Node) {
	for i := 0; i+1 < len(spec.Content); i += 2 {
		v := spec.Content[i+1]
		if spec.Content[i].Value != "tools" || v.Kind != yaml.ScalarNode || v.Value == "" {
			continue
		}
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: tagSeq, Line: v.Line, Column: v.Column}
		for t := range strings.SplitSeq(v.Value, ",") {
			if t = strings.TrimSpace(t); t != "" {
				n := textNode(t, v.Line)
				n.Column = v.Column
				list.Content = append(list.Content, n)
			}
		}
		spec.Content[i+1] = list
	}
}

// legalName makes a name from any text: lower case, with "-" in place of characters that a name
// must not contain.
func legalName(s string) string {
	return cmp.Or(Name(strings.ReplaceAll(s, ".", "-")), "prompt")
}

// firstHeading returns the first heading outside a code block, if it is long enough for a title.
func firstHeading(body []byte) string {
	fence := ""
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fence = line[:3]
			continue
		}
		text := strings.TrimLeft(line, "#")
		if marks := len(line) - len(text); marks == 0 || marks > 6 || !strings.HasPrefix(text, " ") {
			continue
		}
		text = strings.TrimSpace(strings.TrimRight(text, "#"))
		if len([]rune(text)) < minTitle {
			return ""
		}
		return text
	}
	return ""
}
