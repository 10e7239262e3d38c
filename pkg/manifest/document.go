package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// A document is one object during reading: its tree, the reader's position in the tree, and the violations so far.
type document struct {
	file    string
	origins map[*yaml.Node]string // source files of nodes from other files
	root    *yaml.Node
	// promptKit and markdown make unknown fields warnings.
	promptKit, markdown bool

	extensions []v1.Extension // allowed in spec
	extended   bool           // spec uses an extension, so Header.Fields is filled

	paths      []namedPath // paths of files that are not read
	path       []step
	anchors    map[*yaml.Node]int    // states of anchored nodes; shared by the documents of a file
	seen       map[string]*yaml.Node // scratch of method earlier
	spent      int                   // visited nodes; an aliased node counts at each use
	bytes      int                   // size of the JSON written
	full       bool                  // a bound was reached, so reading stops
	buf        bytes.Buffer          // scratch of rawJSON
	violations []v1.Violation
	// misspelt holds the pointers of misspelt fields, under their correct names.
	misspelt []string
}

// A namedPath is the value of a field that holds a path.
type namedPath struct{ pointer, name string }

// A step is one token of a path: a key, or an index if index is not negative.
type step struct {
	key   string
	index int
}

// pointer returns the JSON pointer of the reader's position.
func (d *document) pointer() string {
	var p string
	for _, s := range d.path {
		if s.index >= 0 {
			p += "/" + strconv.Itoa(s.index)
		} else {
			p = v1.Pointer(p, s.key)
		}
		if len(p) > 256 {
			return p // the pointer of a parent; a longer path would not help
		}
	}
	return p
}

// violation records a violation of the value at n, the reader's current position.
func (d *document) violation(n *yaml.Node, f v1.Violation) {
	if d.muted() {
		return
	}
	if f.Path == "" {
		f.Path = d.pointer()
	}
	if f.Source.IsZero() {
		f.Source = d.source(n)
	}
	d.violations = append(d.violations, f)
	if len(d.violations) == maxViolations {
		d.violations = append(d.violations, v1.Violation{Source: f.Source, Message: fmt.Sprintf("more than %d errors in this document: the rest is not listed", maxViolations)})
	}
}

// maxViolations is the maximum number of violations reported for one document.
const maxViolations = 1000

// muted reports whether no more violations are recorded.
func (d *document) muted() bool { return len(d.violations) > maxViolations }

func (d *document) error(n *yaml.Node, f v1.Violation) {
	f.Severity = ""
	d.violation(n, f)
}

// soft records an error, or a warning in a PromptKit manifest.
func (d *document) soft(n *yaml.Node, f v1.Violation) {
	if d.promptKit {
		f.Severity = v1.SeverityWarning
	}
	d.violation(n, f)
}

func (d *document) overflow(n *yaml.Node, msg string) {
	if !d.full {
		d.full = true
		d.error(n, v1.Violation{Expected: "a smaller document", Got: "too much", Message: msg})
	}
}

// spend counts visited nodes and reports whether the limit still allows more.
func (d *document) spend(n *yaml.Node, count int) bool {
	d.spent += count
	if d.spent > maxNodes {
		d.overflow(n, fmt.Sprintf("the document expands to more than %d values", maxNodes))
	}
	return !d.full
}

func (d *document) source(n *yaml.Node) v1.Source {
	file := d.file
	if f, ok := d.origins[n]; ok {
		file = f
	}
	return v1.Source{File: file, Line: n.Line, Column: n.Column}
}

// place returns the source position of a pointer: that of a scalar itself, of the key of a mapping or list, or of
// the key of the nearest existing parent.
func (d *document) place(pointer string) v1.Source {
	n, at := d.root, d.start()
	if pointer == "" {
		return at
	}
	for _, tok := range v1.Tokens(pointer) {
		key, value := d.child(n, tok)
		if value == nil {
			return at
		}
		n, at = value, d.source(key)
	}
	if n.Kind == yaml.ScalarNode && n.Line > 0 {
		return d.source(n)
	}
	return at
}

