package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// source is a schema as schemas/ has it, in draft-07. A keyword that is not here fails the
// generation, so that none is lost.
type source struct {
	Schema      string             `json:"$schema"`
	ID          string             `json:"$id"`
	Comment     string             `json:"$comment"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Ref         string             `json:"$ref"`
	AllOf       []*source          `json:"allOf"`
	AnyOf       []*source          `json:"anyOf"`
	OneOf       []*source          `json:"oneOf"`
	Not         *source            `json:"not"`
	If          *source            `json:"if"`
	Then        *source            `json:"then"`
	Type        any                `json:"type"`
	Const       *string            `json:"const"`
	Enum        []string           `json:"enum"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	MinLength   *int64             `json:"minLength"`
	MaxLength   *int64             `json:"maxLength"`
	Pattern     string             `json:"pattern"`
	MinItems    *int64             `json:"minItems"`
	MinProps    *int64             `json:"minProperties"`
	Items       *source            `json:"items"`
	Default     json.RawMessage    `json:"default"`
	Examples    []json.RawMessage  `json:"examples"`
	Properties  map[string]*source `json:"properties"`
	Required    []string           `json:"required"`
	Additional  additional         `json:"additionalProperties"`

	PropertyNames *source             `json:"propertyNames"`
	Dependencies  map[string][]string `json:"dependencies"`
	Definitions   map[string]*source  `json:"definitions"`
}

// additional is false, or the schema of a map's values.
type additional struct{ *source }

func (a *additional) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &a.source)
}

// converter makes structural schemas: every field has its type in one place, what allOf,
// anyOf, oneOf, not, if and dependencies say becomes rules, and nothing is shared.
type converter struct {
	definitions map[string]*source
}

// jsonSchema is the definition of a JSON Schema, whose fields are anybody's.
const jsonSchema = "JSONSchema"

func yes() *bool { b := true; return &b }

func values(texts ...string) []apiext.JSON {
	var out []apiext.JSON
	for _, s := range texts {
		raw, _ := json.Marshal(s) // a text
		out = append(out, apiext.JSON{Raw: raw})
	}
	return out
}

// convert makes a structural schema of the one at a path, which errors name.
func (c *converter) convert(path string, s *source) (*apiext.JSONSchemaProps, error) {
	flat, err := c.flatten(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := &apiext.JSONSchemaProps{
		Description: describe(flat), Enum: values(flat.Enum...), Minimum: flat.Minimum, Maximum: flat.Maximum,
		MinLength: flat.MinLength, MaxLength: flat.MaxLength, Pattern: flat.Pattern, MinItems: flat.MinItems, MinProperties: flat.MinProps,
		Required: flat.Required,
	}
	if flat.Const != nil {
		flat.Type, out.Enum = "string", values(*flat.Const)
	}
	if flat.Not != nil && flat.Not.Const != nil {
		out.Not = &apiext.JSONSchemaProps{Enum: values(*flat.Not.Const)}
	}
	switch typ := flat.Type.(type) {
	case string:
		out.Type = typ
	default: // any value, or one of several types
		out.XPreserveUnknownFields, out.Pattern = yes(), ""
		return out, nil
	}
	switch {
	case out.Type == "array":
		items := &apiext.JSONSchemaProps{XPreserveUnknownFields: yes()}
		if flat.Items != nil {
			if items, err = c.convert(path+"[]", flat.Items); err != nil {
				return nil, err
			}
		}
		out.Items = &apiext.JSONSchemaPropsOrArray{Schema: items}
	case out.Type == "object" && len(flat.Properties) > 0:
		out.Properties = map[string]apiext.JSONSchemaProps{}
		for name, p := range flat.Properties {
			field, err := c.convert(path+"."+name, p)
			if err != nil {
				return nil, err
			}
			out.Properties[name] = *field
		}
	case out.Type == "object" && flat.Additional.source != nil:
		of, err := c.convert(path+"{}", flat.Additional.source)
		if err != nil {
			return nil, err
		}
		out.AdditionalProperties = &apiext.JSONSchemaPropsOrBool{Allows: true, Schema: of}
	case out.Type == "object":
		out.XPreserveUnknownFields = yes()
	}
	if flat.Definitions != nil { // a JSON Schema: its other fields are anybody's
		out.XPreserveUnknownFields = yes()
	}
	if flat.PropertyNames != nil {
		return nil, fmt.Errorf("%s: propertyNames has no structural form", path)
	}
	addRules(out, flat)
	return out, nil
}

// flatten resolves $ref and allOf into one schema.
func (c *converter) flatten(s *source) (*source, error) {
	flat := *s
	flat.Ref, flat.AllOf = "", nil
	parts := slices.Clone(s.AllOf)
	if s.Ref != "" {
		parts = append(parts, &source{Ref: s.Ref})
	}
	for _, p := range parts {
		if name, ok := strings.CutPrefix(p.Ref, "#/definitions/"); ok {
			if name == jsonSchema {
				p = &source{Definitions: map[string]*source{}} // marks it
			} else if p = c.definitions[name]; p == nil {
				return nil, fmt.Errorf("no definition %q", name)
			}
		}
		if p.If != nil {
			flat.AllOf = append(flat.AllOf, p)
			continue
		}
		add, err := c.flatten(p)
		if err != nil {
			return nil, err
		}
		if err := merge(&flat, add); err != nil {
			return nil, err
		}
	}
	return &flat, nil
}

// merge adds what another schema says of the same value.
func merge(flat, add *source) error {
	if flat.Properties != nil && add.Properties != nil || len(flat.AllOf) > 0 && len(add.AllOf) > 0 ||
		flat.AnyOf != nil && add.AnyOf != nil || flat.OneOf != nil && add.OneOf != nil || flat.Not != nil && add.Not != nil {
		return fmt.Errorf("two parts of allOf say the same keyword")
	}
	if flat.Description == "" {
		flat.Description = add.Description
	}
	if add.Type != nil {
		flat.Type = add.Type
	}
	if add.Properties != nil {
		flat.Properties = add.Properties
	}
	if add.Additional.source != nil {
		flat.Additional = add.Additional
	}
	if add.Items != nil {
		flat.Items = add.Items
	}
	if add.Definitions != nil {
		flat.Definitions = add.Definitions
	}
	if add.Dependencies != nil {
		flat.Dependencies = add.Dependencies
	}
	if add.AnyOf != nil {
		flat.AnyOf = add.AnyOf
	}
	if add.OneOf != nil {
		flat.OneOf = add.OneOf
	}
	if add.Not != nil {
		flat.Not = add.Not
	}
	flat.AllOf = append(flat.AllOf, add.AllOf...)
	flat.Required = append(slices.Clone(flat.Required), add.Required...)
	return nil
}

// describe is what kubectl explain shows of a field. A default is told and not set: the
// object stays as it was written.
func describe(s *source) string {
	text := s.Description
	if len(s.Default) > 0 {
		text += "\n\nDefault: " + strings.Trim(string(s.Default), `"`) + "."
	}
	if len(s.Examples) > 0 && s.Properties == nil {
		text += "\n\nExample: " + string(s.Examples[0])
	}
	return text
}
