package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// schemaFile is the schema of a kind, as far as [Explain] reads it.
type schemaFile struct {
	node
	Definitions map[string]*node
}

func (f *schemaFile) UnmarshalJSON(data []byte) error {
	var more struct {
		Definitions map[string]*node `json:"definitions"`
		Defs        map[string]*node `json:"$defs"` // since 2019-09
	}
	if err := errors.Join(json.Unmarshal(data, &f.node), json.Unmarshal(data, &more)); err != nil {
		return err
	}
	if f.Definitions = more.Definitions; f.Definitions == nil {
		f.Definitions = map[string]*node{}
	}
	maps.Copy(f.Definitions, more.Defs)
	return nil
}

// node is a schema inside a file.
type node struct {
	Description string            `json:"description"`
	Ref         string            `json:"$ref"`
	AllOf       []*node           `json:"allOf"` // a $ref that has a description of its own
	Type        any               `json:"type"`
	Enum        texts             `json:"enum"`
	Items       *node             `json:"items"`
	Default     json.RawMessage   `json:"default"`
	Examples    []json.RawMessage `json:"examples"`
	Properties  properties        `json:"properties"`
	Required    []string          `json:"required"`
	Values      valueNode         `json:"additionalProperties"`
}

// valueNode is the schema of a map's values; empty when there is none.
type valueNode struct{ *node }

func (v *valueNode) UnmarshalJSON(data []byte) error {
	if string(data) == "false" || string(data) == "true" {
		return nil
	}
	return json.Unmarshal(data, &v.node)
}

// UnmarshalJSON reads a schema, which may be true or false.
func (n *node) UnmarshalJSON(data []byte) error {
	if string(data) == "false" || string(data) == "true" {
		return nil
	}
	type plain node
	return json.Unmarshal(data, (*plain)(n))
}

// texts are values as people write them: strings without quotes, everything else as JSON.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var values []json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	for _, v := range values {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		*t = append(*t, s)
	}
	return nil
}

type property struct {
	name string
	node *node
}

// properties are the fields of an object in the order of the file.
type properties []property

func (p *properties) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil { // the brace
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		n := new(node)
		if err := dec.Decode(n); err != nil {
			return err
		}
		s, _ := name.(string) // keys are strings
		*p = append(*p, property{s, n})
	}
	return nil
}

func (p properties) get(name string) *node {
	for _, e := range p {
		if e.name == name {
			return e.node
		}
	}
	return nil
}

func (p properties) names() []string {
	names := make([]string, len(p))
	for i, e := range p {
		names[i] = e.name
	}
	return names
}

// ref returns the name of the definition that the node is, or "".
func (n *node) ref() string {
	ref := n.Ref
	if len(n.AllOf) > 0 {
		ref = n.AllOf[0].Ref
	}
	return strings.TrimPrefix(ref, definitions)
}

// elem returns the schema of a list's items or a map's values; nil for others.
func (n *node) elem() *node {
	if n.Items != nil {
		return n.Items
	}
	return n.Values.node
}

// target follows lists, maps and references to the schema that holds the fields
// or the values. Our references lead to objects; those of an extension may lead anywhere, so
// not many are followed.
func (f *schemaFile) target(n *node) *node {
	const most = 32
	for range most {
		next := n.elem()
		if name := n.ref(); name != "" {
			next = f.Definitions[name]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func (n *node) typeName() string {
	switch {
	case n.ref() != "":
		return n.ref()
	case n.Items != nil:
		return "[]" + n.Items.typeName()
	case n.Values.node != nil:
		return "map[string]" + n.Values.typeName()
	}
	if t, ok := n.Type.(string); ok {
		return t
	}
	return "any"
}

// text returns the description and the default. The generator writes a default
// that is not a JSON value as the last paragraph of the description.
func (n *node) text() (description, deflt string) {
	description, deflt, _ = strings.Cut(n.Description, "\n\nDefault: ")
	deflt = strings.TrimSuffix(deflt, ".")
	if n.Default != nil {
		if s, err := toYAML(n.Default, true); err == nil { // our own JSON
			deflt = s
		}
	}
	return description, deflt
}

// toYAML writes JSON as YAML, keeping the order of keys; flow puts it on one line.
func toYAML(data json.RawMessage, flow bool) (string, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil { // JSON is YAML
		return "", err
	}
	restyle(&n, flow)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func restyle(n *yaml.Node, flow bool) {
	n.Style = 0
	if flow && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		restyle(c, flow)
	}
}
