package schemagen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// The schemas use draft-07 and not 2020-12: yaml-language-server, which most editors use, supports
// 2020-12 only since release 1.20 of 2026, and nothing here needs a newer draft. In draft-07 a $ref
// hides its sibling keywords, so a field with its own text wraps its $ref in allOf, and shared
// types are under definitions, the name of $defs before 2019-09.
const (
	draft   = "http://json-schema.org/draft-07/schema#"
	baseURL = "https://toolctl.dev/schemas/"
	notice  = "Generated from the Go source of api/v1 by go generate ./schemas; do not edit."
)

// Schema is a JSON Schema. Its members are written in the order of the struct.
type Schema struct {
	Schema      string            `json:"$schema,omitempty"`
	ID          string            `json:"$id,omitempty"`
	Comment     string            `json:"$comment,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Ref         string            `json:"$ref,omitempty"`
	AllOf       []*Schema         `json:"allOf,omitempty"`
	AnyOf       []*Schema         `json:"anyOf,omitempty"`
	OneOf       []*Schema         `json:"oneOf,omitempty"`
	Not         *Schema           `json:"not,omitempty"`
	If          *Schema           `json:"if,omitempty"`
	Then        *Schema           `json:"then,omitempty"`
	Type        any               `json:"type,omitempty"`
	Const       string            `json:"const,omitempty"`
	Enum        []string          `json:"enum,omitempty"`
	Minimum     *float64          `json:"minimum,omitempty"`
	Maximum     *float64          `json:"maximum,omitempty"`
	MinLength   int               `json:"minLength,omitempty"`
	MaxLength   int               `json:"maxLength,omitempty"`
	Pattern     string            `json:"pattern,omitempty"`
	MinItems    int               `json:"minItems,omitempty"`
	MaxItems    int               `json:"maxItems,omitempty"`
	MinProps    int               `json:"minProperties,omitempty"`
	Items       *Schema           `json:"items,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Examples    []json.RawMessage `json:"examples,omitempty"`
	Properties  *Members          `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
	Additional  any               `json:"additionalProperties,omitempty"`

	PropertyNames *Schema             `json:"propertyNames,omitempty"`
	Dependencies  map[string][]string `json:"dependencies,omitempty"`
	Definitions   *Members            `json:"definitions,omitempty"`

	// Open marks a field that accepts any JSON Schema, in schemas without references.
	Open bool `json:"-"`
}

// Members is a JSON object of schemas that keeps the order of its members.
type Members []Member

// Member is one of [Members].
type Member struct {
	Name   string
	Schema *Schema
}

// All returns the members in order.
func (m *Members) All() []Member {
	if m == nil {
		return nil
	}
	return *m
}

// Get returns the member with a name, or an empty schema if it is absent.
func (m *Members) Get(name string) *Schema {
	for _, e := range m.All() {
		if e.Name == name {
			return e.Schema
		}
	}
	return &Schema{}
}

// MarshalJSON is [json.Marshaler].
func (m *Members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range *m {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsontext.Of(e.Name))
		b.WriteByte(':')
		b.Write(jsontext.Of(e.Schema))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaFiles returns a file for each kind, and one file for all kinds.
func schemaFiles(src *source) ([]file, error) {
	var files []file
	add := func(name string, s *Schema, defs *builder) error {
		s.Schema, s.ID, s.Comment = draft, baseURL+name, notice
		if len(defs.defs) > 0 {
			s.Definitions = &defs.defs
		}
		var b bytes.Buffer
		if err := json.Indent(&b, jsontext.Of(s), "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
		files = append(files, file{"schemas/" + name, b.Bytes()})
		return nil
	}
	for _, kind := range v1.Kinds() {
		b := &builder{src: src, done: map[string]bool{}}
		s, err := b.kind(kind)
		if err != nil {
			return nil, err
		}
		if err := add(strings.ToLower(kind)+".json", s, b); err != nil {
			return nil, err
		}
	}
	b := &builder{src: src, done: map[string]bool{}}
	all, err := b.all()
	if err != nil {
		return nil, err
	}
	return files, add("all.json", all, b)
}

// builder makes the schemas of one file and collects their definitions.
type builder struct {
	src  *source
	defs Members
	done map[string]bool
	// inline writes every type in place. done then holds the enclosing types.
	inline bool
}

func ref(name string) *Schema { return &Schema{Ref: "#/definitions/" + name} }

// kind returns the schema of a kind, including its own apiVersion and kind.
func (b *builder) kind(kind string) (*Schema, error) {
	s, err := b.object(kind)
	if err != nil {
		return nil, err
	}
	s.Title = kind
	for _, p := range *s.Properties {
		switch p.Name {
		case "apiVersion":
			p.Schema.Const, p.Schema.MinLength, p.Schema.Examples = v1.APIVersion, 0, nil
		case "kind":
			p.Schema.Const, p.Schema.MinLength, p.Schema.Examples = kind, 0, nil
		}
	}
	*s.Properties = append(*s.Properties, Member{"status", &Schema{Description: "status is the state of the object that 'list -o yaml' prints; toolctl ignores it in manifests.", Type: "object"}})
	return s, nil
}

// all returns the schema of a file of any kind, and of a List of such objects.
func (b *builder) all() (*Schema, error) {
	var kinds []*Schema
	for _, kind := range v1.Kinds() {
		b.done[kind] = true
		b.defs = append(b.defs, Member{Name: kind})
		at := len(b.defs) - 1
		s, err := b.kind(kind)
		if err != nil {
			return nil, err
		}
		b.defs[at].Schema = s
		kinds = append(kinds, ref(kind))
	}
	b.defs = append(b.defs, Member{"PromptKit", promptKit()})
	kinds = append(kinds, ref("PromptKit"))
	b.defs = append(b.defs, Member{"List", &Schema{
		Title: "List", Description: "List holds objects of any kind.", Type: "object",
		Properties: &Members{
			{"apiVersion", &Schema{Description: "apiVersion is the version of the list's format.", Type: "string"}},
			{"kind", &Schema{Description: "kind is List.", Type: "string", Const: "List"}},
			{"metadata", &Schema{Description: "toolctl ignores metadata.", Type: "object"}},
			{"items", &Schema{Description: "items are the objects.", Type: "array", Items: &Schema{OneOf: kinds}}},
		},
		Required: []string{"apiVersion", "kind", "items"}, Additional: false,
	}})
	return &Schema{
		Title: "toolctl manifest", Description: "A manifest of any kind, or a List of them.",
		Type: "object", OneOf: append(kinds[:len(kinds):len(kinds)], ref("List")),
	}, nil
}

func (b *builder) object(name string) (*Schema, error) {
	t := b.src.types[name]
	text, blocks := typeComment(t.doc)
	s := &Schema{Description: text, Type: "object", Properties: &Members{}, Additional: false}
	for _, block := range blocks {
		raw, err := toJSON(block)
		if err != nil {
			return nil, fmt.Errorf("%s: the example of %s: %w", t.pos, name, err)
		}
		s.Examples = append(s.Examples, raw)
	}
	for _, f := range t.fields {
		p, err := b.field(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.pos, err)
		}
		*s.Properties = append(*s.Properties, Member{f.name, p})
		if f.mustHave {
			s.Required = append(s.Required, f.name)
		}
	}
	refine(name, s)
	return s, nil
}

func (b *builder) field(f *field) (*Schema, error) {
	s, err := b.value(f.typ)
	if err != nil {
		return nil, err
	}
	if s.Ref != "" {
		s = &Schema{AllOf: []*Schema{s}}
	}
	s.Description, s.Minimum, s.Maximum = f.text, f.min, f.max
	switch {
	case f.typ.kind == kindArray:
		s.Items.Enum, s.Items.Pattern = f.oneof, f.pattern
		if f.single {
			s.Type, s.Pattern = []string{"array", "string"}, "^("+strings.Join(f.oneof, "|")+")$"
		}
	case f.typ.kind == kindMap && f.oneof != nil:
		s.Additional = &Schema{Type: kindString, Enum: f.oneof}
	default:
		s.Enum, s.Pattern = f.oneof, f.pattern
	}
	if f.mustHave { // an empty value counts as missing
		switch f.typ.kind {
		case kindString:
			s.MinLength = 1
		case kindArray:
			s.MinItems = 1
		case kindMap:
			s.MinProps = 1
		}
	}
	if s.Enum != nil {
		s.MinLength = 0
	}
	if f.deflt != "" {
		if !f.hasDefaultValue() {
			// explain removes this paragraph again.
			s.Description += "\n\nDefault: " + f.deflt + "."
		} else if s.Default, err = toJSON(f.deflt); err != nil {
			return nil, err
		}
	}
	if f.example != "" {
		raw, err := toJSON(f.example)
		if err != nil {
			return nil, err
		}
		s.Examples = []json.RawMessage{raw}
	}
	return s, nil
}

func (b *builder) value(t valueType) (*Schema, error) {
	switch {
	case t.kind == kindSchema && b.inline:
		return &Schema{Open: true}, nil
	case t.kind == kindObject && b.inline:
		if b.done[t.object] {
			return nil, fmt.Errorf("type %s holds itself, which has no form without references", t.object)
		}
		b.done[t.object] = true
		defer delete(b.done, t.object)
		return b.object(t.object)
	}
	switch t.kind {
	case kindAny:
		return &Schema{}, nil
	case kindSchema:
		err := b.define(kindSchema, func() (*Schema, error) {
			return jsonSchema(), nil
		})
		return ref(kindSchema), err
	case kindArray:
		items, err := b.value(*t.elem)
		return &Schema{Type: "array", Items: items}, err
	case kindMap:
		vals, err := b.value(*t.elem)
		return &Schema{Type: "object", Additional: vals}, err
	case kindObject:
		err := b.define(t.object, func() (*Schema, error) { return b.object(t.object) })
		return ref(t.object), err
	}
	return &Schema{Type: t.kind}, nil
}

// define adds a definition once. It reserves the place before it builds the definition, so that
// definitions are in the order of their first use and a type may contain itself.
func (b *builder) define(name string, build func() (*Schema, error)) error {
	if b.done[name] {
		return nil
	}
	b.done[name] = true
	at := len(b.defs)
	b.defs = append(b.defs, Member{Name: name})
	s, err := build()
	b.defs[at].Schema = s
	return err
}
