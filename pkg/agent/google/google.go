// Package google is the model provider "google": the Gemini API.
//
// The key is GOOGLE_API_KEY or else GEMINI_API_KEY, and the address
// GOOGLE_GEMINI_BASE_URL, as for Google's own libraries.
//
// A reply of a model that thinks carries thought signatures, and the API wants them back
// unchanged in the next request: they are kept in Message.Raw.
package google

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "google"

const (
	keyVar      = "GEMINI_API_KEY"
	otherKeyVar = "GOOGLE_API_KEY" // it is taken when both are set, as Google's libraries do
	urlVar      = "GOOGLE_GEMINI_BASE_URL"
	makers      = "https://generativelanguage.googleapis.com/"
	example     = "gemini-2.5-flash"
)

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model = provider.Model

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, from := o.Lookup(otherKeyVar, keyVar)
	if key == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it to a key of https://aistudio.google.com/apikey", keyVar)
	}
	base, _ := o.Lookup(urlVar)
	a := api()
	a.KeyVar, a.Secrets, a.Header = from, []string{key}, http.Header{"X-Goog-Api-Key": {key}}
	return provider.New(o, a, cmp.Or(base, makers))
}

// api is the Gemini API. What it does not know in the schema of a reply, it ignores.
func api() provider.API {
	choose := func(mode string) object { return object{"functionCallingConfig": object{"mode": mode}} }
	return provider.API{
		Name: Name, URLVar: urlVar, Example: example,
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

// address is where a model is asked.
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
