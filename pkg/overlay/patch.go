package overlay

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/schema"
)

// patch applies one entry of patches: a list is a JSON patch (RFC 6902), an object is merged.
func (l *layer) patch(p *patch, pointer string) {
	from := l.place(pointer)
	file, data := l.file, []byte(p.Patch)
	switch {
	case (p.Path == "") == (p.Patch == ""):
		l.fail(from, "patches: expected either path or patch")
		return
	case p.Path != "":
		var ok bool
		if data, ok = l.read(p.Path, l.place(pointer+"/path")); !ok {
			return
		}
		file = filepath.Join(l.dir, filepath.FromSlash(p.Path))
	}
	nodes, violations := manifest.Trees(file, data)
	if p.Path == "" { // an inline patch: its lines are counted from the start of the text
		line := l.place(pointer + "/patch").Line
		for i := range violations {
			violations[i].Source.Line += line
		}
		for _, n := range nodes {
			shift(n, line)
		}
	}
	l.violations = append(l.violations, violations...)
	for _, n := range nodes {
		l.from(n, file)
		if n.Kind == yaml.SequenceNode {
			l.patchJSON(p, n, file, from)
		} else {
			l.patchMerge(p, n, file, from)
		}
	}
	if len(nodes) == 0 && len(violations) == 0 {
		l.fail(from, "patches: the patch is empty")
	}
}

func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, m := range n.Content {
		shift(m, lines)
	}
}

func (l *layer) patchJSON(p *patch, ops *yaml.Node, file string, from v1.Source) {
	if p.Target == nil {
		l.fail(from, "patches: a JSON 6902 patch needs a target")
		return
	}
	for _, o := range l.chosen(p.Target, from) {
		for _, op := range ops.Content {
			if err := l.apply(o.node, op); err != nil {
				l.fail(at(file, op), "patch of %s: %v", o, err)
				return
			}
		}
		o.renamed()
	}
}

func (l *layer) patchMerge(p *patch, n *yaml.Node, file string, from v1.Source) {
	if n.Kind != yaml.MappingNode {
		l.fail(at(file, n), "patches: expected an object, or a list of JSON 6902 operations")
		return
	}
	var objects []*object
	if p.Target != nil {
		objects = l.chosen(p.Target, from)
	} else {
		kind, ns, name := text(n, "kind"), text(n, "metadata", "namespace"), text(n, "metadata", "name")
		for _, o := range l.objects {
			if o.was(kind, ns, name) {
				objects = append(objects, o)
			}
		}
		switch {
		case len(objects) == 0:
			l.fail(at(file, n), "patches: there is no %s %q to patch%s", kind, name, l.nearest(func(o *object) bool { return o.kind() == kind }, name))
			return
		case len(objects) > 1:
			l.fail(at(file, n), "patches: %s %q is both %s and %s: set metadata.namespace", kind, name, objects[0], objects[1])
			return
		}
	}
	for _, o := range objects {
		if directive(n) == "delete" {
			l.drop(o)
			continue
		}
		kind, ns := o.kind(), text(o.node, "metadata", "namespace")
		if err := l.merge(o.node, n); err != nil {
			l.fail(at(file, n), "patch of %s: %v", o, err)
			return
		}
		o.keepIdentity(p, kind, ns)
	}
}

// keepIdentity restores the kind, namespace and name of a merged object, as kustomize does, unless
// the patch's options allow the change.
func (o *object) keepIdentity(p *patch, kind, namespace string) {
	if !p.Options.AllowKindChange {
		set(o.node, "kind", textNode(kind))
	}
	meta := member(o.node, "metadata")
	if namespace == "" {
		remove(meta, "namespace")
	} else if text(meta, "namespace") != namespace {
		set(meta, "namespace", textNode(namespace))
	}
	if name := text(meta, "name"); name != o.id().name && !p.Options.AllowNameChange {
		set(meta, "name", textNode(o.id().name))
	}
	o.renamed()
}

// renamed records the current identity of the object.
func (o *object) renamed() {
	if id := (ident{namespaceOf(o.node), text(o.node, "metadata", "name")}); id != o.id() {
		o.ids = append(o.ids, id)
	}
}

func (l *layer) drop(o *object) {
	l.objects = slices.DeleteFunc(slices.Clone(l.objects), func(other *object) bool { return other == o })
}