// child finds a member of a mapping by key or of a list by index. The node key marks its place: the key in a
// mapping, the item itself in a list.
func (d *document) child(n *yaml.Node, tok string) (key, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Value == tok || d.promptKit && promptKitFields[k.Value] == tok {
				return k, n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(tok); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// start returns the place of the document's first key.
func (d *document) start() v1.Source {
	if d.root.Kind == yaml.MappingNode && len(d.root.Content) > 0 {
		return d.source(d.root.Content[0])
	}
	return d.source(d.root)
}

// readsVariable reports whether a field reads environment variables: its text contains ${, or its name implies it.
func readsVariable(field string, value *yaml.Node) bool {
	return value.Kind == yaml.ScalarNode && (strings.Contains(value.Value, "${") || strings.HasSuffix(field, "_env")) ||
		field == "headers_from_env"
}

// places returns the places of the wanted fields, by pointer. If wanted is nil, it returns those of all fields.
func (d *document) places(wanted func(field string, value *yaml.Node) bool) map[string]v1.Source {
	var m map[string]v1.Source
	add := func(pointer, field string, at, value *yaml.Node) {
		if wanted != nil && !wanted(field, value) {
			return
		}
		if m == nil {
			m = map[string]v1.Source{}
		}
		m[pointer] = d.source(at)
	}
	var walk func(n *yaml.Node, p string, depth int)
	walk = func(n *yaml.Node, p string, depth int) {
		const deepest = 64 // rules are near the top; deeper nodes are raw values
		if depth > deepest || !d.spend(n, 1) {
			return
		}
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				k := v1.Pointer(p, n.Content[i].Value)
				add(k, n.Content[i].Value, n.Content[i], n.Content[i+1])
				walk(n.Content[i+1], k, depth+1)
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				k := p + "/" + strconv.Itoa(i)
				add(k, "", c, c)
				walk(c, k, depth+1)
			}
		}
	}
	walk(d.root, "", 0)
	return m
}

// addValidated appends the violations of [v1.Object.Validate] with their places, except those of values that the
// reader has already refused.
func (d *document) addValidated(fs []v1.Violation, adjust func(*v1.Violation) bool) {
	refused := slices.Clone(d.misspelt)
	for _, f := range d.violations {
		if !f.IsWarning() {
			refused = append(refused, f.Path)
		}
	}
	for _, f := range fs {
		if d.muted() {
			return
		}
		missing := f.Got == "nothing"
		known := slices.ContainsFunc(refused, func(p string) bool {
			return p == f.Path || p == "" || d.wantsMisspelt(&f) || strings.HasPrefix(f.Path, p+"/") || missing && strings.HasPrefix(p, f.Path+"/")
		})
		if known || !adjust(&f) {
			continue
		}
		f.Source = d.place(f.Path)
		d.violation(d.root, f)
	}
}

// wantsMisspelt reports whether a violation asks for a misspelt field, as the required one or as one of several.
func (d *document) wantsMisspelt(f *v1.Violation) bool {
	return slices.ContainsFunc(d.misspelt, func(p string) bool {
		i := strings.LastIndexByte(p, '/')
		return p[:i] == f.Path && strings.Contains(f.Message, p[i+1:])
	})
}

// finish sorts the violations and drops warnings about values that are errors anyway.
func (d *document) finish() []v1.Violation {
	if len(d.violations) == 0 {
		return nil
	}
	wrong := map[v1.Source]bool{}
	for _, f := range d.violations {
		if !f.IsWarning() {
			wrong[f.Source] = true
		}
	}
	fs := slices.DeleteFunc(d.violations, func(f v1.Violation) bool { return f.IsWarning() && f.Expected == "quotes" && wrong[f.Source] })
	SortViolations(fs)
	return slices.Clip(fs)
}

// SortViolations orders violations by file, line, column, path and message. Within a line, errors about unknown
// fields come first, because a missing field may only be misspelt.
func SortViolations(fs []v1.Violation) {
	order := func(f v1.Violation) int {
		if !f.IsWarning() && strings.HasPrefix(f.Message, "unknown field ") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(fs, func(a, b v1.Violation) int {
		if c := strings.Compare(a.Source.File, b.Source.File); c != 0 {
			return c
		}
		if c := a.Source.Line - b.Source.Line; c != 0 {
			return c
		}
		if c := order(a) - order(b); c != 0 {
			return c
		}
		if c := a.Source.Column - b.Source.Column; c != 0 {
			return c
		}
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
}

// maxShown is the maximum length of a value in a message, in bytes.
const maxShown = 80

// describe describes a value for a message, with a bounded length.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "an array"
	}
	switch n.Tag {
	case tagNull:
		return "null"
	case tagBool:
		return "boolean " + n.Value
	case tagInt:
		return "integer " + clip.Bytes(n.Value, maxShown)
	case tagFloat:
		return "number " + clip.Bytes(n.Value, maxShown)
	}
	return "string " + strconv.Quote(clip.Bytes(n.Value, maxShown))
}
