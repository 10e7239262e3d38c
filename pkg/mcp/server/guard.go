package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"toolctl.dev/toolctl/pkg/mcp/server/internal/access"
)

// caller is who sent a request, as far as its token says.
type caller struct {
	principal string    // empty when nobody is asked for
	groups    []string  // of an OAuth token
	scopes    []string  // of an OAuth token
	expires   time.Time // zero when the token does not end by itself
	// dropped calls a function when the token is one no longer, until stop is called.
	dropped func(func()) (stop func())
}

// userOf is the principal of a token; empty without one.
func userOf(t *auth.TokenInfo) string {
	if t == nil {
		return ""
	}
	return t.UserID
}

// refusal is why a request is turned away.
type refusal struct {
	status int
	code   string // of RFC 6750, section 3.1; empty when the request brought no token
	text   string
}

type callerKey struct{}

// guard asks who sends a request, holds each to its rate, and tells the SDK, which
// holds a session to its user.
func (d *endpoint) guard(next http.Handler) http.Handler {
	if !d.opts.authenticates() {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if d.withinSharedRate(w, r, "address "+address(r)) {
				next.ServeHTTP(w, r)
			}
		})
	}
	known := asCaller(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, refused := d.authenticate(r)
		if refused != nil {
			if d.withinRate(w, "address "+address(r)) { // who guesses tokens is slowed down too
				d.challenge(w, *refused)
			}
			return
		}
		if d.withinSharedRate(w, r, "principal "+c.principal) {
			known.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
		}
	})
}

func (o *HTTPOptions) authenticates() bool { return o.Tokens != nil || o.OAuth != nil }

// authenticate reads the token of a request (RFC 6750, section 2.1; tokens in a query
// are not taken).
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
	return d.verify(r.Context(), presented)
}

// verify returns who a token is of.
func (d *endpoint) verify(ctx context.Context, presented string) (caller, *refusal) {
	if t := d.opts.Tokens; t != nil {
		if known, ok := t.of(presented); ok {
			return caller{principal: known.name, groups: known.groups, dropped: func(f func()) func() { return t.onDrop(known, f) }}, nil
		}
		if d.opts.OAuth == nil {
			return caller{}, &refusal{http.StatusUnauthorized, "invalid_token", "the token is not known"}
		}
	}
	token, err := d.verifier.Verify(ctx, presented)
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
	return caller{principal: token.Principal, groups: token.Groups, scopes: token.Scopes, expires: token.Expires}, nil
}

// challenge turns a request away and says how to come back (RFC 6750, section 3; RFC
// 9728, section 5.1; MCP specification, authorization).
func (d *endpoint) challenge(w http.ResponseWriter, why refusal) {
	if why.status == http.StatusServiceUnavailable {
		unavailable(w, why.text)
		return
	}
	params := []string{`realm="toolctl"`}
	if o := d.opts.OAuth; o != nil {
		params = []string{fmt.Sprintf("resource_metadata=%q", o.metadataURL())}
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

// lasting returns the request of a stream, which ends when the token that opened it does, or when ends says so.
func lasting(r *http.Request, ends func(func()) (forget func() bool)) (_ *http.Request, stop func()) {
	c, _ := r.Context().Value(callerKey{}).(caller)
	ctx, cancel := context.WithCancel(r.Context())
	if !c.expires.IsZero() {
		cancel()
		ctx, cancel = context.WithDeadline(r.Context(), c.expires)
	}
	keep := ends(cancel)
	forget := func() {}
	if c.dropped != nil {
		forget = c.dropped(cancel)
	}
	return r.WithContext(ctx), func() { forget(); keep(); cancel() }
}

// withinRate answers a request that comes too soon after others of the same key.
func (d *endpoint) withinRate(w http.ResponseWriter, key string) bool {
	return tooSoon(w, d.rates.Take(key))
}

// withinSharedRate is withinRate over all servers that count together.
func (d *endpoint) withinSharedRate(w http.ResponseWriter, r *http.Request, key string) bool {
	wait, err := d.rates.TakeShared(r.Context(), key)
	if err != nil {
		unavailable(w, "requests cannot be counted for the rate limit: "+err.Error())
		return false
	}
	return tooSoon(w, wait)
}

// tooSoon answers a request that has to wait; true when it need not.
func tooSoon(w http.ResponseWriter, wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	w.Header().Set("Retry-After", fmt.Sprint(int((wait+time.Second-1)/time.Second)))
	http.Error(w, "too many requests: come back later", http.StatusTooManyRequests)
	return false
}

// address is where a request came from. Of an IPv6 address one party has a whole
// network, so these count as one.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	const network = 64
	if ip = ip.Unmap(); ip.Is6() {
		if p, err := ip.WithZone("").Prefix(network); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
