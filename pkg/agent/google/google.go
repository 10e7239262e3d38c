// Package google is the model provider "google": the Gemini API.
//
// The key is GOOGLE_API_KEY or else GEMINI_API_KEY, and the address
// GOOGLE_GEMINI_BASE_URL, as for Google's own libraries.
//
// A reply of a model that thinks carries thought signatures, and the API wants them back
// unchanged in the next request: they are kept in Message.Raw.
package google

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "google"

const (
	keyVar      = "GEMINI_API_KEY"
	otherKeyVar = "GOOGLE_API_KEY" // the SDK prefers it when both are set, and says so
	urlVar      = "GOOGLE_GEMINI_BASE_URL"
	makers      = "https://generativelanguage.googleapis.com/"
	example     = "gemini-2.5-flash"
)

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model struct {
	client *provider.Client
	models *genai.Models
}

var _ agent.StructuredModel = (*Model)(nil)

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, from := provider.Lookup(o.Env, otherKeyVar, keyVar)
	if key == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it to a key of https://aistudio.google.com/apikey", keyVar)
	}
	base, _ := provider.Lookup(o.Env, urlVar)
	if base == "" {
		base = makers
	}
	if err := provider.CheckBaseURL(Name, urlVar, base); err != nil {
		return nil, err
	}
	m := &Model{client: provider.New(provider.Config{
		Name: Name, KeyVar: from, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key}, Transport: o.Transport, Timeout: o.Timeout,
	})}
	// With a backend, a key and an address given, no environment variable has a say.
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: m.client.HTTP(),
		HTTPOptions: genai.HTTPOptions{BaseURL: base},
	})
	if err != nil {
		// The SDK's error may print the whole configuration with the key in it.
		return nil, provider.Invalid(Name, "the SDK refuses the settings: check %s and %s", from, urlVar)
	}
	m.models = client.Models
	return m, nil
}

// String names the provider and its address, and no key.
func (m *Model) String() string { return m.client.String() }

// GoString is String, so that no verb of fmt shows a key.
func (m *Model) GoString() string { return m.String() }

// Generate is [agent.Model.Generate].
func (m *Model) Generate(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	body, err := m.body(req)
	if err != nil {
		return agent.Reply{}, err
	}
	no := false
	// The request is ours whole: the SDK would turn schemas and arguments into Go maps,
	// which lose the order of properties and the digits of large numbers.
	config := &genai.GenerateContentConfig{
		AutomaticContinuation: &no,
		HTTPOptions:           &genai.HTTPOptions{ExtrasRequestProvider: func(map[string]any) map[string]any { return body }},
	}
	return m.client.Do(ctx, func(ctx context.Context, reply *agent.Reply) error {
		b := newBuilder(req, on)
		defer func() { *reply = b.reply() }()
		if on == nil {
			answer, err := m.models.GenerateContent(ctx, req.Model, nil, config)
			if err != nil {
				return refusal(err)
			}
			b.add(answer)
			if !b.ended {
				return errors.New("it has no candidates")
			}
			return nil
		}
		for chunk, err := range m.models.GenerateContentStream(ctx, req.Model, nil, config) {
			if err != nil {
				return refusal(err)
			}
			b.add(chunk)
		}
		if !b.ended {
			return m.client.Cut()
		}
		return nil
	})
}

// refusal reads an error that came inside a stream; all others stay.
func refusal(err error) error {
	var said genai.APIError
	if errors.As(err, &said) && said.Message != "" {
		return &agent.ModelError{Status: said.Code, Type: said.Status, Message: said.Message}
	}
	return err
}

// Structured reports whether the schema can be the response schema: its root must be an
// object. What the API does not know in it, it ignores.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}
