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
	"net/http"

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
	client  *provider.Client
	address string
	header  http.Header
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
	u, err := provider.BaseURL(Name, urlVar, base)
	if err != nil {
		return nil, err
	}
	m.client = provider.New(provider.Config{
		Name: Name, KeyVar: keyVar, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key}, Transport: o.Transport, Timeout: o.Timeout,
	})
	m.address = u.JoinPath("chat/completions").String()
	m.header = http.Header{}
	if key != "" {
		m.header.Set("Authorization", "Bearer "+key)
	}
	for header, variable := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
		if id, _ := provider.Lookup(o.Env, variable); id != "" {
			m.header.Set(header, id)
		}
	}
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
		var answer completion
		if err := m.client.Ask(ctx, m.address, m.header, params, &answer); err != nil {
			return err
		}
		return b.whole(&answer)
	})
}

func (m *Model) stream(ctx context.Context, params object, b *builder) error {
	params["stream"] = true
	params["stream_options"] = object{"include_usage": true}
	err := m.client.Stream(ctx, m.address, m.header, params, func(_ string, data []byte) error {
		if string(data) == "[DONE]" {
			return provider.ErrDone
		}
		var c completion
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return provider.APIError(data)
		}
		return b.chunk(&c)
	})
	if err == nil && b.stop == "" {
		return m.client.Cut()
	}
	return err
}

// Structured reports whether the schema can be the response format: its root must be an
// object. What the API can enforce in it is enforced; the rest guides the model.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}
