// Package anthropic is the model provider "anthropic": Anthropic's Messages API, and
// what speaks it.
//
// The key is ANTHROPIC_API_KEY and the address ANTHROPIC_BASE_URL, as for Anthropic's
// own libraries. ANTHROPIC_AUTH_TOKEN is sent as a bearer token when there is no key.
// With a base URL both may be absent.
//
// Thinking comes signed, and the API wants it back unchanged in the next request: it is
// kept in Message.Raw.
package anthropic

import (
	"cmp"
	"net/http"
	"net/url"
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
	makers   = "https://api.anthropic.com/"
)

// DefaultMaxTokens is the most tokens of a reply where the parameters have no
// max_tokens, which the API demands. The tokens for thinking come on top.
const DefaultMaxTokens = 8192

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model = provider.Model

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, _ := o.Lookup(keyVar)
	token, _ := o.Lookup(tokenVar)
	base, _ := o.Lookup(urlVar)
	if key == "" && token == "" && base == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it to a key of https://platform.claude.com", keyVar)
	}
	a := api()
	a.Secrets = []string{key, token}
	switch {
	case key != "":
		a.Header.Set("X-Api-Key", key)
	case token != "":
		a.Header.Set("Authorization", "Bearer "+token)
	}
	return provider.New(o, a, cmp.Or(base, makers))
}

// api is the Messages API.
func api() provider.API {
	return provider.API{
		Name: Name, KeyVar: keyVar, URLVar: urlVar, Example: "claude-sonnet-4-5",
		Header: http.Header{"Anthropic-Version": {"2023-06-01"}},
		Address: func(base *url.URL, _ string, _ bool) (*url.URL, error) {
			return base.JoinPath("v1/messages"), nil
		},
		SchemaKey: "input_schema",
		ChoiceKey: "tool_choice",
		Choices:   map[string]any{v1.ToolChoiceRequired: object{"type": "any"}, v1.ToolChoiceNone: object{"type": "none"}},
		Reserved:  []string{"model", "messages", "system", "tools", "stream"},
		Renamed:   [][2]string{{"stop", "stop_sequences"}, {"max_completion_tokens", "max_tokens"}, {"max_output_tokens", "max_tokens"}},
		Streamed:  object{"stream": true},
		Body:      body,
		Structured: func(schema object) bool {
			delete(schema, "$schema") // it is not sent
			return compiled.Takes(schema)
		},
		Reader: func(b *provider.Builder) provider.Reader { return &reader{Builder: b, open: map[int64]*block{}} },
		Needs:  "content",
	}
}

// compiled is the part of JSON Schema that the API takes as an output format; it refuses the
// rest. References and patterns are taken in part only, so they count as not taken.
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
