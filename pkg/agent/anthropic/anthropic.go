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
	"context"
	"encoding/json"
	"net/http"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Name is the provider's name.
const Name = "anthropic"

const (
	keyVar   = "ANTHROPIC_API_KEY"
	tokenVar = "ANTHROPIC_AUTH_TOKEN"
	urlVar   = "ANTHROPIC_BASE_URL"
	makers   = "https://api.anthropic.com/"
	example  = "claude-sonnet-4-5"
	version  = "2023-06-01" // of the API
)

// DefaultMaxTokens is the most tokens of a reply where the parameters have no
// max_tokens, which the API demands. The tokens for thinking come on top.
const DefaultMaxTokens = 8192

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model struct {
	client  *provider.Client
	address string
	header  http.Header
}

var _ agent.StructuredModel = (*Model)(nil)

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, _ := provider.Lookup(o.Env, keyVar)
	token, _ := provider.Lookup(o.Env, tokenVar)
	base, _ := provider.Lookup(o.Env, urlVar)
	if key == "" && token == "" && base == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it to a key of https://platform.claude.com", keyVar)
	}
	base = cmp.Or(base, makers)
	u, err := provider.BaseURL(Name, urlVar, base)
	if err != nil {
		return nil, err
	}
	m := &Model{client: provider.New(provider.Config{
		Name: Name, KeyVar: keyVar, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key, token}, Transport: o.Transport, Timeout: o.Timeout,
	})}
	m.address = u.JoinPath("v1/messages").String()
	m.header = http.Header{"Anthropic-Version": {version}}
	switch {
	case key != "":
		m.header.Set("X-Api-Key", key)
	case token != "":
		m.header.Set("Authorization", "Bearer "+token)
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
		var answer answer
		if err := m.client.Ask(ctx, m.address, m.header, params, &answer); err != nil {
			return err
		}
		return b.whole(&answer)
	})
}

func (m *Model) stream(ctx context.Context, params object, b *builder) error {
	params["stream"] = true
	err := m.client.Stream(ctx, m.address, m.header, params, func(name string, data []byte) error {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		if e.Type == "error" || name == "error" {
			return provider.APIError(data)
		}
		b.event(&e)
		return nil
	})
	if err == nil && !b.ended {
		return m.client.Cut()
	}
	return err
}

// Structured reports whether the API can hold a reply to the schema: it compiles a
// subset of JSON Schema and refuses the rest.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" {
		return false
	}
	delete(root, "$schema") // not sent
	return compiles(root, 0)
}
