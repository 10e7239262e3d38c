package schemas

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Doc explains a kind or one of its fields.
type Doc struct {
	// Kind is the kind of manifest, for example "Tool".
	Kind string `json:"kind"`
	// Version is the apiVersion of the kind.
	Version string `json:"version"`
	// Path is the full path in plain form, for example "toolpolicy.spec.limits.max_calls".
	Path string `json:"path"`
	// Name is the last part of Path; empty for a kind.
	Name string `json:"name,omitempty"`
	// Type is the type, for example "string", "integer", "any", "[]Limit", "map[string]string" or "HTTPSpec".
	Type string `json:"type"`
	// Required says that a manifest must have the field where its parent stands.
	Required bool `json:"required,omitempty"`
	// Description is what the field means; a second paragraph describes its type.
	Description string `json:"description"`
	// Default is the value of an absent field as YAML, or a few words about it.
	Default string `json:"default,omitempty"`
	// Example is a value of the field as YAML; for a kind, a whole manifest.
	Example string `json:"example,omitempty"`
	// Enum lists the only values, if they are few.
	Enum []string `json:"enum,omitempty"`
	// Fields are the fields of an object, of the items of a list or of the values of a map.
	Fields []Field `json:"fields,omitempty"`

	recursive bool
}

// Field is one line of the fields of a [Doc].
type Field struct {
	// Name is the field's name in a manifest.
	Name string `json:"name"`
	// Type is the type as in [Doc].
	Type string `json:"type"`
	// Required says that the field must be there.
	Required bool `json:"required,omitempty"`
	// Description is the first sentence of the field's description.
	Description string `json:"description,omitempty"`
	// Default is the default as in [Doc].
	Default string `json:"default,omitempty"`
	// Enum lists the only values, if they are few.
	Enum []string `json:"enum,omitempty"`
	// Fields are the fields below; only when all levels were asked for.
	Fields []Field `json:"fields,omitempty"`
}

// Explain returns the documentation of a kind or a field, named by the kind and
// the fields that lead to it, with points between: "tool.spec.http". The kind is
// taken in any case, singular or plural. Items of a list and values of a map are
// stepped into without a word of their own; the index or the "*" that messages
// and the reference write there is allowed, as in "toolpolicy.spec.limits[0].per".
// With recursive, the fields of all levels are filled in.
//
// Extensions are fields that executors and rules written in Go add; registry.Extensions
// returns them.
//
// A path that leads nowhere is a [v1.NotFoundError] of kind "Kind" or "Field",
// with the nearest right path as its candidate when there is one.
func Explain(path string, recursive bool, extensions ...v1.Extension) (Doc, error) {
	steps := strings.Split(strings.TrimSpace(path), ".")
	kind, ok := v1.ParseKind(steps[0])
	if !ok {
		return Doc{}, unknownKind(steps[0])
	}
	f, err := load(kind, extensions)
	if err != nil {
		return Doc{}, err
	}
	d := Doc{Kind: kind, Version: v1.APIVersion, Path: strings.ToLower(kind), Type: kind, recursive: recursive}
	at := &f.node
	for _, step := range steps[1:] {
		step = index.ReplaceAllString(step, "")
		if step == "*" && at.elem() != nil {
			at = at.elem()
			continue
		}
		parent := f.target(at)
		next := parent.Properties.get(step)
		if next == nil {
			return Doc{}, f.unknownField(path, d.Path, step, at)
		}
		d.Path, d.Name, d.Required = d.Path+"."+step, step, slices.Contains(parent.Required, step)
		at = next
	}
	if d.Name != "" {
		d.Type = at.typeName()
	}
	d.Description, d.Default = at.text()
	target := f.target(at)
	if more := target.Description; target != at && more != "" && rest(more) != rest(d.Description) {
		d.Description += "\n\n" + more
	}
	d.Enum = target.Enum
	if len(at.Examples) > 0 {
		if d.Example, err = toYAML(at.Examples[0], d.Name != ""); err != nil {
			return Doc{}, err
		}
	}
	d.Fields = f.fields(target, recursive, nil)
	return d, nil
}

