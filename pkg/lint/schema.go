package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

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
		walk(schema, "/spec/input_schema", first)
		for _, k := range slices.Sorted(maps.Keys(first)) {
			found(t.at(first[k], "%s %s", narrowKeywords[k], k))
		}
	}
}

// namedSchemas are keywords whose members are schemas by names of people's own.
var namedSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// values are keywords whose value is no schema.
var values = []string{"enum", "const", "default", "example", "examples", "required", "type", "dependentRequired", "discriminator", "xml", "externalDocs"}

// walk notes the keywords of a schema that providers do not take. What stands at the root
// is the rule schema-root's.
func walk(schema any, path string, first map[string]string) {
	eachKeyword(schema, path, func(k, at string) {
		root := at == v1.Pointer(path, k) && slices.ContainsFunc(rootKeywords, func(r rootKeyword) bool { return r.keyword == k })
		if narrowKeywords[k] != "" && first[k] == "" && !root {
			first[k] = at
		}
	})
}

// eachKeyword calls f with each keyword of a schema and of those within it, and with where it stands.
func eachKeyword(schema any, path string, f func(keyword, at string)) {
	switch schema := schema.(type) {
	case []any:
		for i, item := range schema {
			eachKeyword(item, v1.Pointer(path, strconv.Itoa(i)), f)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(schema)) {
			at := v1.Pointer(path, k)
			f(k, at)
			if members, ok := schema[k].(map[string]any); ok && slices.Contains(namedSchemas, k) {
				for _, name := range slices.Sorted(maps.Keys(members)) {
					eachKeyword(members[name], v1.Pointer(at, name), f)
				}
			} else if !slices.Contains(values, k) {
				eachKeyword(schema[k], at, f)
			}
		}
	}
}

// keywords are those of JSON Schema, drafts 4 to 2020-12, and those of OpenAPI 3.0 that schemas are often taken with.
var keywords = []string{
	"$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary", "$recursiveAnchor", "$recursiveRef",
	"additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains", "contentEncoding", "contentMediaType", "contentSchema",
	"default", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "description", "discriminator", "else", "enum",
	"example", "examples", "exclusiveMaximum", "exclusiveMinimum", "externalDocs", "format", "id", "if", "items", "maxContains", "maxItems", "maxLength",
	"maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf",
	"pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "readOnly", "required", "then", "title", "type",
	"unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly", "xml",
}

// misspeltKeywords finds what is nearly a keyword: JSON Schema passes over keywords that it does not know
// (draft 2020-12, core, 4.3.1), so that "require" would ask for nothing.
func misspeltKeywords(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if t.manifest == nil {
			continue
		}
		spec := &t.manifest.Spec
		for path, raw := range map[string]json.RawMessage{"/spec/input_schema": spec.InputSchema, "/spec/output_schema": spec.OutputSchema} {
			var schema any
			if json.Unmarshal(raw, &schema) != nil {
				continue
			}
			eachKeyword(schema, path, func(keyword, at string) {
				if slices.Contains(keywords, keyword) || len(keyword) < 4 || strings.HasPrefix(keyword, "x-") {
					return
				}
				if near := v1.Nearest(keyword, keywords); near != "" {
					found(t.at(at, "%q is not a keyword of JSON Schema, which ignores it; did you mean %q?", keyword, near))
				}
			})
		}
	}
}
