// Package openai is the model provider "openai": every endpoint that speaks OpenAI's
// Chat Completions, so OpenAI itself, llama.cpp, Ollama, vLLM and many others.
//
// Chat Completions and not the newer Responses, because it is what all of them speak.
//
// The key is OPENAI_API_KEY and the address OPENAI_BASE_URL, as for OpenAI's own
// libraries; with a base URL the key may be absent. OPENAI_ORG_ID and OPENAI_PROJECT_ID
// are sent when they are set.
package openai

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "openai"

const (
	keyVar  = "OPENAI_API_KEY"
	urlVar  = "OPENAI_BASE_URL"
	makers  = "https://api.openai.com/v1/"
	example = "gpt-5-mini"
)

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model struct {
	client *provider.Client
	chat   sdk.ChatCompletionService
	// own says that the address is OpenAI's, whose newer models refuse max_tokens.
	own bool
}

var _ agent.StructuredModel = (*Model)(nil)

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, _ := provider.Lookup(o.Env, keyVar)
	base, _ := provider.Lookup(o.Env, urlVar)
	if key == "" && base == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it, or set %s to a server that needs no key, for example http://localhost:11434/v1", keyVar, urlVar)
	}
	m := &Model{own: base == ""}
	if m.own {
		base = makers
	}
	if err := provider.CheckBaseURL(Name, urlVar, base); err != nil {
		return nil, err
	}
	m.client = provider.New(provider.Config{
		Name: Name, KeyVar: keyVar, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key}, Transport: o.Transport, Timeout: o.Timeout,
	})
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(m.client.HTTP()),
		option.WithMaxRetries(0), // the client of [provider.Client] retries
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	if id, _ := provider.Lookup(o.Env, "OPENAI_ORG_ID"); id != "" {
		options = append(options, option.WithOrganization(id))
	}
	if id, _ := provider.Lookup(o.Env, "OPENAI_PROJECT_ID"); id != "" {
		options = append(options, option.WithProject(id))
	}
	// The service and not sdk.NewClient, which reads the environment by itself.
	m.chat = sdk.NewChatCompletionService(options...)
	return m, nil
}

// String names the provider and its address, and no key.
func (m *Model) String() string { return m.client.String() }

// GoString is String, so that no verb of fmt shows a key.
func (m *Model) GoString() string { return m.String() }

// Generate is [agent.Model.Generate].
func (m *Model) Generate(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	params, err := m.params(req)
	if err != nil {
		return agent.Reply{}, err
	}
	return m.client.Do(ctx, func(ctx context.Context, reply *agent.Reply) error {
		b := newBuilder(req, on)
		defer func() { *reply = b.reply() }()
		if on != nil {
			return m.stream(ctx, params, b)
		}
		answer, err := m.chat.New(ctx, params)
		if err != nil {
			return err
		}
		return b.whole(answer)
	})
}

func (m *Model) stream(ctx context.Context, params sdk.ChatCompletionNewParams, b *builder) error {
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	s := m.chat.NewStreaming(ctx, params)
	defer s.Close()
	for s.Next() {
		b.chunk(s.Current())
	}
	var said *ssestream.StreamError
	switch err := s.Err(); {
	case errors.As(err, &said):
		return provider.APIError(said.Event.Data)
	case err != nil:
		return err
	case b.stop == "":
		return m.client.Cut()
	}
	return nil
}

// Structured reports whether the schema can be the response format: its root must be an
// object. What the API can enforce in it is enforced; the rest guides the model.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}
