package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// maxLayoutBytes is the maximum layout size of one document. The layout of a larger document is not
// kept.
const maxLayoutBytes = 256 << 10

// List is several objects in one document, as kubectl prints them.
type List struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Items      []v1.Object `json:"items"`
}

// layout returns the comments of the document and the order of its keys, or nil if they are too
// large. Values that are kept as written need no key order.
func (d *document) layout(t reflect.Type) *v1.Layout {
	l := &v1.Layout{Keys: map[string][]string{}, Comments: map[string]v1.Comment{}}
	left := maxLayoutBytes
	keep := func(p string, c v1.Comment) {
		if c != (v1.Comment{}) {
			left -= len(p) + len(c.Head) + len(c.Line) + len(c.Foot)
			l.Comments[p] = c
		}
	}
	keep("", commentOf(d.root, nil))
	var walk func(n *yaml.Node, p string, t reflect.Type, depth int)
	walk = func(n *yaml.Node, p string, t reflect.Type, depth int) {
		if left < 0 || depth > maxDepth || !d.spend(n, 1) {
			return
		}
		switch n.Kind {
		case yaml.MappingNode:
			var keys []string
			for i := 0; i+1 < len(n.Content); i += 2 {
				k, v := n.Content[i], n.Content[i+1]
				name := k.Value
				if ours := promptKitFields[name]; d.promptKit && ours != "" {
					name = ours
				}
				at := v1.Pointer(p, name)
				keep(at, commentOf(k, v))
				walk(v, at, elem(t, name), depth+1)
				keys = append(keys, name)
			}
			if t != nil && len(keys) > 1 {
				left -= len(p) + len(strings.Join(keys, ""))
				l.Keys[p] = keys
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				at := p + "/" + strconv.Itoa(i)
				keep(at, commentOf(c, nil))
				walk(c, at, elem(t, ""), depth+1)
			}
		}
	}
	walk(d.root, "", t.Elem(), 0)
	if left < 0 || d.full || len(l.Keys)+len(l.Comments) == 0 {
		return nil
	}
	return l
}

// elem returns the type of a member, or nil for a value that is kept as written.
func elem(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		t = tableOf(t).byName[key].typ
	case reflect.Slice, reflect.Map:
		t = t.Elem()
	default:
		return nil
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawMessage {
		return nil
	}
	return t
}

// commentOf returns the comments of a value, and those of its key if key is a different node.
func commentOf(n, value *yaml.Node) v1.Comment {
	c := v1.Comment{Head: n.HeadComment, Line: n.LineComment, Foot: n.FootComment}
	if value != nil {
		c.Head = joinComments(c.Head, value.HeadComment)
		c.Line = strings.TrimSpace(c.Line + " " + value.LineComment)
		c.Foot = joinComments(value.FootComment, c.Foot)
	}
	return c
}

// joinComments joins two comments, one below the other.
func joinComments(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// arrangement returns a function that applies the layout of objects to the tree of a value, or nil
// if there is no layout.
func arrangement(v any) func(*yaml.Node) {
	switch v := v.(type) {
	case v1.Object:
		if l := v.Head().Layout; l != nil {
			return func(n *yaml.Node) {
				arrange(n, "", l)
				if c := l.Comments[""]; len(n.Content) > 0 {
					first, last := n.Content[0], n.Content[len(n.Content)-2]
					first.HeadComment = joinComments(c.Head, first.HeadComment)
					last.FootComment = joinComments(last.FootComment, c.Foot)
				}
			}
		}
	case List:
		if slices.ContainsFunc(v.Items, func(o v1.Object) bool { return o.Head().Layout != nil }) {
			return func(n *yaml.Node) {
				items := n.Content[len(n.Content)-1]
				for i, o := range v.Items {
					if l := o.Head().Layout; l != nil {
						arrangeItem(items.Content[i], l)
					}
				}
			}
		}
	}
	return nil
}

// arrangeItem arranges an object in a list. It moves the comment above the first key to above the
// item, and the comment below the object to below its innermost last value. The writer would put
// the latter behind the dash of the next item.
func arrangeItem(n *yaml.Node, l *v1.Layout) {
	arrange(n, "", l)
	if len(n.Content) == 0 {
		return
	}
	first := n.Content[0]
	n.HeadComment, first.HeadComment = joinComments(l.Comments[""].Head, first.HeadComment), ""
	foot, at := l.Comments[""].Foot, n
	for len(n.Content) > 0 {
		last := n.Content[len(n.Content)-1]
		at = last
		if n.Kind == yaml.MappingNode {
			at = n.Content[len(n.Content)-2]
		}
		foot, at.FootComment = joinComments(at.FootComment, foot), ""
		n = last
	}
	at.FootComment = foot
}

// arrange sorts the keys of a tree and attaches the comments to its values.
func arrange(n *yaml.Node, p string, l *v1.Layout) {
	switch n.Kind {
	case yaml.MappingNode:
		sortKeys(n, l.Keys[p])
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			at := v1.Pointer(p, k.Value)
			arrange(v, at, l)
			c := l.Comments[at]
			k.HeadComment, k.FootComment = c.Head, c.Foot
			if len(v.Content) > 0 || v.Style == yaml.LiteralStyle {
				k.LineComment = c.Line
			} else {
				v.LineComment = c.Line
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			at := p + "/" + strconv.Itoa(i)
			arrange(c, at, l)
			has := l.Comments[at]
			c.HeadComment, c.LineComment, c.FootComment = has.Head, has.Line, has.Foot
		}
	}
}

// sortKeys sorts the pairs of a mapping in the order of keys; other pairs come last.
func sortKeys(n *yaml.Node, keys []string) {
	if len(keys) == 0 {
		return
	}
	place := make(map[string]int, len(keys))
	for i, k := range keys {
		place[k] = i
	}
	pairs := make([][2]*yaml.Node, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, [2]*yaml.Node{n.Content[i], n.Content[i+1]})
	}
	at := func(k string) int {
		if i, ok := place[k]; ok {
			return i
		}
		return len(keys)
	}
	slices.SortStableFunc(pairs, func(a, b [2]*yaml.Node) int { return at(a[0].Value) - at(b[0].Value) })
	n.Content = n.Content[:0]
	for _, pair := range pairs {
		n.Content = append(n.Content, pair[0], pair[1])
	}
}

// readsAs reports whether a YAML text is one document equal to the JSON text. A misplaced comment
// may change the meaning of a text.
func readsAs(text, want []byte) bool {
	var docs []json.RawMessage
	f := parseYAML("", text, func(n *yaml.Node) bool {
		d := &document{root: n, anchors: map[*yaml.Node]int{}}
		d.normalize(n)
		docs = append(docs, d.rawJSON(n))
		return len(d.violations) == 0 && len(docs) < 2
	})
	return f == nil && len(docs) == 1 && sameJSON(docs[0], want)
}

// sameJSON reports whether two JSON texts are equal apart from the order of keys. Numbers are equal
// if they are written the same way.
func sameJSON(a, b []byte) bool {
	var v [2]any
	for i, text := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}
