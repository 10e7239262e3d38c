package manifest

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Bounds of one document. A short text can expand to a large tree: aliases and merge keys count at each use.
const (
	maxDepth     = 1000
	maxNodes     = 2_000_000
	maxJSONBytes = 64 << 20
)

// normalize prepares a tree for the decoder: it replaces aliases by their targets and merge keys by their members,
// gives every scalar its core tag and JSON text, and makes keys unique texts.
func (d *document) normalize(n *yaml.Node) {
	if len(d.path) > maxDepth {
		d.overflow(n, fmt.Sprintf("nested deeper than %d levels", maxDepth))
		return
	}
	if n.Anchor != "" {
		d.anchors[n] = anchorOpen
		defer func() { d.anchors[n] = anchorDone }()
	}
	switch n.Kind {
	case yaml.ScalarNode:
		d.scalar(n)
	case yaml.SequenceNode:
		d.collectionTag(n, tagSeq)
		for i, c := range n.Content {
			d.path = append(d.path, step{index: i})
			n.Content[i] = d.target(c)
			d.path = d.path[:len(d.path)-1]
		}
	case yaml.MappingNode:
		d.collectionTag(n, tagMap)
		d.mapping(n)
	}
}

// target returns the normalized node that n refers to.
func (d *document) target(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.AliasNode {
		d.normalize(n)
		return n
	}
	switch d.anchors[n.Alias] {
	case anchorDone:
	case anchorOpen:
		d.error(n, v1.Violation{Expected: "another anchor", Got: "*" + n.Value, Message: fmt.Sprintf("the anchor %q contains itself", n.Value)})
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagNull, Value: "null", Line: n.Line, Column: n.Column}
	default: // the anchor is outside this document, elsewhere in a List
		d.normalize(n.Alias)
	}
	return n.Alias
}

// States of an anchored node.
const (
	anchorOpen = iota + 1 // being normalized; an alias to it would never end
	anchorDone
)

func (d *document) mapping(n *yaml.Node) {
	merge, clean := -1, true
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			name := *k.Alias // a copy, because the named value keeps its own type
			name.Line, name.Column = k.Line, k.Column
			name.Style |= yaml.DoubleQuotedStyle
			k = &name
			n.Content[i] = k
		}
		if k.Kind != yaml.ScalarNode {
			d.error(k, v1.Violation{Expected: "a key that is text", Got: describe(k), Message: "a key must be text, got " + describe(k)})
			n.Content[i], clean = nil, false
			continue
		}
		if isMerge(k) {
			if merge >= 0 {
				d.duplicate(n.Content[merge], k)
				n.Content[i], clean = nil, false
				continue
			}
			merge, clean = i, false
			continue
		}
		d.key(k)
		if first := d.earlier(n, i); first != nil {
			d.duplicate(first, k)
			n.Content[i], clean = nil, false
		}
	}
	clear(d.seen)
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i] == nil {
			continue
		}
		d.path = append(d.path, step{key: n.Content[i].Value, index: -1})
		n.Content[i+1] = d.target(n.Content[i+1])
		d.path = d.path[:len(d.path)-1]
	}
	if !clean {
		d.rebuild(n, merge)
	}
}

// earlier returns an earlier key of the mapping with the same text as the key at i. In small mappings it compares all
// pairs, which needs no memory.
func (d *document) earlier(n *yaml.Node, i int) *yaml.Node {
	key := n.Content[i].Value
	if len(n.Content) <= 32 {
		for j := 0; j < i; j += 2 {
			if k := n.Content[j]; k != nil && k.Value == key && !isMerge(k) {
				return k
			}
		}
		return nil
	}
	if d.seen == nil {
		d.seen = map[string]*yaml.Node{}
	}
	if first := d.seen[key]; first != nil {
		return first
	}
	d.seen[key] = n.Content[i]
	return nil
}

func (d *document) duplicate(first, again *yaml.Node) {
	d.path = append(d.path, step{key: again.Value, index: -1})
	d.error(again, v1.Violation{Expected: "each key once", Got: "twice", Message: fmt.Sprintf("duplicate key %q: first on line %d, again on line %d", again.Value, first.Line, again.Line)})
	d.path = d.path[:len(d.path)-1]
}

