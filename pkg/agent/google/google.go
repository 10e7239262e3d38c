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
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
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
type Model struct {
	client *provider.Client
	models *url.URL // the address of the models
	header http.Header
}

var _ agent.StructuredModel = (*Model)(nil)

// New makes a model. It asks nothing of the API yet; a missing key is an error.
func New(o Options) (*Model, error) {
	key, from := provider.Lookup(o.Env, otherKeyVar, keyVar)
	if key == "" {
		return nil, provider.Invalid(Name, "%s is not set: set it to a key of https://aistudio.google.com/apikey", keyVar)
	}
	base, _ := provider.Lookup(o.Env, urlVar)
	base = cmp.Or(base, makers)
	u, err := provider.BaseURL(Name, urlVar, base)
	if err != nil {
		return nil, err
	}
	m := &Model{client: provider.New(provider.Config{
		Name: Name, KeyVar: from, URLVar: urlVar, BaseURL: base,
		Secrets: []string{key}, Transport: o.Transport, Timeout: o.Timeout,
	})}
	m.models = u.JoinPath("v1beta")
	m.header = http.Header{"X-Goog-Api-Key": {key}}
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
	address, err := m.address(req.Model, on != nil)
	if err != nil {
		return agent.Reply{}, err
	}
	return m.client.Do(ctx, func(ctx context.Context, reply *agent.Reply) error {
		b := newBuilder(req, on)
		defer func() { *reply = b.reply() }()
		if on == nil {
			var a answer
			if err := m.client.Ask(ctx, address, m.header, body, &a); err != nil {
				return err
			}
			b.add(&a)
			if !b.ended {
				return errors.New("it has no candidates")
			}
			return nil
		}
		err := m.client.Stream(ctx, address, m.header, body, func(_ string, data []byte) error {
			var a answer
			if err := json.Unmarshal(data, &a); err != nil {
				return err
			}
			if e := a.Error; e != nil {
				refused := provider.APIError(data)
				refused.Status = e.Code
				return refused
			}
			b.add(&a)
			return nil
		})
		if err == nil && !b.ended {
			return m.client.Cut()
		}
		return err
	})
}

// address is where a model is asked.
func (m *Model) address(model string, stream bool) (string, error) {
	if !strings.HasPrefix(model, "models/") && !strings.HasPrefix(model, "tunedModels/") {
		model = "models/" + model
	}
	kind, name, _ := strings.Cut(model, "/")
	if name == "" || strings.ContainsAny(name, "/?#&%:\\") || strings.Contains(name, "..") {
		return "", m.client.Invalid("%q is not the name of a model: expected one such as %q", name, example)
	}
	u := m.models.JoinPath(kind, name+":generateContent")
	if stream {
		u = m.models.JoinPath(kind, name+":streamGenerateContent")
		q := u.Query()
		q.Set("alt", "sse")
		u.RawQuery = q.Encode()
	}
	return u.String(), nil
}

// Structured reports whether the schema can be the response schema: its root must be an
// object. What the API does not know in it, it ignores.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}
