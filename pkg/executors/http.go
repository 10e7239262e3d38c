package executors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/netaddr"
)

// HTTP is the executor of tools with spec.http. It shares connections and OAuth 2
// tokens between tools until it is closed.
//
// Addresses are checked when they are dialled: unless the tool or [Options] allows
// private networks, only the public internet is reachable, regardless of DNS and
// redirects. Proxies are not used. Environment values, and everything that spec.redact
// and spec.http.redact name, are masked in errors and results.
type HTTP struct {
	opts     Options
	env      envref.Env
	log      *slog.Logger
	resolver *net.Resolver // nil means the resolver of the system
	allowed  netaddr.Allowed
	allowErr error // error in Options.AllowNetwork

	tools perTool[*httpTool]

	life   sync.RWMutex // every call holds it for reading
	closed bool
	work   sync.WaitGroup // running requests for tokens

	mu         sync.Mutex
	transports map[connection]*http.Transport
	tokens     map[[sha256.Size]byte]*tokenSource
	rates      map[v1.Key]*rate
}

// NewHTTP returns the HTTP executor.
func NewHTTP(o Options) *HTTP {
	h := &HTTP{
		opts: o, env: o.environment(), log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		transports: map[connection]*http.Transport{}, tokens: map[[sha256.Size]byte]*tokenSource{}, rates: map[v1.Key]*rate{},
	}
	h.allowed, h.allowErr = netaddr.Parse(o.AllowNetwork)
	return h
}

var (
	_ Executor  = (*HTTP)(nil)
	_ io.Closer = (*HTTP)(nil)
)

// Name returns "http".
func (*HTTP) Name() string { return "http" }

// Check returns the violations that would fail every call of the tool: URLs,
// templates, mappings and variables that cannot be read. It reads no values of
// variables and opens no files.
func (h *HTTP) Check(t *v1.Tool) []v1.Violation {
	p := h.prepared(t)
	return slices.Concat(p.violations, arguments(t, p.uses), p.listFits(t))
}

// listFits refuses an output schema that allows no list for a tool with pagination, whose result is a list.
func (p *httpTool) listFits(t *v1.Tool) []v1.Violation {
	var root struct {
		Type any `json:"type"`
	}
	if p.pages == nil || p.resultMapping != nil || t.Spec.Validation.ResultMode() != v1.Enforce || json.Unmarshal(t.Spec.OutputSchema, &root) != nil {
		return nil
	}
	types, many := root.Type.([]any)
	if root.Type == nil || root.Type == "array" || many && slices.Contains(types, any("array")) {
		return nil
	}
	const path = "/spec/output_schema"
	return []v1.Violation{{Path: path, Expected: "a schema of type array", Got: fmt.Sprint(root.Type), Source: t.Field(path),
		Message: "spec.http.paginate combines all pages into one list, which output_schema does not allow: describe the list, or turn it into an object with spec.http.response.body_mapping"}}
}

// Unset returns a violation for each variable of a Tool that is not set, or that the tool may
// not read.
func (h *HTTP) Unset(o v1.Object) []v1.Violation {
	t, ok := o.(*v1.Tool)
	if !ok {
		return nil
	}
	p := h.prepared(t)
	if len(p.violations) > 0 {
		return envref.Unreadable(slices.Clone(p.violations))
	}
	_, unset := p.resolve(h.env)
	for i := range unset {
		unset[i].Source = t.Field(unset[i].Path)
	}
	return unset
}

// Close waits for running calls, then closes all connections. Later calls fail.
func (h *HTTP) Close() error {
	h.mu.Lock()
	for _, t := range h.tokens {
		t.stop()
	}
	h.mu.Unlock()
	h.life.Lock()
	defer h.life.Unlock()
	h.closed = true
	h.work.Wait()
	for _, t := range h.transports {
		t.CloseIdleConnections()
	}
	return nil
}

// Execute sends the request of a call, with retries where these are safe, and turns the
// response into a result.
//
// A response other than 2xx is a Result with Status "failed" and a
// [v1.ExecutionError]. Errors of the manifest or the environment are a
// [v1.ValidationError] of type manifest_invalid, those of the arguments one of type
// args_invalid. Result.Attempts is always set.
func (h *HTTP) Execute(ctx context.Context, t *v1.Tool, args json.RawMessage) (v1.Result, error) {
	h.life.RLock()
	defer h.life.RUnlock()
	if h.closed {
		return v1.Result{}, &v1.ExecutionError{Tool: t.Metadata.Name, Phase: v1.PhaseExecute, Message: "the HTTP executor is closed"}
	}
	if h.allowErr != nil {
		return v1.Result{}, &v1.ExecutionError{Tool: t.Metadata.Name, Phase: v1.PhaseConnect, Message: "AllowNetwork: " + h.allowErr.Error(), Cause: h.allowErr}
	}
	p := h.prepared(t)
	if len(p.violations) > 0 {
		return v1.Result{}, v1.NewValidationError(v1.ManifestInvalid, t.Metadata.Name, p.violations)
	}
	d, err := p.draft(ctx, t.Metadata.Name, args)
	if err != nil {
		return v1.Result{}, contextError(ctx, t, err)
	}
	c := &httpCall{h: h, tool: t, p: p, args: args, draft: d}
	if err := c.prepare(ctx); err != nil {
		return v1.Result{}, contextError(ctx, t, err)
	}
	res, err := c.run(ctx)
	if c.reached {
		res.Effects = []v1.Effect{{Kind: v1.EffectHTTP, Method: p.method, URL: p.shown, Host: c.req.URL.Host, HTTPStatus: c.code}}
	}
	return res, err
}