// rebuild drops refused pairs and adds the members of the merge key after the mapping's own keys, which win.
func (d *document) rebuild(n *yaml.Node, merge int) {
	var sources []*yaml.Node
	kept := make([]*yaml.Node, 0, len(n.Content))
	for i := 0; i < len(n.Content); i += 2 {
		switch {
		case i == merge:
			sources = d.mergeSources(n.Content[i], n.Content[i+1])
		case n.Content[i] != nil:
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	if len(sources) > 0 {
		have := make(map[string]bool, len(kept))
		for i := 0; i < len(kept); i += 2 {
			have[kept[i].Value] = true
		}
		for _, s := range sources {
			if !d.spend(n, len(s.Content)) {
				break
			}
			for i := 0; i < len(s.Content); i += 2 {
				if key := s.Content[i].Value; !have[key] {
					have[key] = true
					kept = append(kept, s.Content[i], s.Content[i+1])
				}
			}
		}
	}
	n.Content = kept
}

func (d *document) mergeSources(key, value *yaml.Node) []*yaml.Node {
	sources := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		sources = value.Content
	}
	for _, s := range sources {
		if s.Kind != yaml.MappingNode {
			d.error(key, v1.Violation{Expected: "a mapping or a list of mappings", Got: describe(s), Message: "a merge key (<<) takes a mapping or a list of mappings, got " + describe(s)})
			return nil
		}
	}
	return sources
}

func isMerge(k *yaml.Node) bool {
	return k.Value == "<<" && k.Tag == tagMerge
}

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (d *document) key(k *yaml.Node) {
	if k.Style&yaml.TaggedStyle != 0 {
		switch k.Tag {
		case tagStr, tagInt, tagFloat, tagBool, tagNull:
		default:
			d.badTag(k)
		}
	} else if k.Style&quoted == 0 && yaml11(k.Value) != "" {
		d.path = append(d.path, step{key: k.Value, index: -1})
		d.warn11(k, k.Value)
		d.path = d.path[:len(d.path)-1]
	}
	k.Tag = tagStr
}

const reader11 = "but a YAML 1.1 reader such as kubectl sees"

// summarize11 keeps one warning for each file with values that YAML 1.1 reads differently, with the number of further
// values, or a single warning if more than 20 files have such values. The violations must be sorted by place.
func summarize11(fs []v1.Violation) []v1.Violation {
	const most = 20
	is := func(f v1.Violation) bool { return f.IsWarning() && strings.Contains(f.Message, reader11) }
	counts, all := map[string]int{}, 0
	for _, f := range fs {
		if is(f) {
			counts[f.Source.File]++
			all++
		}
	}
	told := map[string]bool{}
	kept := fs[:0]
	for _, f := range fs {
		if is(f) {
			file := f.Source.File
			if told[file] || len(counts) > most && len(told) > 0 {
				continue
			}
			told[file] = true
			switch n := counts[file] - 1; {
			case len(counts) > most:
				f.Message += fmt.Sprintf(" (and %d more in %d files)", all-1, len(counts))
			case n > 0:
				f.Message += fmt.Sprintf(" (and %d more in this file)", n)
			}
		}
		kept = append(kept, f)
	}
	return kept
}

func (d *document) warn11(n *yaml.Node, s string) {
	if other := yaml11(s); other != "" {
		is := "text"
		if tag, text, _ := resolvePlain(s); tag == tagInt {
			is = text
		}
		d.violation(n, v1.Violation{Severity: v1.SeverityWarning, Expected: "quotes", Got: s, Message: fmt.Sprintf("%q is %s here, %s %s: quote it", s, is, reader11, other)})
	}
}

func (d *document) scalar(n *yaml.Node) {
	if n.Style&yaml.TaggedStyle != 0 {
		d.taggedScalar(n)
		return
	}
	if n.Style&quoted != 0 {
		n.Tag = tagStr
		return
	}
	d.warn11(n, n.Value)
	tag, text, reason := resolvePlain(n.Value)
	if reason != "" {
		d.error(n, v1.Violation{Expected: "a JSON number", Got: clip.Bytes(n.Value, maxShown), Message: reason})
		tag, text = tagNull, "null"
	}
	n.Tag, n.Value = tag, text
}

func (d *document) taggedScalar(n *yaml.Node) {
	want := n.Tag
	if want == tagStr {
		return
	}
	tag, text, reason := resolvePlain(n.Value)
	ok := tag == want && reason == ""
	switch want {
	case tagInt, tagBool, tagNull:
	case tagFloat:
		ok = ok || tag == tagInt && reason == ""
	default:
		d.badTag(n)
		n.Tag, n.Value = tagNull, "null"
		return
	}
	if !ok {
		d.error(n, v1.Violation{Expected: want, Got: clip.Bytes(n.Value, maxShown), Message: fmt.Sprintf("%q cannot be read as %s", clip.Bytes(n.Value, maxShown), want)})
		tag, text = tagNull, "null"
	}
	n.Tag, n.Value = tag, text
}

func (d *document) collectionTag(n *yaml.Node, want string) {
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != want {
		d.badTag(n)
	}
	n.Tag = want
}

func (d *document) badTag(n *yaml.Node) {
	d.error(n, v1.Violation{Expected: "a tag of the YAML core schema", Got: n.Tag, Message: fmt.Sprintf("the tag %q is not supported: expected none, or !!str, !!int, !!float, !!bool, !!null, !!map or !!seq", n.Tag)})
}
