package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/schema"
)

type rootKeyword struct{ keyword, providers string }

// rootKeywords are the keywords that a provider refuses at the top level of a tool's arguments.
var rootKeywords = []rootKeyword{
	{"oneOf", "OpenAI and Anthropic refuse"},
	{"anyOf", "OpenAI and Anthropic refuse"},
	{"allOf", "OpenAI and Anthropic refuse"},
	{"not", "OpenAI refuses"},
	{"enum", "OpenAI refuses"},
	{schema.Ref, "OpenAI and Gemini refuse"},
}

// narrowKeywords are the keywords that a provider refuses or ignores anywhere in a tool's arguments:
// OpenAI in strict mode, Gemini in the parameters of a function.
var narrowKeywords = map[string]string{
	"allOf":                 "OpenAI (strict) and Gemini do not accept",
	"not":                   "OpenAI (strict) and Gemini do not accept",
	"if":                    "OpenAI (strict) and Gemini do not accept",
	"dependentRequired":     "OpenAI (strict) and Gemini do not accept",
	"dependentSchemas":      "OpenAI (strict) and Gemini do not accept",
	"dependencies":          "OpenAI (strict) and Gemini do not accept",
	"patternProperties":     "OpenAI (strict) and Gemini do not accept",
	"propertyNames":         "OpenAI (strict) and Gemini do not accept",
	"contains":              "OpenAI (strict) and Gemini do not accept",
	"unevaluatedProperties": "OpenAI (strict) and Gemini do not accept",
	"unevaluatedItems":      "OpenAI (strict) and Gemini do not accept",
	"oneOf":                 "OpenAI (strict) does not accept, and Gemini reads as anyOf,",
}

func schemaRoots(s *surface, found func(Finding)) {
	for _, t := range s.declared {
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
	for _, t := range s.declared {
		var root any
		if json.Unmarshal(t.manifest.Spec.InputSchema, &root) != nil {
			continue
		}
		first := map[string]string{} // the first place of each keyword
		walk(root, "/spec/input_schema", first)
		for _, k := range slices.Sorted(maps.Keys(first)) {
			found(t.at(first[k], "%s %s", narrowKeywords[k], k))
		}
	}
}

// walk collects the keywords of a schema that providers do not accept. The rule schema-root reports those
// at the top level.
func walk(root any, path string, first map[string]string) {
	eachKeyword(root, path, func(k, at string) {
		top := at == v1.Pointer(path, k) && slices.ContainsFunc(rootKeywords, func(r rootKeyword) bool { return r.keyword == k })
		if narrowKeywords[k] != "" && first[k] == "" && !top {
			first[k] = at
		}
	})
}

// eachKeyword calls f with each keyword of a schema and its subschemas, and with the keyword's place.
func eachKeyword(value any, path string, f func(keyword, at string)) {
	object, _ := value.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(object)) {
		f(k, v1.Pointer(path, k))
	}
	for _, sub := range schema.Subschemas(value, path, 0) {
		eachKeyword(sub.Schema, sub.Pointer, f)
	}
}

// misspeltKeywords finds names that are similar to a keyword: JSON Schema ignores unknown keywords
// (draft 2020-12, core, 4.3.1), so "require" has no effect.
func misspeltKeywords(s *surface, found func(Finding)) {
	for _, t := range s.declared {
		spec := &t.manifest.Spec
		for path, raw := range map[string]json.RawMessage{"/spec/input_schema": spec.InputSchema, "/spec/output_schema": spec.OutputSchema} {
			var root any
			if json.Unmarshal(raw, &root) != nil {
				continue
			}
			eachKeyword(root, path, func(keyword, at string) {
				if schema.Known(keyword) || len(keyword) < 4 || strings.HasPrefix(keyword, "x-") {
					return
				}
				if near := v1.Nearest(keyword, schema.Vocabulary); near != "" {
					found(t.at(at, "%q is not a keyword of JSON Schema, which ignores it; did you mean %q?", keyword, near))
				}
			})
		}
	}
}
