package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

type rootKeyword struct{ keyword, providers string }

// rootKeywords are what a provider refuses at the top of a tool's arguments.
var rootKeywords = []rootKeyword{
	{"oneOf", "OpenAI and Anthropic refuse"},
	{"anyOf", "OpenAI and Anthropic refuse"},
	{"allOf", "OpenAI and Anthropic refuse"},
	{"not", "OpenAI refuses"},
	{"enum", "OpenAI refuses"},
	{"$ref", "OpenAI and Gemini refuse"},
}

// narrowKeywords are what a provider refuses or ignores anywhere in a tool's arguments:
// OpenAI when strict is asked for, Gemini in the parameters of a function.
var narrowKeywords = map[string]string{
	"allOf":                 "OpenAI (strict) and Gemini do not take",
	"not":                   "OpenAI (strict) and Gemini do not take",
	"if":                    "OpenAI (strict) and Gemini do not take",
	"dependentRequired":     "OpenAI (strict) and Gemini do not take",
	"dependentSchemas":      "OpenAI (strict) and Gemini do not take",
	"dependencies":          "OpenAI (strict) and Gemini do not take",
	"patternProperties":     "OpenAI (strict) and Gemini do not take",
	"propertyNames":         "OpenAI (strict) and Gemini do not take",
	"contains":              "OpenAI (strict) and Gemini do not take",
	"unevaluatedProperties": "OpenAI (strict) and Gemini do not take",
	"unevaluatedItems":      "OpenAI (strict) and Gemini do not take",
	"oneOf":                 "OpenAI (strict) does not take, and Gemini reads as anyOf,",
}

func schemaRoots(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if t.manifest == nil {
			continue
		}
		var root map[string]json.RawMessage
		_ = json.Unmarshal(t.manifest.Spec.InputSchema, &root)
		for _, k := range rootKeywords {
			if _, ok := root[k.keyword]; ok {
				found(t.at(v1.Pointer("/spec/input_schema", k.keyword), "%s %s at the top of the arguments", k.providers, k.keyword))
			}
		}
	}
}

func schemaKeywords(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if t.manifest == nil {
			continue
		}
		var schema any
		if json.Unmarshal(t.manifest.Spec.InputSchema, &schema) != nil {
			continue
		}
		first := map[string]string{} // where each keyword is found first
		walk(schema, "/spec/input_schema", true, first)
		for _, k := range slices.Sorted(maps.Keys(first)) {
			found(t.at(first[k], "%s %s", narrowKeywords[k], k))
		}
	}
}

// namedSchemas are keywords whose members are schemas by names of people's own.
var namedSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// values are keywords whose value is no schema.
var values = []string{"enum", "const", "default", "examples", "required", "type", "dependentRequired"}

// walk notes the keywords of a schema that providers do not take. What stands at the root
// is the rule schema-root's.
func walk(schema any, path string, root bool, first map[string]string) {
	switch schema := schema.(type) {
	case []any:
		for i, item := range schema {
			walk(item, v1.Pointer(path, strconv.Itoa(i)), false, first)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(schema)) {
			at := v1.Pointer(path, k)
			if narrowKeywords[k] != "" && first[k] == "" && !(root && slices.ContainsFunc(rootKeywords, func(r rootKeyword) bool { return r.keyword == k })) {
				first[k] = at
			}
			if members, ok := schema[k].(map[string]any); ok && slices.Contains(namedSchemas, k) {
				for _, name := range slices.Sorted(maps.Keys(members)) {
					walk(members[name], v1.Pointer(at, name), false, first)
				}
			} else if !slices.Contains(values, k) {
				walk(schema[k], at, false, first)
			}
		}
	}
}
