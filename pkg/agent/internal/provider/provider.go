// Package provider is what the packages of all model providers share: a bounded and
// retrying HTTP client, requests and streams of JSON, one reading of what went wrong, and
// the parts of a request that mean the same everywhere.
//
// [Client.Do] is the one entry to an API: it bounds the time, watches the exchange, keeps
// keys out of every error, and turns a panic in the reading of an answer into an error.
package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

// DefaultTimeout bounds one Generate, its retries included. Models that think can be
// silent for minutes.
const DefaultTimeout = 10 * time.Minute

// Options say how a model is reached. The zero value reads the
// environment. Every provider has them.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Transport sends the requests. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Timeout bounds one Generate, its retries included. Default: 10 minutes.
	Timeout time.Duration
}

// Config is what one provider brings.
type Config struct {
	// Name is the provider's name, such as "openai". Errors begin with it.
	Name string
	// KeyVar and URLVar are the variables of its key and its base URL. Errors name them.
	KeyVar, URLVar string
	// BaseURL is the address that is asked, for errors.
	BaseURL string
	// Secrets are shown in no error.
	Secrets []string
	// Transport sends the requests. Default: [http.DefaultTransport].
	Transport http.RoundTripper
	// Timeout bounds one call of [Client.Do]. Default: [DefaultTimeout].
	Timeout time.Duration
}

// Client calls the API of one provider. Many goroutines may use it at once.
type Client struct {
	config  Config
	secrets *redact.Masker
	host    string
	http    *http.Client
}

// New makes a client.
func New(c Config) *Client {
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	p := &Client{config: c, secrets: redact.New(nil, c.Secrets...), host: c.BaseURL}
	if u, err := url.Parse(c.BaseURL); err == nil {
		p.host = u.Scheme + "://" + u.Host
		if password, ok := u.User.Password(); ok {
			p.secrets.Add(password)
		}
		if u.RawQuery != "" {
			p.secrets.Add(u.RawQuery)
		}
	}
	p.http = newHTTPClient(c.Transport)
	return p
}

// String names the provider and where it is asked, and nothing secret.
func (c *Client) String() string { return c.config.Name + " at " + c.host }

// Do runs one exchange with the API. ask calls [Client.Ask] or [Client.Stream]
// with the context that it is handed, and fills the reply as far as it gets; Do makes one error of what went wrong.
// The error of ctx comes back as it is.
func (c *Client) Do(ctx context.Context, ask func(ctx context.Context, reply *agent.Reply) error) (reply agent.Reply, err error) {
	if err := ctx.Err(); err != nil {
		return reply, err
	}
	call, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	x := &exchange{}
	defer func() {
		// Foreign input must not end the process.
		if p := recover(); p != nil {
			err = c.violation(ctx, call, x, fmt.Errorf("its reader failed: %v", p))
		}
	}()
	err = ask(context.WithValue(call, exchangeKey{}, x), &reply)
	if status, _ := x.answer(); err == nil && x.failed() == nil && status < 300 {
		return reply, nil
	}
	return reply, c.violation(ctx, call, x, err)
}

// violation makes the one error of a call that failed.
func (c *Client) violation(ctx, call context.Context, x *exchange, err error) error {
	status, body := x.answer()
	broken := x.failed()
	var refused *agent.ModelError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case call.Err() != nil:
		return c.execution(v1.PhaseTimeout, fmt.Sprintf("incomplete response from %s after %s", c.host, clip.Duration(c.config.Timeout)), context.DeadlineExceeded)
	case status >= 300:
		return c.refusal(status, body, x.location())
	case errors.As(err, &refused):
		return c.finish(refused)
	case status == 0 && (errors.Is(broken, io.EOF) || errors.Is(broken, syscall.ECONNRESET)):
		return c.execution(v1.PhaseConnect, c.host+" closed the connection before it answered", broken)
	case status == 0 && broken != nil:
		return c.execution(v1.PhaseConnect, fmt.Sprintf("cannot reach %s: %v; check %s and the network", c.host, broken, c.config.URLVar), broken)
	case errors.Is(broken, errTooLarge):
		return c.execution(v1.PhaseValidate, broken.Error(), broken)
	case broken != nil:
		return c.execution(v1.PhaseExecute, fmt.Sprintf("the answer of %s broke off: %v", c.host, broken), broken)
	}
	if typed, ok := errors.AsType[*v1.ExecutionError](err); ok {
		return typed
	}
	if status == 0 {
		return c.execution(v1.PhaseValidate, "the request cannot be made: "+reading(err), nil)
	}
	if media := x.foreign(); media != "" {
		return c.execution(v1.PhaseValidate, fmt.Sprintf("%s answers with %s and not with JSON: check %s", c.host, media, c.config.URLVar), nil)
	}
	return c.execution(v1.PhaseValidate, "the answer cannot be read: "+reading(err), nil)
}

// Cut is the error of a stream that ended before its end was said.
func (c *Client) Cut() error {
	return c.execution(v1.PhaseExecute, "the stream of "+c.host+" ended before the reply was complete", nil)
}

// Invalid is the error of a request that cannot be made.
func (c *Client) Invalid(format string, args ...any) error {
	return c.execution(v1.PhaseValidate, fmt.Sprintf(format, args...), nil)
}

func (c *Client) execution(phase, message string, cause error) error {
	return &v1.ExecutionError{Phase: phase, Message: c.config.Name + ": " + clean(c.secrets, message, maxMessage), Cause: cause}
}

// Lookup returns the first of the variables that is set and not empty, and its name.
// Spaces around a value, such as the line end of a file, are no part of it.
func Lookup(env func(string) (string, bool), names ...string) (value, name string) {
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

// Invalid is the error of a setting, for a provider that has no [Client] yet.
func Invalid(name, format string, args ...any) error {
	return &v1.ExecutionError{Phase: v1.PhaseValidate, Message: name + ": " + fmt.Sprintf(format, args...)}
}

// BaseURL reads a base URL. It may hold a password, so the error does not show it.
func BaseURL(name, variable, value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, Invalid(name, "%s is not an address: it must begin with http:// or https://, for example http://localhost:8080", variable)
	}
	return u, nil
}
