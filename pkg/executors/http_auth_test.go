package executors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// authServer issues tokens at /token. All other paths accept only the newest token.
type authServer struct {
	tokens  atomic.Int32
	fail    atomic.Bool
	expires int
	hold    chan struct{} // if set, /token waits for it
	asked   chan struct{} // if set, /token sends to it before it waits
}

func (a *authServer) handle(_ int, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		if err := r.ParseForm(); err != nil { // a server notices that the client has gone only after it has read the body
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if a.asked != nil {
			a.asked <- struct{}{}
		}
		if a.hold != nil {
			select {
			case <-a.hold:
			case <-r.Context().Done():
				return
			}
		}
		id, secret, _ := r.BasicAuth()
		if a.fail.Load() || id != "the-client" || secret != "client-secret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "read write" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"no client-secret %s"}`, r.FormValue("client_secret"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"bearer","expires_in":%d}`, a.tokens.Add(1), a.expires)
		return
	}
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-number-%d", a.tokens.Load()) {
		http.Error(w, "stale "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	io.WriteString(w, `{"ok":true}`)
}

func oauthTool(t *testing.T, a *authServer) (*HTTP, *v1.Tool) {
	srv, _ := serve(t, a.handle)
	spec := quick(v1.HTTPSpec{URL: srv.URL + "/api", Auth: &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{
		TokenURL: srv.URL + "/token", ClientIDEnv: "ID", ClientSecretEnv: "SECRET", Scopes: []string{"read", "write"}}}})
	return newTestHTTP(t, map[string]string{"ID": "the-client", "SECRET": "client-secret"}), httpToolOf(spec)
}

func TestHTTPOAuth2(t *testing.T) {
	a := &authServer{expires: 3600}
	h, tool := oauthTool(t, a)
	var wg sync.WaitGroup
	for range 20 { // all together fetch one token
		wg.Go(func() {
			if res, err := h.Execute(t.Context(), tool, nil); err != nil || string(res.Content) != `{"ok":true}` {
				t.Errorf("got %s, %v", res.Content, err)
			}
		})
	}
	wg.Wait()
	if n := a.tokens.Load(); n != 1 {
		t.Errorf("%d tokens were fetched, want 1", n)
	}
	// A revoked token is fetched again once, even for POST.
	a.tokens.Add(1)
	res, err := h.Execute(t.Context(), tool, nil)
	if err != nil || res.Attempts != 2 || a.tokens.Load() != 3 {
		t.Errorf("after the token was taken back: %+v, %v, %d tokens", res, err, a.tokens.Load())
	}
}

func TestHTTPOAuth2TokenIsRefreshed(t *testing.T) {
	a := &authServer{expires: 1} // shorter than the reserve, so every call fetches a token
	h, tool := oauthTool(t, a)
	for range 3 {
		if res, err := h.Execute(t.Context(), tool, nil); err != nil || res.Attempts != 1 {
			t.Fatalf("got %+v, %v", res, err)
		}
	}
	if n := a.tokens.Load(); n != 3 {
		t.Errorf("%d tokens were fetched, want 3", n)
	}
}

func TestHTTPOAuth2Failures(t *testing.T) {
	a := &authServer{expires: 3600}
	a.fail.Store(true)
	h, tool := oauthTool(t, a)
	res, err := h.Execute(t.Context(), tool, nil)
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseConnect || err.Error() != `tool "api": cannot get an OAuth 2 token: the server answered HTTP 401 Unauthorized, error "invalid_client"` {
		t.Errorf("got %v", err)
	}
	if all := everything(t, res, err); strings.Contains(all, "client-secret") {
		t.Errorf("the secret shows:\n%s", all)
	}
	a.fail.Store(false) // a failure is not cached
	if _, err := h.Execute(t.Context(), tool, nil); err != nil {
		t.Errorf("after the server recovered: %v", err)
	}

	private := httpToolOf(*tool.Spec.HTTP)
	private.Spec.HTTP.AllowPrivateNetwork = false
	private.Spec.HTTP.URL = "https://api.example.com/"
	if _, err := h.Execute(t.Context(), private, nil); err == nil || !strings.Contains(err.Error(), "cannot get an OAuth 2 token: dial tcp") || !strings.Contains(err.Error(), "(loopback) is refused") {
		t.Errorf("a token of a private address: %v", err)
	}
}

func TestHTTPOAuth2CallersDoNotWaitForOthers(t *testing.T) {
	a := &authServer{expires: 3600, hold: make(chan struct{})}
	h, tool := oauthTool(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Execute(ctx, tool, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the first caller: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := h.Execute(t.Context(), tool, nil)
		done <- err
	}()
	close(a.hold)
	if err := <-done; err != nil {
		t.Errorf("the second caller: %v", err)
	}
}

func TestHTTPCloseEndsTheRequestForAToken(t *testing.T) {
	a := &authServer{hold: make(chan struct{}), asked: make(chan struct{})}
	srv, _ := serve(t, a.handle)
	h := NewHTTP(Options{Env: func(string) (string, bool) { return "client-secret", true }})
	spec := v1.HTTPSpec{URL: srv.URL, Auth: &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{TokenURL: srv.URL + "/token", ClientIDEnv: "ID", ClientSecretEnv: "S"}}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-a.asked // the request for the token is running when its only caller leaves
		cancel()
	}()
	if _, err := h.Execute(ctx, httpToolOf(spec), nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if err := h.Close(); err != nil { // would hang if Close waited for the server
		t.Fatal(err)
	}
}
