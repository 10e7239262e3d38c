package overlay

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// generate creates the configuration values: ConfigMaps that only replacements read.
func (l *layer) generate() {
	for i, g := range l.spec.ConfigMapGenerator {
		at := v1.Pointer("/configMapGenerator", strconv.Itoa(i))
		data := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		from := l.place(at)
		if g.Name == "" {
			l.fail(from, "configMapGenerator: name is missing")
			continue
		}
		add := func(pair string) {
			k, v, ok := strings.Cut(pair, "=")
			switch {
			case !ok || k == "":
				l.fail(from, "configMapGenerator %s: %q: expected NAME=VALUE", g.Name, pair)
			case child(data, k) != nil:
				l.fail(from, "configMapGenerator %s: %s is listed twice", g.Name, k)
			default:
				set(data, k, textNode(v))
			}
		}
		for _, pair := range g.Literals {
			k, v, _ := strings.Cut(pair, "=")
			add(k + "=" + unquote(v))
		}
		for i, env := range g.Envs {
			text, _ := l.read(env, l.place(v1.Pointer(at, "envs", strconv.Itoa(i))))
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					add(line)
				}
			}
		}
		for i, file := range g.Files {
			k, name, ok := strings.Cut(file, "=")
			if !ok {
				k, name = path.Base(file), file
			}
			text, _ := l.read(name, l.place(v1.Pointer(at, "files", strconv.Itoa(i))))
			add(k + "=" + string(text))
		}
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		set(n, "apiVersion", textNode("v1"))
		set(n, "kind", textNode(kindConfigMap))
		meta := member(n, "metadata")
		set(meta, "name", textNode(g.Name))
		if g.Namespace != "" {
			set(meta, "namespace", textNode(g.Namespace))
		}
		set(n, "data", data)
		l.objects = append(l.objects, &object{node: n, file: l.file, folder: l.dir, ids: []ident{{namespaceOf(n), g.Name}}})
	}
}

func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// replacement copies one value into fields of other objects.
type replacement struct {
	Source  *source       `json:"source"`
	Targets []destination `json:"targets"`
}

type source struct {
	selector
	FieldPath string         `json:"fieldPath"`
	Options   *fieldsOptions `json:"options"`
}

type destination struct {
	Select     *selector      `json:"select"`
	Reject     []selector     `json:"reject"`
	FieldPaths []string       `json:"fieldPaths"`
	Options    *fieldsOptions `json:"options"`
}

type selector struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// fieldsOptions select a part of a text: the index of a part between delimiters.
type fieldsOptions struct {
	Delimiter string `json:"delimiter"`
	Index     int    `json:"index"`
	Encoding  string `json:"encoding"`
	Create    bool   `json:"create"`
}

func (s *selector) fits(o *object) bool {
	group, version := groupVersion(text(o.node, "apiVersion"))
	return (s.Group == "" || s.Group == group) && (s.Version == "" || s.Version == version) && (s.Kind == "" || s.Kind == o.kind()) &&
		slices.ContainsFunc(o.ids, func(id ident) bool {
			return (s.Name == "" || s.Name == id.name) && (s.Namespace == "" || s.Namespace == id.namespace)
		})
}

func (l *layer) replace(r *replacement, from v1.Source) {
	if r.Source == nil || len(r.Targets) == 0 {
		l.fail(from, "replacements: expected source and targets")
		return
	}
	v, err := l.sourceValue(r.Source)
	if err != nil {
		l.fail(from, "replacements: source: %v", err)
		return
	}
	for _, t := range r.Targets {
		if t.Select == nil || len(t.FieldPaths) == 0 {
			l.fail(from, "replacements: a target needs select and fieldPaths")
			continue
		}
		chosen := 0
		for _, o := range l.objects {
			if !t.Select.fits(o) || slices.ContainsFunc(t.Reject, func(s selector) bool { return s.fits(o) }) {
				continue
			}
			chosen++
			for _, p := range t.FieldPaths {
				if err := l.replaceAt(o.node, p, v, t.Options); err != nil {
					l.fail(from, "replacements: %s in %s: %v", p, o, err)
				}
			}
			o.renamed()
		}
		if chosen == 0 {
			l.fail(from, "replacements: a target selects no object")
		}
	}
}

