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

// kindTags lists the YAML tags that a kind accepts. A field of kind any accepts every value.
var kindTags = map[string][]string{
	kindString: {"!!str"}, kindInteger: {"!!int"}, kindNumber: {"!!int", "!!float"}, kindBoolean: {"!!bool"},
	kindSchema: {"!!map", "!!bool"}, kindArray: {"!!seq"}, kindMap: {"!!map"}, kindObject: {"!!map"},
}

// parse reads one YAML value of the kind of the field. A test validates examples and defaults against the schema.
func (f *field) parse(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("no value")
	}
	n := doc.Content[0]
	if tags := kindTags[f.typ.kind]; tags != nil && !slices.Contains(tags, n.ShortTag()) {
		return nil, fmt.Errorf("expected %s, got %s", f.typ, strings.TrimPrefix(n.ShortTag(), "!!"))
	}
	return n, nil
}

// hasDefaultValue reports whether the default of a field is a value. A default may also be absent, or prose.
func (f *field) hasDefaultValue() bool {
	n, err := f.parse(f.deflt)
	return err == nil && (n.ShortTag() != "!!str" || f.typ.kind != kindAny && !strings.Contains(n.Value, " "))
}

// toJSON returns a YAML value as JSON, with its keys in written order.
func toJSON(text string) (json.RawMessage, error) {
	raw, violations := manifest.ToJSON("", []byte(text))
	for _, v := range violations {
		if !v.IsWarning() {
			return nil, errors.New(v.Message)
		}
	}
	return raw, nil
}
