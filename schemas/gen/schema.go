package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// The schemas are draft-07, not 2020-12: yaml-language-server, which most editors
// use, reads 2020-12 since its release 1.20 of 2026 and draft-07 since ever, and
// nothing here needs a newer draft. In draft-07 a $ref hides what stands beside
// it, so a field with a text of its own wraps its $ref in allOf, and shared types
// are under definitions, the name of $defs before 2019-09.
const (
	draft   = "http://json-schema.org/draft-07/schema#"
	baseURL = "https://toolctl.dev/schemas/"
	notice  = "Generated from the Go source of api/v1 by go generate ./schemas; do not edit."
)

// schema is a JSON Schema; its members are written in this order.
type schema struct {
	Schema      string            `json:"$schema,omitempty"`
	ID          string            `json:"$id,omitempty"`
	Comment     string            `json:"$comment,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Ref         string            `json:"$ref,omitempty"`
	AllOf       []*schema         `json:"allOf,omitempty"`
	AnyOf       []*schema         `json:"anyOf,omitempty"`
	OneOf       []*schema         `json:"oneOf,omitempty"`
	Not         *schema           `json:"not,omitempty"`
	If          *schema           `json:"if,omitempty"`
	Then        *schema           `json:"then,omitempty"`
	Type        any               `json:"type,omitempty"`
	Const       string            `json:"const,omitempty"`
	Enum        []string          `json:"enum,omitempty"`
	Minimum     *float64          `json:"minimum,omitempty"`
	Maximum     *float64          `json:"maximum,omitempty"`
	MinLength   int               `json:"minLength,omitempty"`
	MaxLength   int               `json:"maxLength,omitempty"`
	Pattern     string            `json:"pattern,omitempty"`
	MinItems    int               `json:"minItems,omitempty"`
	MinProps    int               `json:"minProperties,omitempty"`
	Items       *schema           `json:"items,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Examples    []json.RawMessage `json:"examples,omitempty"`
	Properties  *members          `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
	Additional  any               `json:"additionalProperties,omitempty"`

	PropertyNames *schema             `json:"propertyNames,omitempty"`
	Dependencies  map[string][]string `json:"dependencies,omitempty"`
	Definitions   *members            `json:"definitions,omitempty"`
}

// members is a JSON object of schemas that keeps its order.
type members []member

type member struct {
	name   string
	schema *schema
}

func (m *members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range *m {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsontext.Of(e.name))
		b.WriteByte(':')
		b.Write(jsontext.Of(e.schema))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaFiles returns a file for each kind, and one for all of them.
func schemaFiles(src *source) ([]file, error) {
	var files []file
	add := func(name string, s *schema, defs *builder) error {
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

// builder makes the schemas of one file and gathers their definitions.
type builder struct {
	src  *source
	defs members
	done map[string]bool
}

func ref(name string) *schema { return &schema{Ref: "#/definitions/" + name} }

// kind returns the schema of a kind, which knows its own apiVersion and kind.
func (b *builder) kind(kind string) (*schema, error) {
	s, err := b.object(kind)
	if err != nil {
		return nil, err
	}
	s.Title = kind
	for _, p := range *s.Properties {
		switch p.name {
		case "apiVersion":
			p.schema.Const, p.schema.MinLength, p.schema.Examples = v1.APIVersion, 0, nil
		case "kind":
			p.schema.Const, p.schema.MinLength, p.schema.Examples = kind, 0, nil
		}
	}
	*s.Properties = append(*s.Properties, member{"status", &schema{Description: "status is what 'list -o yaml' says of the object; it is not read.", Type: "object"}})
	return s, nil
}

// all returns the schema of a file of any kind, and of a List of such objects.
func (b *builder) all() (*schema, error) {
	var kinds []*schema
	for _, kind := range v1.Kinds() {
		b.done[kind] = true
		b.defs = append(b.defs, member{name: kind})
		at := len(b.defs) - 1
		s, err := b.kind(kind)
		if err != nil {
			return nil, err
		}
		b.defs[at].schema = s
		kinds = append(kinds, ref(kind))
	}
	b.defs = append(b.defs, member{"PromptKit", promptKit()})
	kinds = append(kinds, ref("PromptKit"))
	b.defs = append(b.defs, member{"List", &schema{
		Title: "List", Description: "List holds objects of any kind.", Type: "object",
		Properties: &members{
			{"apiVersion", &schema{Description: "apiVersion is the version of the list's format.", Type: "string"}},
			{"kind", &schema{Description: "kind is List.", Type: "string", Const: "List"}},
			{"metadata", &schema{Description: "metadata is not read.", Type: "object"}},
			{"items", &schema{Description: "items are the objects.", Type: "array", Items: &schema{OneOf: kinds}}},
		},
		Required: []string{"apiVersion", "kind", "items"}, Additional: false,
	}})
	return &schema{
		Title: "toolctl manifest", Description: "A manifest of any kind, or a List of them.",
		Type: "object", OneOf: append(kinds[:len(kinds):len(kinds)], ref("List")),
	}, nil
}

func (b *builder) object(name string) (*schema, error) {
	t := b.src.types[name]
	text, blocks := typeComment(t.doc)
	s := &schema{Description: text, Type: "object", Properties: &members{}, Additional: false}
	for _, block := range blocks {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(block), &n); err != nil {
			return nil, fmt.Errorf("%s: the example of %s: %w", t.pos, name, err)
		}
		raw, err := toJSON(&n)
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
		*s.Properties = append(*s.Properties, member{f.name, p})
		if f.mustHave {
			s.Required = append(s.Required, f.name)
		}
	}
	refine(name, s)
	return s, nil
}

func (b *builder) field(f *field) (*schema, error) {
	s, err := b.value(f.typ)
	if err != nil {
		return nil, err
	}
	if s.Ref != "" {
		s = &schema{AllOf: []*schema{s}}
	}
	s.Description, s.Minimum, s.Maximum = f.text, f.min, f.max
	switch {
	case f.typ.kind == kindArray:
		s.Items.Enum = f.oneof
		if f.single {
			s.Type, s.Pattern = []string{"array", "string"}, "^("+strings.Join(f.oneof, "|")+")$"
		}
	case f.typ.kind == kindMap && f.oneof != nil:
		s.Additional = &schema{Type: kindString, Enum: f.oneof}
	default:
		s.Enum = f.oneof
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
		if n := b.src.defaultValue(f); n == nil {
			// explain cuts this paragraph off again.
			s.Description += "\n\nDefault: " + f.deflt + "."
		} else if s.Default, err = toJSON(n); err != nil {
			return nil, err
		}
	}
	if f.example != "" {
		n, err := b.src.parseValue(f.example, f)
		if err != nil {
			return nil, err
		}
		raw, err := toJSON(n)
		if err != nil {
			return nil, err
		}
		s.Examples = []json.RawMessage{raw}
	}
	return s, nil
}

func (b *builder) value(t valueType) (*schema, error) {
	switch t.kind {
	case kindAny:
		return &schema{}, nil
	case kindSchema:
		err := b.define(kindSchema, func() (*schema, error) {
			return jsonSchema(), nil
		})
		return ref(kindSchema), err
	case kindArray:
		items, err := b.value(*t.elem)
		return &schema{Type: "array", Items: items}, err
	case kindMap:
		vals, err := b.value(*t.elem)
		return &schema{Type: "object", Additional: vals}, err
	case kindObject:
		err := b.define(t.object, func() (*schema, error) { return b.object(t.object) })
		return ref(t.object), err
	}
	return &schema{Type: t.kind}, nil
}

// define adds a definition once. It takes its place before it is built, so that
// definitions stand in the order of their first use and a type may hold itself.
func (b *builder) define(name string, build func() (*schema, error)) error {
	if b.done[name] {
		return nil
	}
	b.done[name] = true
	at := len(b.defs)
	b.defs = append(b.defs, member{name: name})
	s, err := build()
	b.defs[at].schema = s
	return err
}
