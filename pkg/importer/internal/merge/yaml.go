package merge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Edit changes a YAML document with the value from so that its value becomes to. Fields that are equal in both keep
// their text, order and comments. encode writes a value as a YAML document.
//
// The caller should read the result back: a document that uses aliases in changed places may not survive.
func Edit(text []byte, from, to any, encode func(any) ([]byte, error)) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 {
		return nil, errors.New("expected one YAML document")
	}
	e := editor{encode}
	if err := e.node(root.Content[0], from, to); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if !indented(root.Content[0]) {
		enc.CompactSeqIndent()
	}
	if err := enc.Encode(&root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// indented reports whether the first list of the document is indented below its key.
func indented(n *yaml.Node) bool {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.SequenceNode && c.Style&yaml.FlowStyle == 0 && len(c.Content) > 0 {
			return c.Column > n.Content[i-1].Column
		}
		if indented(c) {
			return true
		}
	}
	return false
}

type editor struct{ encode func(any) ([]byte, error) }

func (e editor) node(n *yaml.Node, from, to any) error {
	if Equal(from, to) {
		return nil
	}
	switch was := from.(type) {
	case map[string]any:
		if now, ok := to.(map[string]any); ok && n.Kind == yaml.MappingNode && len(now) > 0 {
			return e.mapping(n, was, now)
		}
	case []any:
		if now, ok := to.([]any); ok && n.Kind == yaml.SequenceNode && len(now) > 0 && len(n.Content) == len(was) {
			return e.sequence(n, was, now)
		}
	}
	return e.replace(n, to)
}

// replace puts a new value into a node and keeps the comments around the node.
func (e editor) replace(n *yaml.Node, to any) error {
	fresh, err := e.fresh(to)
	if err != nil {
		return err
	}
	fresh.HeadComment, fresh.LineComment, fresh.FootComment = n.HeadComment, n.LineComment, n.FootComment
	if fresh.Kind != yaml.ScalarNode && fresh.LineComment != "" && len(fresh.Content) > 0 { // the value spans several lines, so the comment moves above it
		first := fresh.Content[0]
		first.HeadComment, fresh.LineComment = fresh.LineComment, ""
	}
	*n = *fresh
	return nil
}

func (e editor) fresh(v any) (*yaml.Node, error) {
	text, err := e.encode(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("a value that is not a YAML document: %.80s", text)
	}
	return doc.Content[0], nil
}

func (e editor) mapping(n *yaml.Node, was, now map[string]any) error {
	content := n.Content[:0:0]
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		next, ok := now[k.Value]
		if !ok || seen[k.Value] {
			continue
		}
		seen[k.Value] = true
		if err := e.node(v, get(was, k.Value), next); err != nil {
			return err
		}
		content = append(content, k, v)
	}
	var added []string
	for k := range now {
		if !seen[k] {
			added = append(added, k)
		}
	}
	slices.Sort(added)
	sorted := isSorted(content)
	for _, k := range added {
		key, err := e.fresh(k)
		if err != nil {
			return err
		}
		v, err := e.fresh(now[k])
		if err != nil {
			return err
		}
		at := len(content)
		if sorted { // a new field is inserted in sorted order
			for at = 0; at < len(content) && content[at].Value < k; at += 2 {
			}
		}
		content = slices.Insert(content, at, key, v)
	}
	n.Content = content
	if len(added) > 0 {
		n.Style &^= yaml.FlowStyle // in flow style, a mapping with new blocks would be one long line
	}
	return nil
}

func isSorted(content []*yaml.Node) bool {
	for i := 2; i < len(content); i += 2 {
		if content[i-2].Value >= content[i].Value {
			return false
		}
	}
	return true
}

// sequence keeps the unchanged elements at both ends.
func (e editor) sequence(n *yaml.Node, was, now []any) error {
	if len(was) == len(now) {
		for i := range was {
			if err := e.node(n.Content[i], was[i], now[i]); err != nil {
				return err
			}
		}
		return nil
	}
	head := 0
	for head < min(len(was), len(now)) && Equal(was[head], now[head]) {
		head++
	}
	tail := 0
	for tail < min(len(was), len(now))-head && Equal(was[len(was)-1-tail], now[len(now)-1-tail]) {
		tail++
	}
	content := slices.Clone(n.Content[:head])
	for _, v := range now[head : len(now)-tail] {
		fresh, err := e.fresh(v)
		if err != nil {
			return err
		}
		content = append(content, fresh)
	}
	n.Content = append(content, n.Content[len(n.Content)-tail:]...)
	return nil
}
