package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
)

// signIn implements the authorization code grant with PKCE (RFC 6749, section 4.1; RFC 7636): a person
// signs in through a browser, which then returns to a port of this machine.
type signIn struct {
	u          *upstream
	client     *http.Client
	to         string // the server's address
	id, secret string // both empty if the client registers itself (RFC 7591)
	issuer     string // with an ID, the only authorization server that gets it
	tokenURL   string // the only token endpoint that gets the credentials
	scopes     []string
	port       int

	asking sync.Mutex // ensures that only one sign-in runs at a time

	mu     sync.Mutex
	source oauth2.TokenSource
	extend func()
}

func (s *signIn) signingIn(extend func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extend = extend
}

// tokens returns nil before the first sign-in.
func (s *signIn) tokens(context.Context) oauth2.TokenSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source
}

// authorize asks the person to sign in.
func (s *signIn) authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	open := s.u.owner.opts.OpenBrowser
	if open == nil {
		return errors.New("the server requires a sign-in: call it once from a terminal")
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	s.mu.Lock()
	source, extend := s.source, s.extend
	s.mu.Unlock()
	if source != nil {
		if t, err := source.Token(); err == nil && req.Header.Get("Authorization") != "Bearer "+t.AccessToken {
			return nil // another request has signed in already
		}
	}
	if extend != nil {
		extend()
	}
	own, client, err := s.bind(ctx, req, resp)
	if err != nil {
		return fmt.Errorf("the sign-in failed: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return fmt.Errorf("wait for the browser: %w", err)
	}
	defer l.Close()
	back := "http://" + l.Addr().String() + "/callback"
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back, Client: client, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if page, _, _ := strings.Cut(a.URL, "?"); own.authURL != "" && page != own.authURL {
				return nil, fmt.Errorf("the sign-in page is %s, which does not belong to the issuer %s", clip.Bytes(page, 200), s.issuer)
			}
			page, err := url.Parse(a.URL)
			if err != nil || page.Scheme != "https" && page.Scheme != "http" { // could open a file or a program
				return nil, fmt.Errorf("the sign-in page is %q: expected an https address", clip.Bytes(a.URL, 200))
			}
			return waitForBrowser(ctx, l, page.Query().Get("state"), func() error { return open(ctx, s.u.key, a.URL) })
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			saved := &savedToken{URL: s.to, Issuer: s.issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: c.Endpoint, Scopes: c.Scopes, Token: t}
			s.save(saved)
			return s.keeping(ctx, c, saved), nil
		},
	}
	if s.scopes != nil {
		config.ScopeFilter = func([]string) []string { return s.scopes }
	}
	if s.id != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: s.id}
		if s.secret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: s.secret}
		}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: s.u.owner.opts.Name, RedirectURIs: []string{back}, GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}}
	}
	h, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	if err := h.Authorize(ctx, req, resp); err != nil {
		return fmt.Errorf("the sign-in failed: %w", tokenError(err))
	}
	source, err = h.TokenSource(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.source = source
	s.mu.Unlock()
	return nil
}

// bind determines which authorization server may get the credentials of a preregistered client, and returns
// an HTTP client that sends them to no other server. It is needed because the MCP server controls
// discovery, and its metadata may change. A client that registers itself has no secret to protect.
func (s *signIn) bind(ctx context.Context, req *http.Request, resp *http.Response) (authServer, *http.Client, error) {
	if s.id == "" {
		return authServer{}, s.client, nil
	}
	own := authServer{tokenURL: s.tokenURL}
	if s.issuer != "" {
		var err error
		if own, err = findAuthServer(ctx, s.client, req.URL, resp.Header, s.issuer); err != nil {
			return own, nil, err
		}
		if s.tokenURL != "" {
			own.tokenURL = s.tokenURL
		}
	}
	if own.tokenURL == "" {
		return own, nil, errors.New("preregistered credentials need token_url or issuer in spec.auth")
	}
	client := *s.client
	client.Transport = tokensOnlyTo{s.client.Transport, own.tokenURL}
	return own, &client, nil
}

// tokensOnlyTo refuses requests with a body, which may contain credentials, to all URLs except one token
// endpoint.
type tokensOnlyTo struct {
	http.RoundTripper
	url string
}

func (t tokensOnlyTo) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.URL.String() != t.url {
		return nil, fmt.Errorf("the token endpoint is %s, not %s: the credentials are not sent", clip.Bytes(req.URL.String(), 200), t.url)
	}
	return t.RoundTripper.RoundTrip(req)
}