// index is what may stand behind the name of a list: "[0]" or "[]".
var index = regexp.MustCompile(`(\[\d*\])+$`)

// Complete returns the paths that [Explain] takes and that start with prefix
// and go on to its next point, in the order of the manifest.
func Complete(prefix string, extensions ...v1.Extension) []string {
	var names []string
	parent := ""
	if i := strings.LastIndexByte(prefix, '.'); i >= 0 {
		parent = prefix[:i]
		d, err := Explain(parent, false, extensions...)
		if err != nil {
			return nil
		}
		for _, f := range d.Fields {
			names = append(names, parent+"."+f.Name)
		}
	} else {
		names = kindNames()
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

func kindNames() []string {
	var names []string
	for _, k := range v1.KindInfos() {
		names = append(names, k.Singular())
	}
	return names
}

func unknownKind(name string) error {
	e := &v1.NotFoundError{Kind: "Kind", Name: name}
	if near := v1.Nearest(name, kindNames()); near != "" {
		e.Candidates = []string{near}
		return e
	}
	return fmt.Errorf("%w: the kinds are %s", e, strings.Join(kindNames(), ", "))
}

// unknownField says that path has no field step below parent, whose node is at.
func (f *schemaFile) unknownField(path, parent, step string, at *node) error {
	e := &v1.NotFoundError{Kind: "Field", Name: path}
	target := f.target(at)
	if near := v1.Nearest(step, target.Properties.names()); near != "" {
		e.Candidates = []string{parent + "." + near}
		return e
	}
	if deeper := f.below(target, step); deeper != "" {
		e.Candidates = []string{parent + "." + deeper}
		return e
	}
	if len(target.Properties) == 0 {
		return fmt.Errorf("%w: %s is <%s> and has no fields", e, parent, at.typeName())
	}
	return fmt.Errorf("%w: the fields of %s are %s", e, parent, strings.Join(target.Properties.names(), ", "))
}

// below looks for a field one level further down, because "spec" is easily forgotten. It prefers the same name to a
// similar one.
func (f *schemaFile) below(object *node, step string) string {
	for _, p := range object.Properties {
		if f.target(p.node).Properties.get(step) != nil {
			return p.name + "." + step
		}
	}
	for _, p := range object.Properties {
		if near := v1.Nearest(step, f.target(p.node).Properties.names()); near != "" {
			return p.name + "." + near
		}
	}
	return ""
}

// fields lists the fields of an object. Types in open are not entered again, so
// that a type may hold itself.
func (f *schemaFile) fields(object *node, recursive bool, open []*node) []Field {
	if slices.Contains(open, object) {
		return nil
	}
	open = append(open, object)
	var out []Field
	for _, p := range object.Properties {
		text, deflt := p.node.text()
		target := f.target(p.node)
		field := Field{
			Name: p.name, Type: p.node.typeName(), Required: slices.Contains(object.Required, p.name),
			Description: firstSentence(text), Default: deflt, Enum: target.Enum,
		}
		if recursive {
			field.Fields = f.fields(target, true, open)
		}
		out = append(out, field)
	}
	return out
}

// rest returns a description without the name at its start.
func rest(s string) string {
	_, s, _ = strings.Cut(s, " ")
	return s
}

// firstSentence cuts a text after its first point that a space follows.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

func load(kind string, extensions []v1.Extension) (*schemaFile, error) {
	data, ok := For(kind)
	if !ok {
		return nil, fmt.Errorf("no schema of kind %s is built in: run go generate ./schemas", kind)
	}
	var f schemaFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("schema of kind %s: %w", kind, err)
	}
	for _, e := range extensions {
		if err := f.extend(e); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", e.Name, err)
		}
	}
	return &f, nil
}
