package overlay

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// child returns the value of a key of an object, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if i := index(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// index returns where the key stands in the object, -1 when it does not.
func index(n *yaml.Node, key string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// text returns the text at a path of keys, "" when there is none.
func text(n *yaml.Node, keys ...string) string {
	for _, k := range keys {
		n = child(n, k)
	}
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// set gives a key of an object a value.
func set(n *yaml.Node, key string, v *yaml.Node) {
	if i := index(n, key); i >= 0 {
		n.Content[i+1] = v
		return
	}
	k := textNode(key)
	k.Line, k.Column = v.Line, v.Column
	n.Content = append(n.Content, k, v)
}

// remove takes a key out of an object.
func remove(n *yaml.Node, key string) {
	if i := index(n, key); i >= 0 {
		n.Content = slices.Delete(n.Content, i, i+2)
	}
}

// member returns the object at a key, which it makes when there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	m := child(n, key)
	if m == nil || m.Kind != yaml.MappingNode {
		m = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		set(n, key, m)
	}
	return m
}

// textNode is a text, quoted where it would read as something else.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// clone copies a tree, so that one patch can serve many objects. Places stay, and so does
// the file they are in.
func (b *builder) clone(n *yaml.Node) *yaml.Node {
	if b.copied++; b.copied > maxGrowth {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	c := *n
	if f, ok := b.trees[n]; ok {
		b.trees[&c] = f
	}
	c.Content = nil
	for _, m := range n.Content {
		c.Content = append(c.Content, b.clone(m))
	}
	return &c
}

// keyFrom notes that the key of a value came with the value, whose place it gets: a message about
// either leads to who gave the value.
func (b *builder) keyFrom(n *yaml.Node, key string) {
	i := index(n, key)
	if i < 0 {
		return
	}
	v := n.Content[i+1]
	if f, ok := b.trees[v]; ok {
		k := *n.Content[i]
		k.Line, k.Column = v.Line, v.Column
		n.Content[i], b.trees[&k] = &k, f
	}
}

// from notes that a tree came from a file.
func (b *builder) from(n *yaml.Node, file string) {
	b.trees[n] = file
	for _, m := range n.Content {
		b.from(m, file)
	}
}
