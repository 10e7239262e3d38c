package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/admission"
)

// Access identifies callers for a handler of [HTTPOptions.Mounts].
type Access struct{ endpoint *endpoint }

// Caller is the principal identified by a token.
type Caller struct {
	// Principal is the name. It is empty only if clients need no token.
	Principal string
	// Groups are the groups from an OAuth token, or from the token's line in a file.
	Groups []string
	// Expires is when the token expires; zero if it does not.
	Expires time.Time

	dropped func(func()) (stop func()) // nil if the token cannot be revoked
}

// OnDrop calls f when the token is revoked, until stop is called.
func (c Caller) OnDrop(f func()) (stop func()) {
	if c.dropped == nil {
		return func() {}
	}
	return c.dropped(f)
}

// AccessError explains why a token is not accepted, with the HTTP status for the response.
type AccessError struct {
	Status  int
	Message string
}

func (e *AccessError) Error() string { return e.Message }

// Required reports whether callers of /mcp must send a token.
func (a Access) Required() bool { return a.endpoint.opts.authenticates() }

// Verify returns the caller that a bearer token identifies. The error is an [AccessError].
func (a Access) Verify(ctx context.Context, token string) (Caller, error) {
	if !a.Required() {
		return Caller{}, &AccessError{http.StatusUnauthorized, "no tokens are accepted here"}
	}
	c, refused := a.endpoint.verify(ctx, "", token)
	if refused != nil {
		return Caller{}, &AccessError{refused.status, refused.text}
	}
	return c.Caller, nil
}

// Named makes the mounts accept one more loopback name in addition to those of /mcp. It must be called
// before the server serves requests.
func (a Access) Named(host string) { a.endpoint.named = host }

// mounted checks the origin of a request before a route of [HTTPOptions.Mounts] gets it, and ends the
// request when the server stops. Pages of other origins may not use the route, even if they may use /mcp.
func (d *endpoint) mounted(route admission.Route) admission.Route {
	cross, enter := http.NewCrossOriginProtection(), route.Enter
	route.Enter = func(r *http.Request) admission.Entry {
		origin, sameOrigin := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site") == "same-origin"
		switch {
		case !d.hostAllowed(r) && (d.named == "" || !d.local(r) || !strings.EqualFold(hostname(r.Host), d.named)):
			text := foreignHost
			if strings.HasSuffix(strings.ToLower(hostname(r.Host)), ".localhost") {
				text = "this address belongs to an earlier run or to another program: open the link that toolctl printed at its start, or run 'toolctl ui' on this machine for a new link"
			}
			return admission.TurnAway(admission.Stranger(r), http.StatusForbidden, text)
		case origin != "" && !sameOrigin && !sameHost(origin, r.Host) && !d.own(origin), cross.Check(r) != nil && !d.own(origin):
			return admission.TurnAway(admission.Stranger(r), http.StatusForbidden, foreignOrigin)
		}
		in := enter(r)
		answer := in.Answer
		in.Answer = func(w http.ResponseWriter, r *http.Request) {
			if d.server.calls.Stopping() {
				unavailable(w, admission.ErrStopping.Error())
				return
			}
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer d.server.calls.OnStop(cancel)()
			answer(w, r.WithContext(ctx))
		}
		return in
	}
	return route
}

// own reports whether an origin has one of the names by which clients may know the server, as behind a
// proxy that changes the Host header.
func (d *endpoint) own(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && slices.ContainsFunc(d.opts.AllowedHosts, func(h string) bool { return strings.EqualFold(u.Hostname(), h) })
}
