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
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"toolctl.dev/toolctl/pkg/manifest"
)

// Bounds of a document. Aliases count at each use.
const (
	// MaxBytes is the maximum size of all files together.
	MaxBytes = 50 << 20
	// MaxDepth is the maximum nesting of objects and arrays.
	MaxDepth = 200
	// MaxNodes is the maximum number of values in one file.
	MaxNodes = 8_000_000
	// MaxExponent is the maximum exponent and the maximum number of digits of a number. A number such as
	// 1e999999999 would exhaust a validator that uses exact arithmetic.
	MaxExponent = 400
)

// Parse reads YAML 1.2 or JSON. Numbers keep every digit. pkg/manifest reads the text: no, on and y are text in
// YAML. Merge keys (<<) are followed, because public documents use them. If a key is repeated, the last value
// wins, as in JSON. Values named by aliases are shared.
func Parse(data []byte) (any, error) { return parse(data, orders{}) }

func parse(data []byte, o orders) (any, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	root, err := document("", data)
	if err != nil && bytes.HasPrefix(bytes.TrimLeft(data, "\xef\xbb\xbf \t\r\n"), []byte("{")) {
		_, err = document("broken.json", data) // JSON errors have a clearer place than YAML errors
	}
	if err != nil {
		return nil, err
	}
	r := &reader{anchors: map[*yaml.Node]anchored{}, orders: o}
	return r.value(root, 0)
}

func document(name string, data []byte) (*yaml.Node, error) {
	var root, second *yaml.Node
	broken := manifest.Documents(name, data, func(n *yaml.Node) bool {
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
		return nil, fmt.Errorf("line %d: a second document: expected one", second.Line)
	case root == nil:
		return nil, errors.New("the document is empty")
	}
	return root, nil
}

// reader makes the tree of a document.
type reader struct {
	anchors map[*yaml.Node]anchored
	orders  orders
	nodes   int
	deepest int
}

func (r *reader) take(n, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	if r.nodes += n; r.nodes > MaxNodes {
		return fmt.Errorf("more than %d values, aliases counted as often as they are used", MaxNodes)
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

type anchored struct {
	value any
	nodes int
	depth int // depth of the value itself
	open  bool
}

func (r *reader) value(n *yaml.Node, depth int) (any, error) {
	r.deepest = max(r.deepest, depth)
	if err := r.take(1, depth); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(n, depth)
	case yaml.SequenceNode:
		return r.open(n, depth, func() (any, error) {
			list := make([]any, 0, len(n.Content))
			for _, e := range n.Content {
				v, err := r.value(e, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			return list, nil
		})
	case yaml.MappingNode:
		return r.open(n, depth, func() (any, error) { return r.mapping(n, depth) })
	case yaml.ScalarNode:
		v, err := scalar(n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		if n.Anchor != "" {
			r.anchors[n] = anchored{value: v, nodes: 1}
		}
		return v, nil
	}
	return nil, fmt.Errorf("line %d: unexpected YAML node", n.Line)
}

// open reads a node with children. For a node with an anchor, it records the cost of using the node again.
func (r *reader) open(n *yaml.Node, depth int, read func() (any, error)) (any, error) {
	if n.Anchor == "" {
		return read()
	}
	r.anchors[n] = anchored{open: true}
	nodes, deepest := r.nodes, r.deepest
	r.deepest = depth
	v, err := read()
	r.anchors[n] = anchored{value: v, nodes: r.nodes - nodes + 1, depth: r.deepest - depth}
	r.deepest = max(deepest, r.deepest)
	return v, err
}

func (r *reader) alias(n *yaml.Node, depth int) (any, error) {
	a, ok := r.anchors[n.Alias]
	if !ok || a.open {
		return nil, fmt.Errorf("line %d: the alias *%s is inside its own anchor", n.Line, n.Value)
	}
	if err := r.take(a.nodes, depth+a.depth); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	r.deepest = max(r.deepest, depth+a.depth)
	return a.value, nil
}

func (r *reader) mapping(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	var names []string
	merge := func(from map[string]any) {
		merged = append(merged, from)
		names = append(names, r.orders.names(from)...)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be text", k.Line)
		}
		v, err := r.value(n.Content[i+1], depth+1)
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
	r.orders.note(m, names)
	for _, from := range merged {
		for k, v := range from {
			if _, ok := m[k]; !ok {
				m[k] = v
			}
		}
	}
	return m, nil
}

// scalar returns the value of a scalar. Infinity and NaN stay text: JSON has no such numbers.
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