func (l *layer) sourceValue(s *source) (*yaml.Node, error) {
	var o *object
	for _, other := range l.objects {
		if !s.fits(other) {
			continue
		}
		if o != nil {
			return nil, fmt.Errorf("it selects both %s and %s", o, other)
		}
		o = other
	}
	if o == nil {
		return nil, errors.New("it selects no object")
	}
	p := cmp.Or(s.FieldPath, "metadata.name")
	found := locate(o.node, fieldPath(p), false)
	if len(found) != 1 {
		return nil, fmt.Errorf("%s of %s has %d values: expected one", p, o, len(found))
	}
	v := l.clone(found[0])
	if s.Options != nil && s.Options.Delimiter != "" {
		parts := strings.Split(v.Value, s.Options.Delimiter)
		if v.Kind != yaml.ScalarNode || s.Options.Index < 0 || s.Options.Index >= len(parts) {
			return nil, fmt.Errorf("%s has no part %d", p, s.Options.Index)
		}
		v.Value = parts[s.Options.Index]
	}
	return v, nil
}

func (l *layer) replaceAt(doc *yaml.Node, p string, v *yaml.Node, o *fieldsOptions) error {
	found := locate(doc, fieldPath(p), o != nil && o.Create)
	if len(found) == 0 {
		return errors.New("there is no such field: set options.create to add it")
	}
	for _, n := range found {
		if v.Kind != yaml.ScalarNode {
			*n = *l.clone(v)
			continue
		}
		text := v.Value
		if o != nil && o.Encoding == "base64" {
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		if o != nil && o.Delimiter != "" {
			parts := strings.Split(n.Value, o.Delimiter)
			switch {
			case o.Index < 0:
				parts = append([]string{text}, parts...)
			case o.Index >= len(parts):
				parts = append(parts, text)
			default:
				parts[o.Index] = text
			}
			text = strings.Join(parts, o.Delimiter)
		}
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			*n = *l.clone(v)
		}
		n.Value = text // the type stays, so that a number can be set from a text
	}
	return nil
}

// fieldPath splits spec.http.headers.X\.Y at unescaped dots; [key=value] is one step.
func fieldPath(p string) []string {
	var steps []string
	var b strings.Builder
	depth := 0
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p) && p[i+1] == '.':
			b.WriteByte('.')
			i++
		case c == '.' && depth == 0:
			steps = append(steps, b.String())
			b.Reset()
		default:
			switch c {
			case '[':
				depth++
			case ']':
				depth--
			}
			b.WriteByte(c)
		}
	}
	return append(steps, b.String())
}

// locate finds the values at a path: keys, indices, "*" and [key=value].
func locate(n *yaml.Node, steps []string, create bool) []*yaml.Node {
	if n == nil {
		return nil
	}
	if len(steps) == 0 {
		return []*yaml.Node{n}
	}
	s := steps[0]
	var found []*yaml.Node
	switch {
	case n.Kind == yaml.SequenceNode:
		k, v, isFilter := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), "=")
		for i, item := range n.Content {
			if s == "*" || s == strconv.Itoa(i) || isFilter && text(item, k) == v {
				found = append(found, locate(item, steps[1:], create)...)
			}
		}
	case n.Kind == yaml.MappingNode && s == "*":
		for i := 1; i < len(n.Content); i += 2 {
			found = append(found, locate(n.Content[i], steps[1:], create)...)
		}
	case n.Kind == yaml.MappingNode:
		next := child(n, s)
		if next == nil && create {
			if len(steps) > 1 {
				next = member(n, s)
			} else {
				next = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
				set(n, s, next)
			}
		}
		return locate(next, steps[1:], create)
	}
	return found
}