// waitForBrowser opens the browser and waits until it returns with a code. Any page in the browser may send
// requests here, so requests without the state of this sign-in are ignored.
func waitForBrowser(ctx context.Context, l net.Listener, state string, open func() error) (*auth.AuthorizationResult, error) {
	type outcome struct {
		res *auth.AuthorizationResult
		err error
	}
	back := make(chan outcome, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("state") != state {
			http.Error(w, "This is not the sign-in that toolctl waits for.", http.StatusBadRequest)
			return
		}
		o := outcome{res: &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}}
		text := "You are signed in. You may close this window."
		if o.res.Code == "" {
			o.err = fmt.Errorf("the authorization server refused: %s", excerpt([]byte(q.Get("error"))))
			text = "The sign-in failed. You may close this window."
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, text)
		select {
		case back <- o:
		default:
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(bounded) != nil { // lets the response reach the browser
			server.Close()
		}
		serving.Wait()
	}()
	if err := open(); err != nil {
		return nil, err
	}
	select {
	case o := <-back:
		return o.res, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// savedToken is the saved state of a sign-in.
type savedToken struct {
	URL          string          `json:"url"`
	Issuer       string          `json:"issuer,omitempty"`
	ClientID     string          `json:"client_id"`
	ClientSecret string          `json:"client_secret,omitempty"`
	Endpoint     oauth2.Endpoint `json:"endpoint"`
	Scopes       []string        `json:"scopes,omitempty"`
	Token        *oauth2.Token   `json:"token"`
}

// file returns the path of the saved token; empty if tokens are not saved. The path depends on the address,
// so that a manifest with a new address does not use the old token.
func (s *signIn) file() string {
	dir := s.u.owner.opts.ConfigDir
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s.u.key.Namespace + "\x00" + s.u.key.Name + "\x00" + s.to + "\x00" + s.id))
	return filepath.Join(dir, "tokens", s.u.key.Name+"-"+hex.EncodeToString(sum[:8])+".json")
}

// load loads the token of an earlier sign-in.
func (s *signIn) load() {
	file := s.file()
	if file == "" {
		return
	}
	if err := errors.Join(perm.Folder(filepath.Dir(file)), perm.File(file)); err != nil {
		s.u.log.Warn("ignored the saved sign-in", slog.String("error", err.Error()))
		return
	}
	data, err := regular.ReadFile(file)
	if err != nil {
		return // no earlier sign-in
	}
	var saved savedToken
	if err := json.Unmarshal(data, &saved); err != nil || saved.Token == nil || saved.URL != s.to {
		s.u.log.Warn("cannot read the saved sign-in; ignored it", slog.String("file", file))
		return
	}
	if saved.Issuer != s.issuer || s.tokenURL != "" && saved.Endpoint.TokenURL != s.tokenURL {
		return // from another authorization server
	}
	c := &oauth2.Config{ClientID: saved.ClientID, ClientSecret: saved.ClientSecret, Endpoint: saved.Endpoint, Scopes: saved.Scopes}
	s.source = s.keeping(withClient(context.Background(), s.client), c, &saved)
}

// keeping returns a token source that saves each new token.
func (s *signIn) keeping(ctx context.Context, c *oauth2.Config, saved *savedToken) oauth2.TokenSource {
	return &keptSource{source: c.TokenSource(ctx, saved.Token), saved: saved, save: s.save}
}

type keptSource struct {
	source oauth2.TokenSource
	save   func(*savedToken)

	mu    sync.Mutex
	saved *savedToken
}

func (k *keptSource) Token() (*oauth2.Token, error) {
	t, err := k.source.Token()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.AccessToken != k.saved.Token.AccessToken {
		next := *k.saved
		next.Token = t
		k.saved = &next
		k.save(k.saved)
	}
	return t, nil
}

// save writes the token to a file that only its owner can read. A token that cannot be saved remains valid
// until the process ends.
func (s *signIn) save(t *savedToken) {
	file := s.file()
	if file == "" {
		return
	}
	if err := writeSecret(file, t); err != nil {
		s.u.log.Warn("cannot save the sign-in", slog.String("error", err.Error()))
	}
}

// writeSecret replaces a file of mode 0600 atomically.
func writeSecret(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := perm.Folder(filepath.Dir(file)); err != nil {
		return err
	}
	return fileset.Replace(file, data, 0o600)
}
