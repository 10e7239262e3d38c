package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func yes() *bool { b := true; return &b }

// count is a bound of a length, which 0 stands for none of.
func count(n int) *int64 {
	if n == 0 {
		return nil
	}
	c := int64(n)
	return &c
}

func values(texts ...string) []apiext.JSON {
	var out []apiext.JSON
	for _, s := range texts {
		raw, _ := json.Marshal(s) // a text
		out = append(out, apiext.JSON{Raw: raw})
	}
	return out
}

// convert makes a structural schema of the one at a path, which errors name: every field has
// its type in one place, and what anyOf, oneOf, not, if and dependencies say becomes rules.
func convert(path string, s *schema) (*apiext.JSONSchemaProps, error) {
	out := &apiext.JSONSchemaProps{
		Description: describe(s), Enum: values(s.Enum...), Minimum: s.Minimum, Maximum: s.Maximum,
		MinLength: count(s.MinLength), MaxLength: count(s.MaxLength), Pattern: s.Pattern, MinItems: count(s.MinItems), MaxItems: count(s.MaxItems), MinProperties: count(s.MinProps),
		Required: s.Required,
	}
	typ, properties := s.Type, s.Properties
	for _, p := range s.AllOf {
		if p.If == nil { // the form of a JSON Schema
			typ, properties = p.Type, p.Properties
		}
	}
	if s.Const != "" {
		typ, out.Enum = "string", values(s.Const)
	}
	if s.Not != nil && s.Not.Const != "" {
		out.Not = &apiext.JSONSchemaProps{Enum: values(s.Not.Const)}
	}
	out.Type, _ = typ.(string)
	of, isMap := s.Additional.(*schema)
	switch {
	case s.PropertyNames != nil:
		return nil, fmt.Errorf("%s: propertyNames has no structural form", path)
	case out.Type == "": // any value, or one of several types
		out.XPreserveUnknownFields, out.Pattern = yes(), ""
		return out, nil
	case out.Type == "array":
		items, err := convert(path+"[]", s.Items)
		if err != nil {
			return nil, err
		}
		out.Items = &apiext.JSONSchemaPropsOrArray{Schema: items}
	case out.Type == "object" && len(properties.All()) > 0:
		out.Properties = map[string]apiext.JSONSchemaProps{}
		for _, p := range properties.All() {
			field, err := convert(path+"."+p.Name, p.Schema)
			if err != nil {
				return nil, err
			}
			out.Properties[p.Name] = *field
		}
	case out.Type == "object" && isMap:
		value, err := convert(path+"{}", of)
		if err != nil {
			return nil, err
		}
		out.AdditionalProperties = &apiext.JSONSchemaPropsOrBool{Allows: true, Schema: value}
	case out.Type == "object":
		out.XPreserveUnknownFields = yes()
	}
	if s.Open {
		out.XPreserveUnknownFields = yes()
	}
	addRules(out, s)
	return out, nil
}

// describe is what kubectl explain shows of a field. A default is told and not set: the
// object stays as it was written.
func describe(s *schema) string {
	text := s.Description
	if len(s.Default) > 0 {
		text += "\n\nDefault: " + strings.Trim(indent(s.Default, 10), `"`) + "."
	}
	fields := s.Properties
	for _, p := range s.AllOf {
		fields = cmp.Or(p.Properties, fields)
	}
	if len(s.Examples) > 0 && fields == nil {
		text += "\n\nExample: " + indent(s.Examples[0], 12)
	}
	return text
}

// indent writes a value as it stands in the file of its schema: on one line, it would change
// every definition.
func indent(value json.RawMessage, by int) string {
	var b bytes.Buffer
	_ = json.Indent(&b, value, strings.Repeat(" ", by), "  ") // it was made from a value
	return b.String()
}
