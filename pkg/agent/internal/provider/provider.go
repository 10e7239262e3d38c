// Package provider is the skeleton of all model providers. A provider brings an [API]: how a
// conversation is written for it, and how its answers are read. The rest is here once:
// addresses and keys, requests and retries, streams, bounds, errors without secrets, tools,
// parameters, and the making of a reply.
package provider

import (
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

// DefaultTimeout bounds one Generate, its retries included. Models that think can be
// silent for minutes.
const DefaultTimeout = 10 * time.Minute

// Options say how a model is reached. The zero value reads the environment.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Transport sends the requests. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Timeout bounds one Generate, its retries included. Default: 10 minutes.
	Timeout time.Duration
}

// Object is a JSON object of a request.
type Object = map[string]any

// API is what one provider brings.
type API struct {
	// Name is the provider's name, such as "openai". Errors begin with it.
	Name string
	// KeyVar and URLVar are the variables of its key and its base URL. Errors name them.
	KeyVar, URLVar string
	// Example is the name of a model, for errors.
	Example string
	// Header is sent with every request.
	Header http.Header
	// Secrets are shown in no error.
	Secrets []string
	// Address returns the URL at which a model is asked.
	Address func(base *url.URL, model string, stream bool) (*url.URL, error)

	// SchemaKey is the field of a tool that holds the JSON Schema of its arguments.
	SchemaKey string
	// ChoiceKey is the field of a request that holds the choice of tools, and Choices are its
	// values by those of [agent.Request.ToolChoice].
	ChoiceKey string
	Choices   map[string]any
	// Reserved are the fields that no parameter may overwrite. Renamed are pairs of names: a
	// parameter, and what the API calls it.
	Reserved []string
	Renamed  [][2]string
	// Streamed are the fields of a request that asks for a stream.
	Streamed Object
	// Body adds the conversation to a request. It may take parameters out of extra; those
	// that it leaves become fields of the request.
	Body func(body Object, req agent.Request, tools []any, extra Object) error
	// Structured reports whether the schema of an object can be the format of a reply. Nil
	// takes every schema.
	Structured func(schema Object) bool

	// Reader makes the reader of one answer, which fills b.
	Reader func(b *Builder) Reader
	// Needs is what an answer must have, for errors.
	Needs string
}

// Model is an [agent.StructuredModel]. Many goroutines may use it at once.
type Model struct {
	api     API
	base    *url.URL
	host    string // of base, with its scheme
	secrets *redact.Masker
	timeout time.Duration
	http    *retryablehttp.Client
}

var _ agent.StructuredModel = (*Model)(nil)

// New makes a model whose API is at base. It asks nothing of the API yet.
func New(o Options, api API, base string) (*Model, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// It may hold a password, so the error does not show it.
		return nil, Invalid(api.Name, "%s is not an address: it must begin with http:// or https://, for example http://localhost:8080", api.URLVar)
	}
	m := &Model{api: api, base: u, host: u.Scheme + "://" + u.Host, secrets: redact.New(nil, api.Secrets...), timeout: o.Timeout, http: newClient(o.Transport)}
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

// String names the provider and where it is asked, and nothing secret.
func (m *Model) String() string { return m.api.Name + " at " + m.host }

// GoString is String, so that no verb of fmt shows a key.
func (m *Model) GoString() string { return m.String() }

// Structured reports whether the schema can be the format of a reply: its root must be an
// object, and some APIs take a part of JSON Schema only.
func (m *Model) Structured(schema json.RawMessage) bool {
	var root Object
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && (m.api.Structured == nil || m.api.Structured(root))
}

// Generate is [agent.Model.Generate].
func (m *Model) Generate(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	b := newBuilder(req, on)
	body, err := m.api.Encode(req, b.Stream)
	if err != nil {
		return agent.Reply{}, m.execution(v1.PhaseValidate, err.Error(), nil)
	}
	address, err := m.api.Address(m.base, req.Model, b.Stream)
	if err != nil {
		return agent.Reply{}, m.execution(v1.PhaseValidate, err.Error(), nil)
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

// Lookup returns the first of the variables that is set and not empty, and its name.
// Spaces around a value, such as the line end of a file, are no part of it.
func (o Options) Lookup(names ...string) (value, name string) {
	env := o.Env
	if env == nil {
		env = os.LookupEnv
	}
	for _, name := range names {
		if v, ok := env(name); ok {
			if v = strings.TrimSpace(v); v != "" {
				return v, name
			}
		}
	}
	return "", ""
}
