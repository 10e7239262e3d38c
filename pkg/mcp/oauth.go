package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// oauthHandler obtains tokens (MCP specification, basic/authorization). The handler and its tokens live as
// long as their server.
type oauthHandler interface {
	// tokens returns the source of tokens, or nil before the first token.
	tokens(ctx context.Context) oauth2.TokenSource
	// authorize gets a new token after the server refused a request.
	authorize(ctx context.Context, req *http.Request, resp *http.Response) error
	// signingIn sets a function that is called before a person is asked to sign in.
	signingIn(extend func())
}

// newOAuth returns the handler that obtains tokens for the server; nil if its manifest requests no OAuth.
func (u *upstream) newOAuth(r *resolver, to *url.URL) oauthHandler {
	a := u.spec.Spec.Auth
	id, secret := r.client(a)
	client := &http.Client{Transport: bounded{u.base}, Timeout: 30 * time.Second, CheckRedirect: checkRedirect}
	switch {
	case a.OAuth2ClientCredentials != nil:
		c := a.OAuth2ClientCredentials
		return &clientCredentials{client: client, issuer: c.Issuer, config: clientcredentials.Config{
			ClientID: id, ClientSecret: secret, TokenURL: c.TokenURL, Scopes: c.Scopes,
		}}
	case a.OAuth2AuthorizationCode != nil:
		c := a.OAuth2AuthorizationCode
		s := &signIn{u: u, client: client, to: to.String(), scopes: c.Scopes, port: c.RedirectPort, id: id, secret: secret, issuer: c.Issuer, tokenURL: c.TokenURL}
		s.load()
		return s
	}
	return nil
}

// client returns the ID and the secret of this client at the authorization server.
func (r *resolver) client(a *v1.Auth) (id, secret string) {
	const path = "/spec/auth/oauth2_"
	if c := a.OAuth2ClientCredentials; c != nil {
		id = r.variable(path+"client_credentials/client_id_env", c.ClientIDEnv)
		secret = r.variable(path+"client_credentials/client_secret_env", c.ClientSecretEnv)
	}
	if c := a.OAuth2AuthorizationCode; c != nil {
		if c.ClientIDEnv != "" {
			id = r.variable(path+"authorization_code/client_id_env", c.ClientIDEnv)
		}
		if c.ClientSecretEnv != "" {
			secret = r.variable(path+"authorization_code/client_secret_env", c.ClientSecretEnv)
		}
	}
	return id, secret
}

// authError means that no token could be obtained. It explains more than the status of the refused request.
type authError struct{ error }

func (e *authError) Unwrap() error { return e.error }

// bounded limits the size of responses of an authorization server.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: maxErrorBody, finish: func() {}}
	}
	return resp, err
}

// clientCredentials implements the client credentials grant (RFC 6749, section 4.4). Without a token URL,
// it finds the URL when the server first refuses a request.
type clientCredentials struct {
	client *http.Client
	issuer string // the only authorization server that gets the credentials

	mu     sync.Mutex
	config clientcredentials.Config
	source oauth2.TokenSource
}

func (*clientCredentials) signingIn(func()) {}

// withClient makes oauth2 use a client. Tokens outlive the request that needs the first token, so the end
// of that request does not cancel their renewal.
func withClient(ctx context.Context, c *http.Client) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, c)
}

// tokens returns nil while the token URL is unknown.
func (c *clientCredentials) tokens(ctx context.Context) oauth2.TokenSource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source == nil && c.config.TokenURL != "" {
		c.source = c.config.TokenSource(withClient(ctx, c.client))
	}
	return c.source
}

// authorize finds the token URL, or replaces a token that is no longer valid.
func (c *clientCredentials) authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source != nil {
		if t, err := c.source.Token(); err == nil && req.Header.Get("Authorization") != "Bearer "+t.AccessToken {
			return nil // another request has already obtained a new token
		}
	}
	if c.config.TokenURL == "" {
		meta, err := findAuthServer(ctx, c.client, req.URL, resp.Header, c.issuer)
		if err != nil {
			return err
		}
		if c.config.Scopes == nil {
			c.config.Scopes = meta.scopes
		}
		c.config.TokenURL = meta.tokenURL
	}
	c.source = c.config.TokenSource(withClient(ctx, c.client))
	if _, err := c.source.Token(); err != nil {
		return fmt.Errorf("cannot get a token with client credentials: %w", tokenError(err))
	}
	return nil
}

