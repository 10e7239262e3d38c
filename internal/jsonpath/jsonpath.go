// Package jsonpath prints parts of JSON documents by the JSONPath templates of
// kubectl (https://kubernetes.io/docs/reference/kubectl/jsonpath):
//
//	{range .items[*]}{.metadata.name}{"\t"}{.spec.mode}{"\n"}{end}
//
// Paths are translated to RFC 9535. A path without a result prints nothing.
package jsonpath

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Template is a text with JSONPath expressions in braces.
type Template struct{ parts []part }

// part is a text, a path, or a range: a path whose parts are printed for each value that it finds.
type part struct {
	text string
	path *Path
	body []part
}

// maxTemplate is the maximum length of a template, in bytes.
const maxTemplate = 16 << 10

// Parse reads a template. A text without braces is one path, as in ".metadata.name".
func Parse(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("it is longer than %d bytes", maxTemplate)
	}
	if !strings.Contains(text, "{") {
		p, err := ParsePath(text)
		if err != nil {
			return nil, err
		}
		return &Template{[]part{{path: p}}}, nil
	}
	p := parser{rest: text}
	parts, err := p.parts(false)
	if err != nil {
		return nil, err
	}
	return &Template{parts}, nil
}

type parser struct{ rest string }

// parts reads until the end of the text, or with inRange until {end}.
func (p *parser) parts(inRange bool) ([]part, error) {
	var parts []part
	for p.rest != "" {
		text, rest, found := strings.Cut(p.rest, "{")
		if text != "" {
			parts = append(parts, part{text: text})
		}
		if !found {
			p.rest = ""
			break
		}
		expr, rest, err := braced(rest)
		if err != nil {
			return nil, err
		}
		p.rest = rest
		switch expr = strings.TrimSpace(expr); {
		case expr == "end" && inRange:
			return parts, nil
		case expr == "end":
			return nil, errors.New("{end} without {range}")
		case strings.HasPrefix(expr, "range "):
			path, err := ParsePath(strings.TrimPrefix(expr, "range "))
			if err != nil {
				return nil, err
			}
			body, err := p.parts(true)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{path: path, body: append(body, part{})})
		case strings.HasPrefix(expr, `"`), strings.HasPrefix(expr, "'"):
			text, err := unquote(expr)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{text: text})
		default:
			path, err := ParsePath(expr)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{path: path})
		}
	}
	if inRange {
		return nil, errors.New("{range} without {end}")
	}
	return parts, nil
}

// braced splits a text at the closing brace outside of quotes.
func braced(s string) (expr, rest string, err error) {
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '}':
			return s[:i], s[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("the brace of {%s is not closed", s)
}

func unquote(s string) (string, error) {
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		s = `"` + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\'`, `'`), `"`, `\"`) + `"`
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%s is not a quoted text", s)
	}
	return text, nil
}

// Execute prints the template for a document.
func (t *Template) Execute(w io.Writer, doc json.RawMessage) error {
	root, err := Decode(doc)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	write(&b, t.parts, root, root)
	_, err = w.Write(b.Bytes())
	return err
}

func write(b *bytes.Buffer, parts []part, root, at any) {
	for _, p := range parts {
		switch {
		case p.path == nil:
			b.WriteString(p.text)
		case p.body != nil:
			for _, v := range p.path.Find(root, at) {
				write(b, p.body, root, v)
			}
		default:
			b.WriteString(Text(p.path.Find(root, at)))
		}
	}
}

// Decode decodes a document and keeps every digit of its numbers.
func Decode(doc json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// Text writes values with a space between them: strings as they are, others as JSON.
func Text(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			texts[i] = s
			continue
		}
		texts[i] = string(jsontext.Of(v)) // it was decoded from JSON
	}
	return strings.Join(texts, " ")
}

// Path is one path of a template.
type Path struct {
	path     *jsonpath.Path
	fromRoot bool
}

// Find returns the values that the path selects below at, or below root when it starts with "$".
func (p *Path) Find(root, at any) []any {
	if p.fromRoot {
		at = root
	}
	return p.path.Select(at)
}

// ParsePath reads one path, with or without a leading point: .metadata.name, metadata.name,
// {.metadata.name}, $.items[*], @.
func ParsePath(text string) (*Path, error) {
	expr := strings.TrimSpace(text)
	if strings.HasPrefix(expr, "{") && strings.HasSuffix(expr, "}") {
		expr = strings.TrimSpace(expr[1 : len(expr)-1])
	}
	if expr == "" {
		return nil, errors.New("a path is empty")
	}
	if n := strings.Count(expr, ".."); n > 2 {
		return nil, fmt.Errorf("path %q has \"..\" %d times, more than 2", text, n)
	}
	p := &Path{fromRoot: expr[0] == '$'}
	switch expr[0] {
	case '$', '@':
		expr = expr[1:]
	case '.', '[':
	default:
		expr = "." + expr
	}
	t := translator{in: expr}
	t.out.WriteByte('$')
	t.steps(false)
	if t.in != "" {
		return nil, fmt.Errorf("path %q: cannot read %q", text, t.in)
	}
	var err error
	if p.path, err = jsonpath.Parse(t.out.String()); err != nil {
		return nil, fmt.Errorf("path %q: %s", text, strings.TrimPrefix(err.Error(), "jsonpath: "))
	}
	return p, nil
}
