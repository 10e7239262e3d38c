package v1

import (
	"encoding/json"
	"fmt"
)

// Prompt is a template that is rendered into messages for a model, with the
// tools that the model may call. A markdown file with YAML front matter is a
// Prompt too: the front matter holds the fields of spec, the body is the template.
//
//	apiVersion: toolctl.dev/v1
//	kind: Prompt
//	metadata:
//	  name: travel-advice
//	spec:
//	  description: Says what to pack
//	  input:
//	    type: object
//	    properties: {city: {type: string}}
//	    required: [city]
//	  tools: ["get-*"]
//	  template: What should I pack for {{.city}}?
type Prompt struct {
	Header
	// Spec holds the template. Required.
	Spec PromptSpec `json:"spec" check:"required"`
}

// PromptSpec holds a template and how it is run.
type PromptSpec struct {
	// Name is another name for metadata.name, read from front matter and PromptKit manifests.
	Name string `json:"name,omitempty"`
	// Title is a name for people. Default: the first heading of a markdown prompt, when it has at least 10 characters.
	Title string `json:"title,omitempty"`
	// Description says what the prompt is for.
	Description string `json:"description,omitempty"`
	// Template is a Go text/template that renders the user's message; with template_syntax mustache
	// a {{name}} is a variable. Functions: json, default, join, upper, lower, trim.
	// Example: What should I pack for {{.city}}?
	Template string `json:"template,omitempty"`
	// TemplateSyntax is go or mustache; PromptKit manifests are mustache. Default: go.
	TemplateSyntax string `json:"template_syntax,omitempty" check:"oneof=go|mustache"`
	// SystemPrompt is a template that renders the system message.
	SystemPrompt string `json:"system_prompt,omitempty"`
	// Model is the model's name. Example: gpt-5-mini.
	Model string `json:"model,omitempty"`
	// Provider is openai, anthropic, google or scripted. Example: anthropic.
	Provider string `json:"provider,omitempty"`
	// Parameters are passed to the model. Example: {temperature: 0.2, max_tokens: 500}.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Input is the JSON Schema of the variables.
	Input json.RawMessage `json:"input,omitempty"`
	// Output is the JSON Schema of the answer.
	Output json.RawMessage `json:"output,omitempty"`
	// Tools names the tools the model may call: exact names or patterns with a trailing "*". Example: ["get-*"].
	Tools []string `json:"tools,omitempty" check:"pattern"`
	// ResultForm is the form in which the model gets JSON results: json (unchanged), or labeled (one line
	// per value, after its path). Default: json.
	ResultForm string `json:"result_form,omitempty" check:"oneof=json|labeled"`
	// Thinking asks the model to think before it answers. Default: false.
	Thinking bool `json:"thinking,omitempty"`
	// ThinkingBudget is the maximum number of tokens for thinking. Default: the provider's. Example: 2048.
	ThinkingBudget int `json:"thinking_budget,omitempty" check:"min=0"`
	// Policy holds rules for the calls of this prompt, besides those of ToolPolicy manifests.
	Policy *ToolPolicySpec `json:"policy,omitempty"`
	// Validators check texts of the model or the user with rules that need no model. The first rule that
	// fails ends the run: toolctl cuts a reply that is too long, and replaces any other with the message.
	// Example: [{type: banned_words, params: {words: [guarantee]}}].
	Validators []PromptValidator `json:"validators,omitempty"`
	// TaskType is the name by which PromptKit's scenarios find the prompt, read from PromptKit manifests.
	TaskType string `json:"task_type,omitempty"`
	// Arguments describe the variables one by one, as MCP prompts do.
	// Example: [{name: city, required: true}].
	Arguments []PromptArgument `json:"arguments,omitempty"`
	// Resources are files that MCP clients can read as resources. Example: [{file: docs/packing.md}].
	Resources []FileResource `json:"resources,omitempty"`
}

// PromptValidator is one rule for a text.
type PromptValidator struct {
	// Type is the type of the rule; types and params are those of the assertions with the same name.
	// Required. Example: max_length.
	Type string `json:"type" check:"required,oneof=banned_words|content_excludes|content_includes|content_includes_any|content_matches|field_presence|is_valid_json|json_schema|length|max_length|max_sentences|min_length|regex|required_fields|sentence_count"`
	// Params are the parameters of the type, and direction: output for texts of the model, input for texts of the
	// user, or both. Example: {max_characters: 400, direction: output}.
	Params json.RawMessage `json:"params,omitempty"`
	// Message replaces a refused text. Default: Sorry, we can't provide this response as it
	// would violate our content policy.
	Message string `json:"message,omitempty"`
	// Enabled says whether the rule is applied. Default: true.
	Enabled *bool `json:"enabled,omitempty"`
}

// PromptArgument describes one variable of a prompt.
type PromptArgument struct {
	// Name is the variable's name. Required. Example: city.
	Name string `json:"name" check:"required"`
	// Title is a name for people.
	Title string `json:"title,omitempty"`
	// Description says what the variable is for.
	Description string `json:"description,omitempty"`
	// Required says that the prompt cannot be rendered without it. Default: false.
	Required bool `json:"required,omitempty"`
	// Default is the value of a variable that is not given.
	Default json.RawMessage `json:"default,omitempty"`
}

// Validate returns the violations of the prompt by its own rules.
func (p *Prompt) Validate() []Violation {
	fs := append(p.Header.validate(), checkFields(p)...)
	fs = append(fs, reservedName(&p.Header)...)
	s := &p.Spec
	if s.Template == "" && s.SystemPrompt == "" {
		fs = append(fs, Violation{Path: "/spec/template", Expected: "a template", Got: "nothing", Message: "a prompt needs spec.template or spec.system_prompt"})
	}
	for path, schema := range map[string]json.RawMessage{"/spec/input": s.Input, "/spec/output": s.Output} {
		if len(schema) > 0 {
			fs = append(fs, schemaShape(path, schema)...)
		}
	}
	if len(s.Parameters) > 0 && JSONKind(s.Parameters) != "object" {
		fs = append(fs, Violation{Path: "/spec/parameters", Expected: "an object", Got: JSONKind(s.Parameters), Message: "parameters must be an object, got " + JSONKind(s.Parameters)})
	}
	seen := map[string]bool{}
	for i, a := range s.Arguments {
		if a.Name != "" && seen[a.Name] {
			fs = append(fs, Violation{Path: Pointer("/spec/arguments", fmt.Sprint(i), "name"), Expected: "a new name", Got: quote(a.Name), Message: fmt.Sprintf("argument %q is declared twice", a.Name)})
		}
		seen[a.Name] = true
	}
	return append(fs, resourceViolations(&p.Header, "/spec/resources", s.Resources)...)
}
