package executors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/schema"
)

// use is a field of a manifest that uses arguments.
type use struct {
	path           string
	fields, needed []string // all arguments that the field uses, and the required ones
	null           bool     // a missing argument becomes null instead of an error
}

// reader is a template that reports the arguments it uses.
type reader interface{ Fields() []string }

// useOf returns the use of a template.
func useOf(path string, t interface {
	reader
	Needed() []string
}) use {
	return use{path: path, fields: t.Fields(), needed: t.Needed()}
}

// valuesOf returns the arguments of a call as templates take them, with every digit of their numbers.
func valuesOf(args json.RawMessage) (values map[string]any, err error) {
	if len(args) > 0 {
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.UseNumber()
		err = dec.Decode(&values)
	}
	return values, err
}

// allUsed reports whether a schema allows no arguments other than the used ones.
func allUsed(schema json.RawMessage, used map[string]bool) bool {
	var root map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || string(root["additionalProperties"]) != "false" || root["patternProperties"] != nil {
		return false
	}
	_ = json.Unmarshal(root["properties"], &properties) // invalid schemas are reported elsewhere
	for name := range properties {
		if !used[name] {
			return false
		}
	}
	return true
}

// arguments compares the arguments that fields use with the input schema. An argument that the schema
// excludes is an error, since no call can have it; a required use of an optional argument is a warning.
func arguments(t *v1.Tool, uses []use) []v1.Violation {
	var root map[string]json.RawMessage
	if len(uses) == 0 || json.Unmarshal(t.Spec.InputSchema, &root) != nil {
		return nil
	}
	var properties, patterns map[string]json.RawMessage
	var required []string
	_ = json.Unmarshal(root["properties"], &properties) // invalid schemas are reported elsewhere
	_ = json.Unmarshal(root["patternProperties"], &patterns)
	_ = json.Unmarshal(root["required"], &required)
	elsewhere := slices.ContainsFunc([]string{schema.Ref, schema.DynamicRef, "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependentRequired", "dependencies"}, func(k string) bool { return root[k] != nil })
	closed := string(root["additionalProperties"]) == "false" || string(root["unevaluatedProperties"]) == "false" && !elsewhere
	var found []v1.Violation
	for _, u := range uses {
		for _, name := range u.fields {
			property, declared := properties[name]
			matched := slices.ContainsFunc(slices.Collect(maps.Keys(patterns)), func(p string) bool {
				re, err := regexp.Compile(p)
				return err != nil || re.MatchString(name)
			})
			var with struct {
				Default json.RawMessage `json:"default"`
			}
			_ = json.Unmarshal(property, &with)
			switch {
			case string(property) == "false", closed && !declared && !matched:
				f := v1.Violation{Path: u.path, Expected: "an argument of input_schema", Got: name, Source: t.Field(u.path),
					Message: fmt.Sprintf("the argument %q is never set: input_schema does not allow it", name)}
				if near := v1.Nearest(name, slices.Sorted(maps.Keys(properties))); near != "" && near != name {
					f.Message += fmt.Sprintf("; did you mean %q?", near)
				}
				found = append(found, f)
			case slices.Contains(u.needed, name) && !elsewhere && !slices.Contains(required, name) && with.Default == nil:
				message := fmt.Sprintf("calls without the argument %q fail here: add it to required, give it a default, or write {{if .%s}}…{{end}} around it", name, name)
				if u.null {
					message = fmt.Sprintf("calls without the argument %q send null for it: add it to required, give it a default, or leave it out of the body with omit_empty: true", name)
				}
				found = append(found, v1.Violation{Severity: v1.SeverityWarning, Path: u.path, Expected: "an argument that every call has", Got: name, Source: t.Field(u.path), Message: message})
			}
		}
	}
	return found
}
