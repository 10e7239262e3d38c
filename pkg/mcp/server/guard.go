package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/access"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/wire"
	"toolctl.dev/toolctl/pkg/replica"
)

// caller is the sender of a request, according to its token.
type caller struct {
	Caller
	scopes  []string // of an OAuth token
	toolset string   // in the address of the request
	// forwarded is set if another replica passed the request on.
	forwarded *replica.Forwarded
}

// refusal describes why a request is rejected.
type refusal struct {
	status int
	code   string // of RFC 6750, section 3.1; empty if the request had no token
	text   string
}

// enter checks the origin of a request to /mcp and identifies its sender. A web page must not reach the
// server through its visitor's browser, even by a name that resolves to this machine (MCP specification,
// transports, security warning).
func (d *endpoint) enter(r *http.Request) admission.Entry {
	stranger := admission.Stranger(r)
	if !d.hostAllowed(r) {
		return admission.TurnAway(stranger, http.StatusForbidden, foreignHost)
	}
	origin := r.Header.Get("Origin")
	if !slices.Contains(d.opts.AllowedOrigins, origin) {
		if origin != "" && !sameHost(origin, r.Host) || d.cross.Check(r) != nil {
			return admission.TurnAway(stranger, http.StatusForbidden, foreignOrigin)
		}
		return d.identified(r)
	}
	h := http.Header{
		"Access-Control-Allow-Origin":   {origin},
		"Vary":                          {"Origin"},
		"Access-Control-Expose-Headers": {wire.HeaderSession + ", WWW-Authenticate, Retry-After"},
	}
	if r.Method != http.MethodOptions {
		in := d.identified(r)
		in.Header = h
		return in
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	return admission.Entry{Header: h, Early: true, Answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
}

const (
	foreignHost   = "the Host header is not one of this server's names"
	foreignOrigin = "requests from this origin are not allowed"
)

// identified identifies the sender of a request.
func (d *endpoint) identified(r *http.Request) admission.Entry {
	in, known := admission.Entry{Caller: admission.Anonymous(r)}, caller{}
	if d.opts.authenticates() {
		c, refused := d.authenticate(r)
		if refused != nil { // also slows down attempts to guess tokens
			return admission.Entry{Caller: admission.Stranger(r), Early: true, Answer: func(w http.ResponseWriter, _ *http.Request) { d.challenge(w, r.PathValue("toolset"), *refused) }}
		}
		in.Caller, known = admission.Principal(c.Principal), c
	}
	known.toolset = r.PathValue("toolset")
	if !d.server.set.Load().admits(&known) {
		return missing(in.Caller)
	}
	switch {
	case d.server.calls.Stopping():
		in.Early, in.Answer = true, d.refuse
	case !acceptable(r):
		in.Early, in.Answer = true, unacceptable
	default:
		in.Answer = d.serve(known)
	}
	return in
}

func (o *HTTPOptions) authenticates() bool { return o.Tokens != nil || o.OAuth != nil }

// authenticate reads the token of a request (RFC 6750, section 2.1; tokens in a query are not accepted).
func (d *endpoint) authenticate(r *http.Request) (caller, *refusal) {
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 {
		return caller{}, &refusal{http.StatusBadRequest, "invalid_request", "more than one Authorization header"}
	}
	scheme, presented, _ := strings.Cut(strings.TrimSpace(strings.Join(headers, "")), " ")
	presented = strings.TrimSpace(presented)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return caller{}, &refusal{http.StatusUnauthorized, "", "no bearer token"}
	case presented == "" || strings.ContainsAny(presented, " \t,"):
		return caller{}, &refusal{http.StatusBadRequest, "invalid_request", "the Authorization header is not Bearer and one token"}
	}
	return d.verify(r.Context(), r.PathValue("toolset"), presented)
}

// verify returns the caller that a token for a toolset identifies.
func (d *endpoint) verify(ctx context.Context, toolset, presented string) (caller, *refusal) {
	if t := d.opts.Tokens; t != nil {
		if known, ok := t.of(presented); ok {
			return caller{Caller: Caller{Principal: known.name, Groups: known.groups, dropped: func(f func()) func() { return t.onDrop(known, f) }}}, nil
		}
		if d.opts.OAuth == nil {
			return caller{}, &refusal{http.StatusUnauthorized, "invalid_token", "the token is unknown"}
		}
	}
	token, err := d.verifier.Verify(ctx, presented, d.opts.OAuth.audiences(toolset)...)
	switch {
	case errors.Is(err, access.ErrUnavailable), ctx.Err() != nil:
		return caller{}, &refusal{http.StatusServiceUnavailable, "", access.ErrUnavailable.Error()}
	case err != nil:
		return caller{}, &refusal{http.StatusUnauthorized, "invalid_token", err.Error()}
	}
	for _, s := range d.opts.OAuth.Scopes {
		if !slices.Contains(token.Scopes, s) {
			return caller{}, &refusal{http.StatusForbidden, "insufficient_scope", fmt.Sprintf("the token lacks the scope %q", s)}
		}
	}
	return caller{Caller: Caller{Principal: token.Principal, Groups: token.Groups, Expires: token.Expires}, scopes: token.Scopes}, nil
}

// challenge rejects a request and tells the client how to authenticate (RFC 6750, section 3; RFC 9728,
// section 5.1; MCP specification, authorization).
func (d *endpoint) challenge(w http.ResponseWriter, toolset string, why refusal) {
	if why.status == http.StatusServiceUnavailable {
		unavailable(w, why.text)
		return
	}
	params := []string{`realm="toolctl"`}
	if o := d.opts.OAuth; o != nil {
		params = []string{fmt.Sprintf("resource_metadata=%q", o.metadataURL(toolset))}
		if len(o.Scopes) > 0 {
			params = append(params, fmt.Sprintf("scope=%q", strings.Join(o.Scopes, " ")))
		}
	}
	if why.code != "" {
		params = append(params, fmt.Sprintf("error=%q", why.code), fmt.Sprintf("error_description=%q", strings.ReplaceAll(why.text, `"`, "'")))
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
	http.Error(w, why.text, why.status)
}

// lasting returns the request for a stream, which ends when the token of the request expires or is revoked,
// or when ends calls its function.
func (c *caller) lasting(r *http.Request, ends func(func()) (forget func() bool)) (_ *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	if !c.Expires.IsZero() {
		cancel()
		ctx, cancel = context.WithDeadline(r.Context(), c.Expires)
	}
	keep, forget := ends(cancel), c.OnDrop(cancel)
	return r.WithContext(ctx), func() { forget(); keep(); cancel() }
}
