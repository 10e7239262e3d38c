package executors

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
)

// httpAuth is the prepared spec.http.auth, of which at most one kind is set.
type httpAuth struct {
	user, password envText // for basic authentication
	oauth          *oauthSpec
}

type oauthSpec struct {
	tokenURL, id, secret envText
	scopes               []string
}

func (p *httpTool) prepareAuth(s *v1.HTTPSpec) {
	const at = "/spec/http/auth"
	a := s.Auth
	if a == nil {
		return
	}
	for _, h := range p.headers {
		if h.name == "Authorization" {
			p.violation(h.path, "another header", `"Authorization"`, `the header "Authorization" and spec.http.auth exclude each other`)
		}
	}
	variable := func(path, name string) envText {
		if !envref.IsName(name) {
			p.violation(path, "the name of a variable", quoted(name), fmt.Sprintf("%s is not the name of a variable", quoted(name)))
		}
		return p.variable(envVar{Ref: envref.Ref{Name: name}, path: path, secret: true, named: true})
	}
	switch {
	case a.BearerEnv != "":
		p.header(at+"/bearer_env", "Authorization", "Bearer "+variable(at+"/bearer_env", a.BearerEnv), nil)
	case a.Basic != nil:
		p.auth.user = variable(at+"/basic/username_env", a.Basic.UsernameEnv)
		p.auth.password = variable(at+"/basic/password_env", a.Basic.PasswordEnv)
	case a.OAuth2ClientCredentials != nil:
		o := a.OAuth2ClientCredentials
		const at = at + "/oauth2_client_credentials"
		p.auth.oauth = &oauthSpec{
			tokenURL: p.text(at+"/token_url", o.TokenURL, false),
			id:       variable(at+"/client_id_env", o.ClientIDEnv),
			secret:   variable(at+"/client_secret_env", o.ClientSecretEnv),
			scopes:   o.Scopes,
		}
	}
}

// authorization returns the value of the Authorization header, or "" if the tool does not use this header. It adds the
// credentials to the secrets.
func (p *httpTool) authorization(ctx context.Context, values []string, source *tokenSource, s *secrets) (string, error) {
	switch {
	case p.auth.user != "":
		user, password := p.auth.user.fill(values, asIs), p.auth.password.fill(values, asIs)
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		s.add(password, pair)
		return "Basic " + pair, nil
	case source != nil:
		token, err := source.token(ctx)
		if err != nil {
			return "", err
		}
		s.add(token)
		return "Bearer " + token, nil
	}
	return "", nil
}

// tokenTimeout limits a request for a token; a waiting call may give up earlier.
const tokenTimeout = 30 * time.Second

// tokenSource fetches the tokens of a client from an authorization server. All calls
// share one request, which outlives the call that started it, since the cancellation of
// one call must not fail the others.
type tokenSource struct {
	wait    *sync.WaitGroup // group of the executor, for Close
	fetch   func() (any, error)
	stop    func() // cancels the running request
	flights singleflight.Group

	mu      sync.Mutex
	current *oauth2.Token
}

// tokenError says why there is no token. It does not contain the response body, which may repeat the client's secret.
type tokenError struct {
	message string
	cause   error
}

func (e *tokenError) Error() string { return "cannot get an OAuth 2 token: " + e.message }
func (e *tokenError) Unwrap() error { return e.cause }

func (h *HTTP) tokenSource(o *oauthSpec, values []string, transport http.RoundTripper) *tokenSource {
	config := clientcredentials.Config{
		TokenURL:     o.tokenURL.fill(values, asIs),
		ClientID:     o.id.fill(values, asIs),
		ClientSecret: o.secret.fill(values, asIs),
		Scopes:       o.scopes,
	}
	key := fmt.Sprintf("%p\n%q\n%q\n%q\n%q", transport.(pooled).t, config.TokenURL, config.ClientID, config.ClientSecret, config.Scopes)
	sum := sha256.Sum256([]byte(key))
	h.mu.Lock()
	defer h.mu.Unlock()
	if src, ok := h.tokens[sum]; ok {
		return src
	}
	if len(h.tokens) >= maxTokenSources {
		clear(h.tokens) // rotated credentials leave old sources behind; a new token costs one request
	}
	client := &http.Client{
		Transport: transport,
		Timeout:   tokenTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return &redirectError{"a redirect of the token request is refused"}
		},
	}
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), oauth2.HTTPClient, client))
	src := &tokenSource{wait: &h.work, stop: stop}
	src.fetch = func() (any, error) { return src.request(ctx, config) }
	h.tokens[sum] = src
	return src
}

const maxTokenSources = 1000

// token returns a valid token, and fetches a token if necessary.
func (t *tokenSource) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	current := t.current
	t.mu.Unlock()
	if current.Valid() {
		return current.AccessToken, nil
	}
	done := make(chan singleflight.Result, 1)
	t.wait.Go(func() {
		token, err, _ := t.flights.Do("", t.fetch)
		done <- singleflight.Result{Val: token, Err: err}
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-done:
		if got.Err != nil {
			return "", got.Err
		}
		return got.Val.(*oauth2.Token).AccessToken, nil
	}
}

func (t *tokenSource) request(ctx context.Context, config clientcredentials.Config) (*oauth2.Token, error) {
	token, err := config.Token(ctx)
	if err != nil {
		return nil, describeTokenError(err)
	}
	if kind := token.Type(); !strings.EqualFold(kind, "Bearer") {
		return nil, &tokenError{message: fmt.Sprintf("the server issued a token of type %s, expected Bearer", quoted(kind))}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = token
	return token, nil
}

// forget drops a token that the API refused, unless it was replaced in the meantime.
func (t *tokenSource) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.current.AccessToken == token {
		t.current = nil
	}
}

func describeTokenError(err error) error {
	if answered, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		msg := "the server answered HTTP " + answered.Response.Status
		if answered.ErrorCode != "" {
			msg += fmt.Sprintf(", error %s", quoted(answered.ErrorCode))
		}
		return &tokenError{message: msg}
	}
	err = withoutURL(err)
	return &tokenError{message: err.Error(), cause: err}
}