// chosen returns the objects that a target selects. It is an error if the target selects no object,
// because a patch is meant to apply.
func (l *layer) chosen(t *target, from v1.Source) []*object {
	fits, err := t.matcher()
	if err != nil {
		l.fail(from, "target: %v", err)
		return nil
	}
	var objects []*object
	for _, o := range l.objects {
		if fits(o) {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		named := *t
		named.Name = ""
		others, _ := named.matcher()
		hint := l.nearest(others, t.Name)
		if kind := v1.Nearest(t.Kind, v1.Kinds()); kind != "" && kind != t.Kind {
			hint = fmt.Sprintf("; did you mean the kind %s?", kind)
		}
		l.fail(from, "target: it selects no object: nothing here is %s%s", t, hint)
	}
	return objects
}

// String describes the target for messages.
func (t *target) String() string {
	var parts []string
	for _, p := range []struct{ name, text string }{
		{"group", t.Group}, {"version", t.Version}, {"kind", t.Kind}, {"name", t.Name}, {"namespace", t.Namespace}, {"labels", t.LabelSelector}, {"annotations", t.AnnotationSelector},
	} {
		if p.text != "" {
			parts = append(parts, p.name+" "+strconv.Quote(p.text))
		}
	}
	return strings.Join(parts, ", ")
}

// nearest suggests an existing object name similar to name.
func (l *layer) nearest(of func(*object) bool, name string) string {
	var names []string
	for _, o := range l.objects {
		if of(o) {
			names = append(names, o.id().name)
		}
	}
	return v1.DidYouMean(name, names)
}

// matcher returns a function that reports whether the target selects an object. It matches current
// and earlier names and namespaces.
func (t *target) matcher() (func(*object) bool, error) {
	patterns := make([]*regexp.Regexp, 5)
	for i, p := range []struct{ field, text string }{{"group", t.Group}, {"version", t.Version}, {"kind", t.Kind}, {"name", t.Name}, {"namespace", t.Namespace}} {
		if p.text == "" {
			continue
		}
		re, err := regexp.Compile("^(?:" + p.text + ")$")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.field, err)
		}
		patterns[i] = re
	}
	labels, err := registry.ParseSelector(t.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	annotations, err := registry.ParseSelector(t.AnnotationSelector)
	if err != nil {
		return nil, fmt.Errorf("annotationSelector: %w", err)
	}
	fits := func(i int, s string) bool { return patterns[i] == nil || patterns[i].MatchString(s) }
	return func(o *object) bool {
		group, version := groupVersion(text(o.node, "apiVersion"))
		if !fits(0, group) || !fits(1, version) || !fits(2, o.kind()) {
			return false
		}
		for _, id := range o.ids {
			if fits(3, id.name) && fits(4, id.namespace) {
				return labels.Matches(texts(o.node, "labels")) && annotations.Matches(texts(o.node, "annotations"))
			}
		}
		return false
	}, nil
}

func groupVersion(api string) (group, version string) {
	if group, version, ok := strings.Cut(api, "/"); ok {
		return group, version
	}
	return "", api
}

// texts returns the labels or annotations of an object.
func texts(n *yaml.Node, key string) map[string]string {
	m := child(child(n, "metadata"), key)
	all := map[string]string{}
	for i := 0; m != nil && m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		all[m.Content[i].Value] = m.Content[i+1].Value
	}
	return all
}

// directive returns the $patch of an object.
func directive(n *yaml.Node) string { return text(n, "$patch") }

// merge applies a strategic merge patch to an object. toolctl's kinds have no lists with merge
// keys, so a list replaces a list; null removes a key (RFC 7396), and $patch: replace or delete
// replaces or removes an object.
func (b *builder) merge(dst, p *yaml.Node) error {
	if d := directive(p); d == "replace" {
		dst.Content = nil
	} else if child(p, "$patch") != nil && d != "merge" {
		return fmt.Errorf("$patch: %q: expected replace, delete or merge", d)
	}
	for i := 0; i+1 < len(p.Content); i += 2 {
		k, v := p.Content[i], p.Content[i+1]
		if k.Value == "$patch" {
			continue
		}
		if strings.HasPrefix(k.Value, "$") && !schema.Known(k.Value) {
			return fmt.Errorf("the directive %q is not supported: expected $patch", k.Value)
		}
		have := child(dst, k.Value)
		switch {
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null", v.Kind == yaml.MappingNode && directive(v) == "delete":
			remove(dst, k.Value)
		case v.Kind == yaml.MappingNode && have != nil && have.Kind == yaml.MappingNode:
			if err := b.merge(have, v); err != nil {
				return err
			}
		case have != nil && have.Kind != v.Kind && have.Tag != "!!null":
			return fmt.Errorf("%s is %s, and the patch has %s there: remove it with null first, or use JSON 6902", k.Value, form(have), form(v))
		default:
			c, err := b.fresh(v)
			if err != nil {
				return err
			}
			b.put(dst, k, c)
		}
	}
	return nil
}

// form names the type of a value.
func form(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// put sets a key to a value from a patch. A new key has its place in the patch.
func (b *builder) put(dst, key, v *yaml.Node) {
	if i := index(dst, key.Value); i >= 0 {
		dst.Content[i+1] = v
		b.keyFrom(dst, key.Value)
		return
	}
	dst.Content = append(dst.Content, b.clone(key), v)
}

// fresh returns the value of a patch for an absent key: without nulls and directives.
func (b *builder) fresh(v *yaml.Node) (*yaml.Node, error) {
	c := b.clone(v)
	if c.Kind != yaml.MappingNode {
		return c, nil
	}
	content := c.Content
	c.Content = nil
	return c, b.merge(c, &yaml.Node{Kind: yaml.MappingNode, Content: content})
}