// tokenError omits the body of a response, because it may repeat the credentials that were sent.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		text := "the token endpoint answered " + refused.Response.Status
		if refused.ErrorCode != "" {
			text += ": " + clip.Bytes(refused.ErrorCode, 100)
		}
		return errors.New(text)
	}
	return err
}

type authServer struct {
	tokenURL string
	authURL  string
	scopes   []string
}

// findAuthServer finds the token endpoint for a server that refused a request: first by its protected
// resource metadata (RFC 9728), then by the metadata of the authorization server (RFC 8414). The
// authorization server must be own, which issued the credentials.
func findAuthServer(ctx context.Context, client *http.Client, server *url.URL, refusal http.Header, own string) (authServer, error) {
	if own == "" {
		return authServer{}, errors.New("preregistered credentials need token_url or issuer in spec.auth")
	}
	challenges, err := oauthex.ParseWWWAuthenticate(refusal.Values("WWW-Authenticate"))
	if err != nil {
		return authServer{}, fmt.Errorf("read the server's challenge: %w", err)
	}
	root := *server
	root.Path, root.RawQuery = "", ""
	wellKnown := func(path string) string {
		at := root
		at.Path = "/.well-known/oauth-protected-resource" + path
		return at.String()
	}
	places := [][2]string{{wellKnown("/" + strings.TrimLeft(server.Path, "/")), server.String()}, {wellKnown(""), root.String()}}
	var found authServer
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append([][2]string{{at, server.String()}}, places...)
		}
		if s := c.Params["scope"]; s != "" {
			found.scopes = strings.Fields(s)
		}
	}
	issuer, same := own, func(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }
	for _, p := range places {
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, p[0], p[1], client)
		if err != nil || meta == nil || len(meta.AuthorizationServers) == 0 {
			continue
		}
		if !slices.ContainsFunc(meta.AuthorizationServers, func(a string) bool { return same(a, own) }) {
			return authServer{}, fmt.Errorf("the server names the authorization server %q, not %q (the issuer in spec.auth): the credentials are not sent", clip.Bytes(meta.AuthorizationServers[0], 200), own)
		}
		if found.scopes == nil {
			found.scopes = meta.ScopesSupported
		}
		break
	}
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	switch {
	case err != nil:
		return authServer{}, fmt.Errorf("read the metadata of the authorization server %s: %w", issuer, err)
	case meta == nil: // fixed endpoint names, as before version 2025-06-18
		found.tokenURL, found.authURL = strings.TrimRight(issuer, "/")+"/token", strings.TrimRight(issuer, "/")+"/authorize"
	case !same(meta.Issuer, own):
		return authServer{}, fmt.Errorf("the metadata of %s names the issuer %q: the credentials are not sent", own, clip.Bytes(meta.Issuer, 200))
	default:
		found.tokenURL, found.authURL = meta.TokenEndpoint, meta.AuthorizationEndpoint
	}
	return found, nil
}

// withTokens adds tokens to requests, and obtains a new token when the server refuses a request.
type withTokens struct {
	next  http.RoundTripper
	oauth oauthHandler
}

// withTokens returns a transport that adds tokens if the manifest requests OAuth.
func (l *httpLink) withTokens(next http.RoundTripper) http.RoundTripper {
	if l.oauth == nil {
		return next
	}
	return withTokens{next, l.oauth}
}

func (t withTokens) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	if err := t.oauth.authorize(req.Context(), req, resp); err != nil {
		return nil, &authError{err}
	}
	return t.send(req)
}

// send sends the request with the current token, if any.
func (t withTokens) send(req *http.Request) (*http.Response, error) {
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	if source := t.oauth.tokens(req.Context()); source != nil {
		token, err := source.Token()
		switch refused := (*oauth2.RetrieveError)(nil); {
		case err == nil:
			req.Header.Set("Authorization", "Bearer "+token.AccessToken)
		case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant": // the server refuses the request, and authorize obtains another grant
		default:
			return nil, &authError{fmt.Errorf("no token: %w", tokenError(err))}
		}
	}
	return t.next.RoundTrip(req)
}
