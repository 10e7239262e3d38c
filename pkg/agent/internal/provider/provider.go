// Package provider is the skeleton of all model providers. A provider defines an [API]: how to write a conversation,
// and how to read its responses. This package implements everything else: addresses and keys, requests and retries,
// streams, bounds, errors without secrets, tools and parameters.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

// DefaultTimeout is the time limit for one Generate, including its retries. Models that think
// can be silent for minutes.
const DefaultTimeout = 10 * time.Minute

// Options say how a model is reached. The zero value reads the environment.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Transport sends the requests. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Timeout is the time limit for one Generate, including its retries. Default: 10 minutes.
	Timeout time.Duration
}

// Object is a JSON object of a request.
type Object = map[string]any

// API is what one provider defines.
type API struct {
	// Name is the provider's name, such as "openai". Errors begin with it.
	Name string
	// Keys are the ways to authenticate. The first key that is set is sent.
	Keys []Key
	// URLVar is the variable of the base URL, and URL the default.
	URLVar, URL string
	// NoKey is the error if no key is set. KeyOptional allows that if the base URL is set.
	NoKey       string
	KeyOptional bool
	// Example is the name of a model, for errors.
	Example string
	// Header is sent with every request.
	Header http.Header
	// Path is added to the base URL. If the URL depends on the request, Address returns it
	// instead.
	Path    string
	Address func(base *url.URL, model string, stream bool) (*url.URL, error)

	// SchemaKey is the field of a tool that holds the JSON Schema of its arguments.
	SchemaKey string
	// ChoiceKey is the field of a request that holds the tool choice, and Choices maps the values
	// of [agent.Request.ToolChoice] to those of the API.
	ChoiceKey string
	Choices   map[string]any
	// Reserved are the fields that parameters must not overwrite. Renamed has pairs of names: the name of a parameter,
	// and its name in the API.
	Reserved []string
	Renamed  [][2]string
	// Streamed are the fields of a request that asks for a stream.
	Streamed Object
	// Body adds the conversation to a request. It may remove parameters from extra; the
	// remaining ones become fields of the request.
	Body func(body Object, req agent.Request, tools []any, extra Object) error
	// Structured reports whether an object schema can be the format of a reply. Nil accepts
	// every schema.
	Structured func(schema Object) bool

	// Reader creates the reader of one response, which fills b.
	Reader func(b *Builder) Reader
	// Needs is the field that a response must have, for errors.
	Needs string
}

// Key is a way to authenticate: the header that carries the value of a variable, after a prefix.
type Key struct{ Var, Header, Prefix string }

// Model is an [agent.StructuredModel]. It is safe for concurrent use.
type Model struct {
	api     API
	keyVar  string // variable whose key is sent
	base    *url.URL
	host    string // host of base, with its scheme
	secrets *redact.Masker
	timeout time.Duration
	http    *retryablehttp.Client
}

var _ agent.StructuredModel = (*Model)(nil)

// New creates a model. It sends no request yet.
func New(o Options, api API) (*Model, error) {
	m := &Model{api: api, keyVar: api.Keys[0].Var, secrets: redact.New(nil), timeout: o.Timeout, http: newClient(o.Transport)}
	m.api.Header = api.Header.Clone()
	if m.api.Header == nil {
		m.api.Header = http.Header{}
	}
	sent := false
	for _, k := range api.Keys {
		if value := o.Lookup(k.Var); value != "" {
			m.secrets.Add(value)
			if !sent {
				m.keyVar, sent = k.Var, true
				m.api.Header.Set(k.Header, k.Prefix+value)
			}
		}
	}
	base := o.Lookup(api.URLVar)
	if !sent && (base == "" || !api.KeyOptional) {
		return nil, m.execution(v1.PhaseValidate, api.NoKey, nil)
	}
	u, err := url.Parse(cmp.Or(base, api.URL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The URL may hold a password, so the error does not show it.
		return nil, m.execution(v1.PhaseValidate, api.URLVar+" is not an address: it must begin with http:// or https://, for example http://localhost:8080", nil)
	}
	m.base, m.host = u, u.Scheme+"://"+u.Host
	if m.timeout <= 0 {
		m.timeout = DefaultTimeout
	}
	if password, ok := u.User.Password(); ok {
		m.secrets.Add(password)
	}
	if u.RawQuery != "" {
		m.secrets.Add(u.RawQuery)
	}
	return m, nil
}

// String returns the provider and its address, without secrets.
func (m *Model) String() string { return m.api.Name + " at " + m.host }

// GoString returns String, so that no fmt verb shows a key.
func (m *Model) GoString() string { return m.String() }

// Structured reports whether the schema can be the format of a reply. Its root must be an
// object, and some APIs accept only a part of JSON Schema.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root Object
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && (m.api.Structured == nil || m.api.Structured(root))
}

// Generate implements [agent.Model].
func (m *Model) Generate(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	b := newBuilder(req, on)
	body, err := m.api.Encode(req, b.Stream)
	if err != nil {
		return agent.Reply{}, m.execution(v1.PhaseValidate, err.Error(), nil)
	}
	address := m.base.JoinPath(m.api.Path)
	if m.api.Address != nil {
		if address, err = m.api.Address(m.base, req.Model, b.Stream); err != nil {
			return agent.Reply{}, m.execution(v1.PhaseValidate, err.Error(), nil)
		}
	}
	if err := ctx.Err(); err != nil {
		return agent.Reply{}, err
	}
	call, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	reply, err := m.exchange(call, address, body, b)
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case call.Err() != nil:
		err = m.execution(v1.PhaseTimeout, fmt.Sprintf("incomplete response from %s after %s", m.host, clip.Duration(m.timeout)), context.DeadlineExceeded)
	}
	return reply, err
}

// Lookup returns a variable without surrounding white space, such as the final line break of a file; "" if the
// variable is not set.
func (o Options) Lookup(name string) string {
	env := o.Env
	if env == nil {
		env = os.LookupEnv
	}
	value, _ := env(name)
	return strings.TrimSpace(value)
}