// prepare adds the environment and the authorization to a draft.
func (c *httpCall) prepare(ctx context.Context) error {
	values, violations := c.p.resolve(c.h.env)
	if violations != nil {
		return c.invalid(violations...)
	}
	for i, v := range c.p.vars {
		if v.secret && !(v.Optional && values[i] == v.Fallback) {
			c.secrets.add(values[i])
		}
	}
	client, err := c.httpClient()
	if err != nil {
		return err
	}
	if err := c.build(ctx, values); err != nil {
		return err
	}
	if c.p.auth.oauth != nil {
		c.source = c.h.tokenSource(c.p.auth.oauth, values, client.Transport)
	}
	auth, err := c.p.authorization(ctx, values, c.source, &c.secrets)
	if err != nil {
		return c.tokenFailure(ctx, err)
	}
	if auth != "" {
		c.req.Header.Set("Authorization", auth)
	}
	return nil
}

// httpClient returns the client of the tool. The first call creates it, since Check reads no certificates.
func (c *httpCall) httpClient() (*http.Client, error) {
	if client := c.p.client.Load(); client != nil {
		return client, nil
	}
	transport, violations := c.h.transport(c.tool, c.p.spec.AllowPrivateNetwork || c.h.opts.AllowPrivateNetwork)
	if violations != nil {
		return nil, c.invalid(violations...)
	}
	client := &http.Client{Transport: transport, Timeout: c.p.timeout, CheckRedirect: c.p.checkRedirect}
	c.p.client.Store(client)
	return client, nil
}

// build makes the request from a draft and the values of its variables.
func (c *httpCall) build(ctx context.Context, values []string) error {
	const at = "/spec/http/url"
	d := c.draft
	base := d.base.fill(values, asIs)
	if d.base.variables() { // the variable may end in a slash or contain a path
		if d.rest != "" {
			base = strings.TrimSuffix(base, "/")
		}
		if strings.ContainsAny(base, "?#") {
			return c.invalid(v1.Violation{Path: at, Expected: "an address without a query", Got: "one with a query", Message: "the variable with the address must not contain a query"})
		}
	}
	c.base = base
	c.trace.GotConn = func(httptrace.GotConnInfo) { c.connected, c.reached = true, true }
	traced := httptrace.WithClientTrace(ctx, &c.trace)
	req, err := http.NewRequestWithContext(traced, c.p.method, base+d.rest.fill(values, urlValue), nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Hostname() == "" {
		shown := quoted(c.shownURL(ctx))
		return c.invalid(v1.Violation{Path: at, Expected: "an http or https URL", Got: shown, Message: shown + " is not an http or https URL with a host"})
	}
	if password, ok := req.URL.User.Password(); ok {
		c.secrets.add(password)
	}
	c.req = req
	if d.hasBody {
		c.body = c.p.bodyOf(d, values)
	}
	return c.setHeaders(d, values)
}

func (c *httpCall) setHeaders(d *draft, values []string) error {
	h := http.Header{}
	h.Set("Accept", acceptHeader(c.p.accepts))
	h.Set("User-Agent", "toolctl")
	if d.hasBody {
		h.Set("Content-Type", "application/json")
	}
	var violations []v1.Violation
	for _, f := range d.headers {
		value := f.text.fill(values, asIs)
		if !isHeaderValue(value) {
			violations = append(violations, v1.Violation{Path: f.path, Expected: "one line of text", Got: "control characters",
				Message: "a header value cannot contain a line break or another control character: check the value of the variable"})
		}
		h.Set(f.name, value)
	}
	if violations != nil {
		return c.invalid(violations...)
	}
	if host := h.Get("Host"); host != "" {
		c.req.Host = host
		delete(h, "Host")
	}
	if c.h.opts.Propagate != nil {
		c.h.opts.Propagate(c.req.Context(), h)
	}
	c.req.Header = h
	return nil
}

// shownURL returns the URL for messages: without user, and with variables and redacted
// arguments masked.
func (c *httpCall) shownURL(ctx context.Context) string {
	const most = 300
	d := c.p.masked(ctx, c.tool.Metadata.Name, c.draft, c.args)
	masks := make([]string, len(c.p.vars))
	for i := range masks {
		masks[i] = "***"
	}
	return clip.Bytes(c.hidden().text(hideUser(c.base)+d.rest.fill(masks, asIs)), most)
}

// hidden returns the secrets and the values of redacted arguments. The latter are masked in
// messages about a failure, but not wherever they occur in a result.
func (c *httpCall) hidden() *secrets {
	if c.masks == nil {
		c.masks = &secrets{c.secrets.masks.Bare()}
		c.masks.arguments(c.args, c.p.redact)
	}
	return c.masks
}

// invalid returns the error for violations of the manifest or its environment.
func (c *httpCall) invalid(violations ...v1.Violation) error {
	for i := range violations {
		violations[i].Source = c.tool.Field(violations[i].Path)
	}
	return v1.NewValidationError(v1.ManifestInvalid, c.tool.Metadata.Name, violations)
}

// contextError returns err, or an error about the caller's context if that has ended.
func contextError(ctx context.Context, t *v1.Tool, err error) error {
	switch cause := ctx.Err(); {
	case cause == nil:
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		return &v1.ExecutionError{Tool: t.Metadata.Name, Phase: v1.PhaseTimeout, Message: "timed out before the request was sent", Cause: cause}
	default:
		return &v1.ExecutionError{Tool: t.Metadata.Name, Phase: v1.PhaseExecute, Message: "cancelled before the request was sent", Cause: cause}
	}
}
