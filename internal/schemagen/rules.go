package schemagen

import (
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// The rules of the Validate methods of api/v1 other than the check tags, as far as draft-07 can express them.
// TestSchemasRefuseWhatTheProgramRefuses checks both against one corpus.

const (
	// A part of a v1.NamePattern.
	labelPattern = `^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`
	// As in isLabelKey of api/v1.
	labelKey = `^([a-z0-9]([a-z0-9_.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`
	// A duration that time.ParseDuration reads and that is not negative.
	duration = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// An exact name, or a prefix and one trailing "*".
	pattern = `^([^*]+\*?|\*)$`
	httpURL = `^(https?://|\$\{)`
)

// refine adds the rules of one type to its schema.
func refine(name string, s *Schema) {
	at := s.Properties.Get // empty for a type in a test that has the name but lacks the field
	switch name {
	case "Metadata":
		at("name").Pattern, at("name").MaxLength = v1.NamePattern, v1.MaxName
		at("namespace").Pattern, at("namespace").MaxLength = labelPattern, v1.MaxName
		at("labels").PropertyNames = &Schema{Pattern: labelKey}
		at("labels").Additional = &Schema{Type: kindString, Pattern: v1.LabelValuePattern}
	case "ToolSpec":
		mocks := []*Schema{requires("mock_result"), requires("mock_template"), requires("mock_result_file"), requires("mock_template_file"), requires("mock_parts")}
		s.AnyOf = append(slices.Clone(mocks), requires("mode")) // otherwise there is no executor
		var pairs []*Schema
		blocks := v1.ExecutorBlocks()
		for i, b := range blocks {
			for _, other := range blocks[i+1:] {
				pairs = append(pairs, requires(b.Name, other.Name))
			}
			s.AnyOf = append(s.AnyOf, requires(b.Name))
			s.AllOf = append(s.AllOf, modeIs(b.Mode, requires(b.Name)))
		}
		s.Not = &Schema{AnyOf: pairs}
		s.AllOf = append(s.AllOf, modeIs(v1.ModeMock, &Schema{AnyOf: mocks}))
		objectSchema(at("input_schema"), true)
		at("redact").Items = &Schema{Type: kindString, MinLength: 1, Not: &Schema{Const: "/"}}
		at("keywords").MaxItems, at("keywords").Items = v1.MaxKeywords, &Schema{Type: kindString, MinLength: 1, MaxLength: v1.MaxKeyword}
	case "ToolExample":
		at("ask").MaxLength = v1.MaxAsk
	case "ToolsetMatch":
		s.MinProps = 1
	case "ToolsetSpec", "Approvers":
		at("groups").Items = &Schema{Type: kindString, MinLength: 1}
	case "Cache":
		at("ttl").Pattern = duration
	case "PromptSpec":
		s.AnyOf = []*Schema{filled("template"), filled("system_prompt")}
		at("parameters").Type = "object"
		objectSchema(at("input"), false)
		objectSchema(at("output"), false)
	case "MCPServerSpec":
		s.OneOf = []*Schema{filled("command"), filled("url")}
		s.Dependencies = map[string][]string{
			"args": {"command"}, "env": {"command"}, "env_passthrough": {"command"}, "working_dir": {"command"},
			"headers": {"url"}, "transport": {"url"}, "auth": {"url"}, "tls": {"url"},
		}
	case "ToolOverride":
		objectSchema(at("input_schema"), true)
	case "HTTPRetry":
		if items := at("retry_on").Items; items != nil {
			low, high := 100.0, 599.0
			items.Minimum, items.Maximum = &low, &high
		}
	case "Auth":
		for _, m := range *s.Properties {
			s.OneOf = append(s.OneOf, requires(m.Name))
		}
	case "TLS":
		s.Dependencies = map[string][]string{"cert_file": {"key_file"}, "key_file": {"cert_file"}}
	}
}

func requires(fields ...string) *Schema { return &Schema{Required: fields} }

// filled requires a field that is not empty, because an empty text counts as missing.
func filled(field string) *Schema {
	return &Schema{Required: []string{field}, Properties: &Members{{field, &Schema{MinLength: 1}}}}
}

func modeIs(mode string, then *Schema) *Schema {
	return &Schema{
		If:   &Schema{Required: []string{"mode"}, Properties: &Members{{"mode", &Schema{Const: mode}}}},
		Then: then,
	}
}

// objectSchema requires a schema that is an object. With root, the root type must be "object", as MCP requires of
// input schemas.
func objectSchema(s *Schema, root bool) {
	want := &Schema{Type: "object"}
	if root {
		want.Properties = &Members{{"type", &Schema{Const: "object"}}}
	}
	s.AllOf = append(s.AllOf, want)
}

// jsonSchema describes a JSON Schema of any draft, as far as all drafts agree. It finds common mistakes, such as a
// misspelt type or a list of properties.
func jsonSchema() *Schema {
	self, selfs := ref(kindSchema), &Schema{Type: "object", Additional: ref(kindSchema)}
	list := &Schema{Type: "array", MinItems: 1, Items: self}
	types := &Schema{Enum: []string{"array", "boolean", "integer", "null", "number", "object", "string"}}
	zero := 0.0
	length := &Schema{Type: "integer", Minimum: &zero}
	text, number, flag := &Schema{Type: "string"}, &Schema{Type: "number"}, &Schema{Type: "boolean"}
	return &Schema{
		Description: "JSONSchema is a JSON Schema: an object, or true or false.",
		Type:        []string{"object", "boolean"},
		// AnyOf keeps explain from showing these as fields of manifests.
		AnyOf: []*Schema{{Properties: &Members{
			{"type", &Schema{AnyOf: []*Schema{types, {Type: "array", MinItems: 1, Items: types}}}},
			{"title", text}, {"description", text}, {"pattern", text}, {"format", text}, {"$ref", text},
			{"properties", selfs}, {"patternProperties", selfs}, {"definitions", selfs}, {"$defs", selfs},
			{"additionalProperties", self}, {"propertyNames", self}, {"contains", self}, {"not", self}, {"if", self}, {"then", self}, {"else", self},
			{"items", &Schema{AnyOf: []*Schema{self, {Type: "array", Items: self}}}}, {"prefixItems", list},
			{"allOf", list}, {"anyOf", list}, {"oneOf", list},
			{"required", &Schema{AnyOf: []*Schema{{Type: "array", Items: text}, flag}}}, // a flag in draft-03 and in OpenAPI
			{"enum", &Schema{Type: "array"}},
			{"minimum", number}, {"maximum", number}, {"multipleOf", number}, {"uniqueItems", flag},
			{"minLength", length}, {"maxLength", length}, {"minItems", length}, {"maxItems", length}, {"minProperties", length}, {"maxProperties", length},
		}}},
	}
}

// promptKit describes a manifest of PromptKit, in which unknown fields are allowed.
func promptKit() *Schema {
	named := &Schema{Type: "object", Required: []string{"name"}, Properties: &Members{{"name", &Schema{Type: "string", MinLength: 1}}}}
	return &Schema{
		Title: "PromptKit", Description: "PromptKit is a manifest of PromptKit; toolctl ignores unknown fields.", Type: "object",
		Properties: &Members{
			{"apiVersion", &Schema{Type: "string", Pattern: `^promptkit\.altairalabs\.ai/.`}},
			{"kind", &Schema{Enum: []string{"Tool", "PromptConfig", "Scenario"}}},
			{"metadata", named},
			{"spec", &Schema{AnyOf: []*Schema{{Properties: &Members{{"input_schema", ref(kindSchema)}, {"output_schema", ref(kindSchema)}}}}}},
		},
		Required: []string{"apiVersion", "kind", "spec"},
	}
}
