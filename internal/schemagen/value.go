package schemagen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"toolctl.dev/toolctl/pkg/manifest"
)

// parseValue reads one YAML value and holds it to the type of a field.
func (src *source) parseValue(text string, f *field) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("no value")
	}
	n := doc.Content[0]
	if err := src.fits(n, f.typ); err != nil {
		return nil, err
	}
	return n, f.fitsRules(n)
}

// defaultValue returns the default of a field as a value; nil when there is
// none, or when it is prose.
func (src *source) defaultValue(f *field) *yaml.Node {
	if f.deflt == "" {
		return nil
	}
	n, err := src.parseValue(f.deflt, f)
	if err != nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && (f.typ.kind == kindAny || strings.Contains(n.Value, " ")) {
		return nil
	}
	return n
}

// fits reports why a value is not of the type.
func (src *source) fits(n *yaml.Node, t valueType) error {
	switch t.kind {
	case kindAny:
		return nil
	case kindSchema:
		if n.Kind == yaml.MappingNode || n.Tag == "!!bool" {
			return nil
		}
	case kindArray:
		if n.Kind != yaml.SequenceNode {
			break
		}
		for i, item := range n.Content {
			if err := src.fits(item, *t.elem); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	case kindMap, kindObject:
		if n.Kind == yaml.MappingNode {
			return src.fitsObject(n, t)
		}
	default:
		tags := map[string][]string{kindString: {"!!str"}, kindInteger: {"!!int"}, kindNumber: {"!!int", "!!float"}, kindBoolean: {"!!bool"}}
		if n.Kind == yaml.ScalarNode && slices.Contains(tags[t.kind], n.Tag) {
			return nil
		}
	}
	return fmt.Errorf("expected %s, got %s", t, strings.TrimPrefix(n.ShortTag(), "!!"))
}

func (src *source) fitsObject(n *yaml.Node, t valueType) error {
	for i := 0; i < len(n.Content); i += 2 {
		key, elem := n.Content[i].Value, t.elem
		if t.kind == kindObject {
			fs := src.types[t.object].fields
			j := slices.IndexFunc(fs, func(f *field) bool { return f.name == key })
			if j < 0 {
				return fmt.Errorf("%s has no field %q", t.object, key)
			}
			elem = &fs[j].typ
		}
		if err := src.fits(n.Content[i+1], *elem); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// fitsRules holds a value to the check tag of the field.
func (f *field) fitsRules(n *yaml.Node) error {
	if f.oneof != nil && n.Kind == yaml.ScalarNode && !slices.Contains(f.oneof, n.Value) {
		return fmt.Errorf("expected one of %s, got %q", strings.Join(f.oneof, ", "), n.Value)
	}
	var num float64
	if (f.min != nil || f.max != nil) && n.Decode(&num) == nil {
		if f.min != nil && num < *f.min || f.max != nil && num > *f.max {
			return fmt.Errorf("%s is out of bounds", n.Value)
		}
	}
	return nil
}

// toJSON returns a YAML value as JSON, with its keys in the order they stand.
func toJSON(text string) (json.RawMessage, error) {
	raw, violations := manifest.ToJSON("", []byte(text))
	for _, v := range violations {
		if !v.IsWarning() {
			return nil, errors.New(v.Message)
		}
	}
	return raw, nil
}
