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
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
)

// DefaultMaxTokens is the most tokens of a reply where the parameters have no
// max_tokens, which the API demands. The tokens for thinking come on top.
const DefaultMaxTokens = 8192

// Options say how a model is reached: Env, Transport and Timeout. The zero value reads
// the environment.
type Options = provider.Options

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model struct {
	client   *provider.Client
	messages sdk.MessageService
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
	if base == "" {
		base = makers
	}
	if err := provider.CheckBaseURL(Name, urlVar, base); err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = provider.DefaultTimeout
	}
	m := &Model{client: provider.New(provider.Config{
		Name: Name, KeyVar: keyVar, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key, token}, Transport: o.Transport, Timeout: o.Timeout,
	})}
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(m.client.HTTP()),
		option.WithMaxRetries(0),             // the client of [provider.Client] retries
		option.WithRequestTimeout(o.Timeout), // else the SDK refuses long replies that are not streamed
		option.WithoutOpenTelemetry(),        // spans are the caller's affair
	}
	switch {
	case key != "":
		options = append(options, option.WithAPIKey(key))
	case token != "":
		options = append(options, option.WithAuthToken(token))
	}
	// The service and not sdk.NewClient, which reads the environment by itself.
	m.messages = sdk.NewMessageService(options...)
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
		answer, err := m.messages.New(ctx, params)
		if err != nil {
			return err
		}
		return b.whole(answer)
	})
}

func (m *Model) stream(ctx context.Context, params sdk.MessageNewParams, b *builder) error {
	s := m.messages.NewStreaming(ctx, params)
	for s.Next() {
		b.event(s.Current())
	}
	var said *sdk.Error
	switch err := s.Err(); {
	case errors.As(err, &said):
		return provider.APIError([]byte(said.RawJSON()))
	case err != nil:
		if body, ok := strings.CutPrefix(err.Error(), "received error while streaming: "); ok {
			return provider.APIError([]byte(body))
		}
		return err
	case !b.ended:
		return m.client.Cut()
	}
	return s.Close()
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
