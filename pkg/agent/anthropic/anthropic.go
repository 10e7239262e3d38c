// Package anthropic is the model provider "anthropic": Anthropic's Messages API, and servers
// that implement it.
//
// The key is ANTHROPIC_API_KEY and the address ANTHROPIC_BASE_URL, as for Anthropic's
// own libraries. ANTHROPIC_AUTH_TOKEN is sent as a bearer token when there is no key.
// With a base URL both may be absent.
//
// Thinking is signed, and the API needs it back unchanged in the next request. It is kept in
// Message.Raw.
package anthropic

import (
	"net/http"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "anthropic"

const (
	keyVar   = "ANTHROPIC_API_KEY"
	tokenVar = "ANTHROPIC_AUTH_TOKEN"
	urlVar   = "ANTHROPIC_BASE_URL"
)

// DefaultMaxTokens is the maximum number of tokens of a reply if the parameters have no
// max_tokens, which the API requires. The tokens for thinking are added to it.
const DefaultMaxTokens = 8192

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. It is safe for concurrent use.
type Model = provider.Model

// New creates a model. It sends no request yet; a missing key is an error.
func New(o Options) (*Model, error) { return provider.New(o, api()) }

// api describes the Messages API.
func api() provider.API {
	return provider.API{
		Name: Name, URLVar: urlVar, URL: "https://api.anthropic.com/", Example: "claude-sonnet-4-5",
		Keys:        []provider.Key{{Var: keyVar, Header: "X-Api-Key"}, {Var: tokenVar, Header: "Authorization", Prefix: "Bearer "}},
		NoKey:       keyVar + " is not set: set it to a key of https://platform.claude.com",
		KeyOptional: true,
		Header:      http.Header{"Anthropic-Version": {"2023-06-01"}},
		Path:        "v1/messages",
		SchemaKey:   "input_schema",
		ChoiceKey:   "tool_choice",
		Choices:     map[string]any{v1.ToolChoiceRequired: object{"type": "any"}, v1.ToolChoiceNone: object{"type": "none"}},
		Reserved:    []string{"model", "messages", "system", "tools", "stream"},
		Renamed:     [][2]string{{"stop", "stop_sequences"}, {"max_completion_tokens", "max_tokens"}, {"max_output_tokens", "max_tokens"}},
		Streamed:    object{"stream": true},
		Body:        body,
		Structured: func(schema object) bool {
			delete(schema, "$schema") // body also removes it
			return compiled.Takes(schema)
		},
		Reader: func(b *provider.Builder) provider.Reader { return &reader{Builder: b, open: map[int64]*block{}} },
		Needs:  "content",
	}
}

// compiled is the part of JSON Schema that the API accepts as an output format. It supports
// references and patterns only in part, so they are left out.
var compiled = provider.Subset{
	Depth: 32,
	Keywords: []string{
		"type", "description", "title", "enum", "const", "required", "additionalProperties", "items", "anyOf", "allOf", "properties",
	},
	Fits: map[string]func(any) bool{
		"minItems": func(v any) bool { return v == 0.0 || v == 1.0 },
		"format": func(v any) bool {
			return slices.Contains([]any{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}, v)
		},
	},
}
