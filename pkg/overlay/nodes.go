package overlay

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// child returns the value of a key of an object, or nil if the key is absent.
func child(n *yaml.Node, key string) *yaml.Node {
	if i := index(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// index returns the index of a key in an object, or -1 if the key is absent.
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

// text returns the text at a path of keys, or "" if the path is absent.
func text(n *yaml.Node, keys ...string) string {
	for _, k := range keys {
		n = child(n, k)
	}
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// set sets the value of a key of an object.
func set(n *yaml.Node, key string, v *yaml.Node) {
	if i := index(n, key); i >= 0 {
		n.Content[i+1] = v
		return
	}
	k := textNode(key)
	k.Line, k.Column = v.Line, v.Column
	n.Content = append(n.Content, k, v)
}

// remove removes a key from an object.
func remove(n *yaml.Node, key string) {
	if i := index(n, key); i >= 0 {
		n.Content = slices.Delete(n.Content, i, i+2)
	}
}

// member returns the object at a key, and creates it if it is absent.
func member(n *yaml.Node, key string) *yaml.Node {
	m := child(n, key)
	if m == nil || m.Kind != yaml.MappingNode {
		m = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		set(n, key, m)
	}
	return m
}

// textNode returns a text node, which is quoted if YAML would read the plain text as another type.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// clone copies a tree, so that one patch can apply to many objects. The copy keeps the file and the
// place of each node.
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

// keyFrom gives a key the source file and place of its value, so that messages about either name
// the file that set the value.
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

// from records the source file of a tree.
func (b *builder) from(n *yaml.Node, file string) {
	b.trees[n] = file
	for _, m := range n.Content {
		b.from(m, file)
	}
}
