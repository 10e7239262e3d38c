// Package openai is the model provider "openai". It works with every server that implements OpenAI's Chat Completions
// API: OpenAI itself, llama.cpp, Ollama, vLLM and many others. It does not use the newer Responses API, which few
// servers implement.
//
// The key is OPENAI_API_KEY and the address OPENAI_BASE_URL, as for OpenAI's own libraries; with a base URL the key
// may be absent. OPENAI_ORG_ID and OPENAI_PROJECT_ID are sent when they are set.
package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
	"toolctl.dev/toolctl/pkg/schema"
)

// Name is the provider's name.
const Name = "openai"

const (
	keyVar = "OPENAI_API_KEY"
	urlVar = "OPENAI_BASE_URL"
)

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. It is safe for concurrent use.
type Model = provider.Model

// New creates a model. It sends no request yet; a missing key is an error.
func New(o Options) (*Model, error) {
	a := api(o.Lookup(urlVar) == "")
	for header, variable := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
		if id := o.Lookup(variable); id != "" {
			a.Header.Set(header, id)
		}
	}
	return provider.New(o, a)
}

// api describes Chat Completions. The newer models of OpenAI's own API refuse max_tokens.
func api(own bool) provider.API {
	a := provider.API{
		Name: Name, URLVar: urlVar, URL: "https://api.openai.com/v1/", Example: "gpt-5-mini", Header: http.Header{},
		Keys:        []provider.Key{{Var: keyVar, Header: "Authorization", Prefix: "Bearer "}},
		NoKey:       keyVar + " is not set: set it, or set " + urlVar + " to a server that needs no key, for example http://localhost:11434/v1",
		KeyOptional: true,
		Path:        "chat/completions",
		SchemaKey:   "parameters",
		ChoiceKey:   "tool_choice",
		Choices:     map[string]any{v1.ToolChoiceRequired: "required", v1.ToolChoiceNone: "none"},
		Reserved:    []string{"model", "messages", "tools", "stream", "stream_options"},
		Renamed:     [][2]string{{"stop_sequences", "stop"}, {"max_output_tokens", "max_tokens"}},
		Streamed:    object{"stream": true, "stream_options": object{"include_usage": true}},
		Body:        body,
		Reader: func(b *provider.Builder) provider.Reader {
			return &reader{Builder: b, open: map[int64]*provider.Call{}, texts: map[string]*strings.Builder{}, values: fields{}, calls: map[*provider.Call]fields{}}
		},
		Needs: "choices",
	}
	if own {
		a.Renamed = append(a.Renamed, [2]string{"max_tokens", "max_completion_tokens"})
	}
	return a
}

// enforced is the part of JSON Schema that OpenAI enforces according to its guide to structured
// outputs. The API refuses a strict request with another schema.
var enforced = provider.Subset{Depth: 10, Required: true, Keywords: []string{
	"type", "description", "title", "enum", "const", "required", "additionalProperties", schema.Ref, "$schema", "$id",
	"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
	"items", "anyOf", "properties", "$defs", "definitions",
}}

// strict reports whether the API can enforce a schema.
func strict(parameters json.RawMessage) bool {
	var root object
	return json.Unmarshal(parameters, &root) == nil && root["anyOf"] == nil && enforced.Takes(root)
}
