// Package google is the model provider "google": the Gemini API.
//
// The key is GOOGLE_API_KEY or else GEMINI_API_KEY, and the address
// GOOGLE_GEMINI_BASE_URL, as for Google's own libraries.
//
// Replies of models that think have thought signatures, and the API needs them back unchanged
// in the next request. They are kept in Message.Raw.
package google

import (
	"fmt"
	"net/url"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "google"

const (
	keyVar      = "GEMINI_API_KEY"
	otherKeyVar = "GOOGLE_API_KEY" // has precedence, as in Google's libraries
	urlVar      = "GOOGLE_GEMINI_BASE_URL"
	example     = "gemini-2.5-flash"
)

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. It is safe for concurrent use.
type Model = provider.Model

// New creates a model. It sends no request yet; a missing key is an error.
func New(o Options) (*Model, error) { return provider.New(o, api()) }

// api describes the Gemini API. It ignores keywords that it does not know in the schema of a reply.
func api() provider.API {
	choose := func(mode string) object { return object{"functionCallingConfig": object{"mode": mode}} }
	return provider.API{
		Name: Name, URLVar: urlVar, URL: "https://generativelanguage.googleapis.com/", Example: example,
		Keys:      []provider.Key{{Var: otherKeyVar, Header: "X-Goog-Api-Key"}, {Var: keyVar, Header: "X-Goog-Api-Key"}},
		NoKey:     keyVar + " is not set: set it to a key of https://aistudio.google.com/apikey",
		Address:   address,
		SchemaKey: "parametersJsonSchema",
		ChoiceKey: "toolConfig",
		Choices:   map[string]any{v1.ToolChoiceRequired: choose("ANY"), v1.ToolChoiceNone: choose("NONE")},
		Reserved:  []string{"model", "contents", "systemInstruction", "tools"},
		Renamed: [][2]string{
			{"top_p", "topP"}, {"top_k", "topK"}, {"max_output_tokens", "maxOutputTokens"},
			{"max_tokens", "maxOutputTokens"}, {"max_completion_tokens", "maxOutputTokens"},
			{"stop_sequences", "stopSequences"}, {"stop", "stopSequences"},
			{"presence_penalty", "presencePenalty"}, {"frequency_penalty", "frequencyPenalty"}, {"candidate_count", "candidateCount"},
		},
		Body:   body,
		Reader: func(b *provider.Builder) provider.Reader { return &reader{Builder: b} },
		Needs:  "candidates",
	}
}

// address returns the URL for requests to a model.
func address(base *url.URL, model string, stream bool) (*url.URL, error) {
	if !strings.HasPrefix(model, "models/") && !strings.HasPrefix(model, "tunedModels/") {
		model = "models/" + model
	}
	kind, name, _ := strings.Cut(model, "/")
	if name == "" || strings.ContainsAny(name, "/?#&%:\\") || strings.Contains(name, "..") {
		return nil, fmt.Errorf("%q is not the name of a model: expected one such as %q", name, example)
	}
	if !stream {
		return base.JoinPath("v1beta", kind, name+":generateContent"), nil
	}
	u := base.JoinPath("v1beta", kind, name+":streamGenerateContent")
	q := u.Query()
	q.Set("alt", "sse")
	u.RawQuery = q.Encode()
	return u, nil
}
