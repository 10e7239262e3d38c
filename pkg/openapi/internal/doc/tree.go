// Package doc reads an OpenAPI document and the files it refers to into JSON
// trees, and follows references between them. It never opens a network
// connection and never leaves the folder of the document.
//
// A tree is made of map[string]any, []any, string, [json.Number], bool and nil.
// Trees are shared and never changed.
package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"toolctl.dev/toolctl/pkg/manifest"
)

// Bounds of a document. Aliases count as often as they are used.
const (
	// MaxBytes is the most bytes that are read, all files together.
	MaxBytes = 50 << 20
	// MaxDepth is the deepest nesting of objects and lists.
	MaxDepth = 200
	// MaxNodes is the most values in one file.
	MaxNodes = 8_000_000
	// MaxExponent bounds the exponent of a number, and its digits: a number such as
	// 1e999999999 takes a validator down that computes with exact numbers.
	MaxExponent = 400
)

// Parse reads YAML 1.2 or JSON. Numbers keep every digit. YAML is read by pkg/manifest: no,
// on and y are text. Merge keys (<<) are followed, because documents in the wild use them, and
// of keys that stand twice the last wins, as in JSON. What aliases name is shared.
func Parse(data []byte) (any, error) { return parse(data, orders{}) }

func parse(data []byte, o orders) (any, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		if v, err := parseJSON(data); err == nil || !isSyntax(err) {
			dec := json.NewDecoder(bytes.NewReader(data))
			o.read(dec, v)
			return v, err
		} else if y, yerr := parseYAML(data, o); yerr == nil {
			return y, nil // a YAML flow mapping
		} else {
			return nil, err
		}
	}
	return parseYAML(data, o)
}

func isSyntax(err error) bool {
	var s *syntaxError
	return errors.As(err, &s)
}

type syntaxError struct {
	line, column int
	msg          string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.msg) }

func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more data after the document")
		}
	}
	if err != nil {
		offset := dec.InputOffset()
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = s.Offset
		}
		before := data[:min(int(offset), len(data))]
		return nil, &syntaxError{1 + bytes.Count(before, []byte("\n")), 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1), strings.TrimPrefix(err.Error(), "json: ")}
	}
	b := budget{}
	return v, b.check(v, 0)
}

type budget struct{ nodes int }

func (b *budget) take(n, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	if b.nodes += n; b.nodes > MaxNodes {
		return fmt.Errorf("more than %d values, aliases counted as often as they are used", MaxNodes)
	}
	return nil
}

func (b *budget) check(v any, depth int) error {
	if err := b.take(1, depth); err != nil {
		return err
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if err := b.check(e, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := b.check(e, depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		return checkNumber(string(v))
	}
	return nil
}

func checkNumber(s string) error {
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	n, err := strconv.Atoi(exp)
	if len(mantissa) > MaxExponent || exp != "" && (err != nil || n > MaxExponent || n < -MaxExponent) {
		return fmt.Errorf("the number %.20s… is out of range: at most %d digits and exponents of ±%d are read", s, MaxExponent, MaxExponent)
	}
	return nil
}

func parseYAML(data []byte, o orders) (any, error) {
	var root, second *yaml.Node
	broken := manifest.Documents("", data, func(n *yaml.Node) bool {
		if root == nil {
			root = n
		} else {
			second = n
		}
		return second == nil
	})
	switch {
	case broken != nil:
		return nil, fmt.Errorf("%d:%d: %s", broken.Source.Line, broken.Source.Column, broken.Message)
	case second != nil:
		return nil, fmt.Errorf("line %d: a second YAML document: expected one", second.Line)
	case root == nil:
		return nil, errors.New("the document is empty")
	}
	c := &yamlReader{anchors: map[*yaml.Node]anchored{}, orders: o}
	return c.value(root, 0)
}

type anchored struct {
	value any
	nodes int
	depth int // of the value itself
	open  bool
}

type yamlReader struct {
	budget
	anchors map[*yaml.Node]anchored
	orders  orders
	deepest int
}

func (c *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	c.deepest = max(c.deepest, depth)
	if err := c.take(1, depth); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n, depth)
	case yaml.SequenceNode:
		return c.open(n, depth, func() (any, error) {
			list := make([]any, 0, len(n.Content))
			for _, e := range n.Content {
				v, err := c.value(e, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			return list, nil
		})
	case yaml.MappingNode:
		return c.open(n, depth, func() (any, error) { return c.mapping(n, depth) })
	case yaml.ScalarNode:
		v, err := scalar(n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		if n.Anchor != "" {
			c.anchors[n] = anchored{value: v, nodes: 1}
		}
		return v, nil
	}
	return nil, fmt.Errorf("line %d: unexpected YAML node", n.Line)
}

// open reads a node with children and, when it has an anchor, remembers what it
// costs to use it again.
func (c *yamlReader) open(n *yaml.Node, depth int, read func() (any, error)) (any, error) {
	if n.Anchor == "" {
		return read()
	}
	c.anchors[n] = anchored{open: true}
	nodes, deepest := c.nodes, c.deepest
	c.deepest = depth
	v, err := read()
	c.anchors[n] = anchored{value: v, nodes: c.nodes - nodes + 1, depth: c.deepest - depth}
	c.deepest = max(deepest, c.deepest)
	return v, err
}

func (c *yamlReader) alias(n *yaml.Node, depth int) (any, error) {
	a, ok := c.anchors[n.Alias]
	if !ok || a.open {
		return nil, fmt.Errorf("line %d: the alias *%s is inside its own anchor", n.Line, n.Value)
	}
	if err := c.take(a.nodes, depth+a.depth); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	c.deepest = max(c.deepest, depth+a.depth)
	return a.value, nil
}

func (c *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	var names []string
	merge := func(from map[string]any) {
		merged = append(merged, from)
		names = append(names, c.orders.names(from)...)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be text", k.Line)
		}
		v, err := c.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if k.Value == "<<" && k.Style == 0 {
			switch v := v.(type) {
			case map[string]any:
				merge(v)
				continue
			case []any:
				for _, e := range v {
					if em, ok := e.(map[string]any); ok {
						merge(em)
					}
				}
				continue
			}
		}
		m[k.Value] = v
		names = append(names, k.Value)
	}
	c.orders.note(m, names)
	for _, from := range merged {
		for k, v := range from {
			if _, ok := m[k]; !ok {
				m[k] = v
			}
		}
	}
	return m, nil
}

// scalar is the value of a scalar. Infinity and NaN stay text: JSON has no such numbers.
func scalar(n *yaml.Node) (any, error) {
	switch strings.ToLower(strings.TrimLeft(n.Value, "+-")) {
	case ".inf", ".nan":
		return n.Value, nil
	}
	v, err := manifest.Scalar(n)
	if number, ok := v.(json.Number); ok && err == nil {
		err = checkNumber(string(number))
	}
	return v, err
}
