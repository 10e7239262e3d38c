package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/access"
	"toolctl.dev/toolctl/pkg/admission"
)

// OAuth makes the server an OAuth 2.1 resource server (MCP specification, authorization). The server
// accepts the access tokens that an authorization server issued for it, as JSON Web Tokens signed with an
// asymmetric key, and tells clients where to get a token (RFC 9728).
type OAuth struct {
	// Issuer is the authorization server, as in the iss claim of its tokens. The scheme must be https, or http
	// for a loopback address. Required. Example: https://login.example.com/realms/acme.
	Issuer string
	// Audiences are the values of aud that identify tokens for this server (RFC 8707). Required. Example:
	// https://tools.example.com/mcp.
	Audiences []string
	// Resource is the address of /mcp as clients know it. Default: the first audience that is an http or https
	// URL. If it ends in /mcp, toolsets have addresses below it; if it is an audience too, a token whose audience is
	// the address of a toolset is accepted there.
	Resource string
	// JWKSURL is the address of the issuer's keys. Default: the address in its metadata (RFC 8414, OpenID
	// Connect Discovery 1.0).
	JWKSURL string
	// Scopes are the scopes that a token must have. Default: none.
	Scopes []string
	// PrincipalClaim is the claim that names the principal. Default: sub.
	PrincipalClaim string
	// GroupsClaim is the claim that lists the groups of the principal, for the approvers of policies. Default:
	// groups.
	GroupsClaim string
}

const wellKnown = "/.well-known/oauth-protected-resource"

// Validate returns an error if the options are invalid.
func (o OAuth) Validate() error {
	_, _, err := o.prepare(slog.New(slog.DiscardHandler), nil)
	return err
}

// prepare returns the options with defaults filled in, and the verifier for tokens.
func (o OAuth) prepare(log *slog.Logger, now func() time.Time) (*OAuth, *access.Verifier, error) {
	if o.Resource == "" {
		for _, a := range o.Audiences {
			if _, err := resourceURL(a); err == nil {
				o.Resource = a
				break
			}
		}
	}
	v, err := access.New(access.Options{Issuer: o.Issuer, JWKSURL: o.JWKSURL, Audiences: o.Audiences, PrincipalClaim: o.PrincipalClaim, GroupsClaim: o.GroupsClaim, Logger: log, Now: now})
	if err != nil {
		return nil, nil, err
	}
	if o.Resource == "" {
		return nil, nil, errors.New("no audience is a URL: set the resource to the public URL of the server")
	}
	if _, err := resourceURL(o.Resource); err != nil {
		return nil, nil, fmt.Errorf("resource %q: %w", o.Resource, err)
	}
	for _, s := range o.Scopes {
		// RFC 6749, section 3.3.
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, nil, fmt.Errorf("scope %q: expected letters, digits and signs without spaces, quotes and backslashes", s)
		}
	}
	return &o, v, nil
}

// resourceURL parses an address that may identify a resource (RFC 8707, section 2).
func resourceURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("expected a URL such as https://tools.example.com/mcp")
	}
	return u, nil
}

// resource returns the address of a toolset as clients know it, whether the toolset exists or not. It is the address of
// /mcp if that does not end in /mcp.
func (o *OAuth) resource(toolset string) string {
	if base := strings.TrimSuffix(o.Resource, "/"); v1.IsName(toolset) && strings.HasSuffix(base, "/mcp") {
		return base + "/" + toolset
	}
	return o.Resource
}

// audiences returns the names that tokens may have for a toolset, in addition to those for all toolsets.
func (o *OAuth) audiences(toolset string) []string {
	if own := o.resource(toolset); own != o.Resource && slices.Contains(o.Audiences, o.Resource) {
		return []string{own}
	}
	return nil
}

// metadataURL returns the address of the metadata of a toolset (RFC 9728, section 3.1).
func (o *OAuth) metadataURL(toolset string) string {
	u, err := resourceURL(o.resource(toolset))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
}

// host returns the host name by which clients know the server.
func (o *OAuth) host() string {
	if o == nil {
		return ""
	}
	u, err := resourceURL(o.Resource)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// metadataRoutes serves the metadata at the places where clients look for it: at the root, and below the
// path that the endpoint has here and outside. Toolsets that do not exist have metadata too, because anyone may read
// it.
func (o *OAuth) metadataRoutes() []admission.Route {
	of := func(toolset string) http.Handler {
		return auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: o.resource(toolset), AuthorizationServers: []string{o.Issuer}, ScopesSupported: o.Scopes,
			BearerMethodsSupported: []string{"header"}, ResourceName: "toolctl",
		})
	}
	places := map[string]bool{wellKnown: true, wellKnown + "/mcp": true}
	if u, err := resourceURL(o.Resource); err == nil {
		places[wellKnown+strings.TrimSuffix(u.Path, "/")] = true
	}
	below := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := strings.TrimSuffix(r.URL.Path, "/")
		switch endpoint, toolset := path.Split(at); {
		case places[at]:
			of("").ServeHTTP(w, r)
		case strings.HasSuffix(endpoint, "/mcp/") && places[strings.TrimSuffix(endpoint, "/")] && o.resource(toolset) != o.Resource:
			of(toolset).ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
	return []admission.Route{
		{Pattern: wellKnown, MaxBody: maxHeaderBytes, Enter: admission.Open(of(""))},
		{Pattern: wellKnown + "/", MaxBody: maxHeaderBytes, Enter: admission.Open(below)},
	}
}

// readKeys keeps the issuer's keys up to date until stop is called. stop waits for the end.
func readKeys(v *access.Verifier) (stop func()) {
	if v == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}
