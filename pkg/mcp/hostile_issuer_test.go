package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// hostileServer is an MCP server and an authorization server with responses that a test changes.
type hostileServer struct {
	url       string
	said      map[string]http.HandlerFunc // responses by path, in place of the honest ones
	metadata  map[string]any              // changed values of its metadata
	token     string                      // the response of the token endpoint
	strict    bool                        // private addresses are not allowed
	exchanged atomic.Int32
}

func newHostileServer(t *testing.T) *hostileServer {
	h := &hostileServer{said: map[string]http.HandlerFunc{}, metadata: map[string]any{}, token: `{"access_token":"good","token_type":"Bearer","expires_in":3600}`}
	inner := mcpHandler(t, nil)
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := h.said[r.URL.Path]; f != nil {
			f(w, r)
			return
		}
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			writeJSON(w, map[string]any{"resource": h.url + "/mcp", "authorization_servers": []string{h.url}})
		case "/.well-known/oauth-authorization-server":
			meta := map[string]any{"issuer": h.url, "authorization_endpoint": h.url + "/authorize", "token_endpoint": h.url + "/token", "registration_endpoint": h.url + "/register",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post", "none"}}
			for k, v := range h.metadata {
				meta[k] = v
			}
			writeJSON(w, meta)
		case "/register":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			writeJSON(w, map[string]any{"client_id": "registered"})
		case "/token":
			h.exchanged.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, h.token)
		case "/mcp":
			if r.Header.Get("Authorization") != "Bearer good" {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+h.url+`/.well-known/oauth-protected-resource/mcp"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	h.url = srv.URL
	return h
}

// signIn calls a tool as a person would who follows the browser. come makes the browser's final request.
func (h *hostileServer) signIn(t *testing.T, o mcp.Options, come func(back *url.URL, state string)) (opened []string, err error) {
	t.Helper()
	s := web("s", h.url+"/mcp")
	s.Spec.Auth = &v1.Auth{OAuth2AuthorizationCode: &v1.OAuth2AuthorizationCode{}}
	if h.strict {
		s.Spec.AllowPrivateNetwork = new(bool)
	}
	var browsing sync.WaitGroup
	t.Cleanup(browsing.Wait)
	o.OpenBrowser = func(_ context.Context, _ v1.Key, address string) error {
		opened = append(opened, address)
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		back, err := url.Parse(u.Query().Get("redirect_uri"))
		if err != nil {
			return err
		}
		browsing.Go(func() { come(back, u.Query().Get("state")) })
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = open(t, o, s).Call(ctx, key("s"), "echo", nil, false)
	return opened, err
}

func visit(back *url.URL, q url.Values) {
	at := *back
	at.RawQuery = q.Encode()
	if resp, err := http.Get(at.String()); err == nil { //nolint:noctx // a browser
		resp.Body.Close()
	}
}

func honest(back *url.URL, state string) { visit(back, url.Values{"code": {"c"}, "state": {state}}) }

func TestHostileMetadata(t *testing.T) {
	if _, err := newHostileServer(t).signIn(t, mcp.Options{}, honest); err != nil {
		t.Fatalf("an honest server: %v", err)
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"issuer":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	const meta, resource = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"
	for name, change := range map[string]func(h *hostileServer){
		"another issuer":                     func(h *hostileServer) { h.metadata["issuer"] = "https://login.example.com" },
		"a page that is a script":            func(h *hostileServer) { h.metadata["authorization_endpoint"] = "javascript:alert(1)//" },
		"a page that is a file":              func(h *hostileServer) { h.metadata["authorization_endpoint"] = "file:///etc/passwd" },
		"a page that is a file here":         func(h *hostileServer) { h.metadata["authorization_endpoint"] = "file://localhost/etc/passwd" },
		"a page that starts a program":       func(h *hostileServer) { h.metadata["authorization_endpoint"] = "vscode://localhost/run?x=" },
		"a page with control characters":     func(h *hostileServer) { h.metadata["authorization_endpoint"] = h.url + "/\x1b[2J" },
		"a page that is an option":           func(h *hostileServer) { h.metadata["authorization_endpoint"] = "--version" },
		"a token endpoint that is a file":    func(h *hostileServer) { h.metadata["token_endpoint"] = "file://localhost/token" },
		"metadata without end":               func(h *hostileServer) { h.said[meta] = endless },
		"metadata that never comes":          func(h *hostileServer) { h.said[meta] = silent },
		"resource metadata without end":      func(h *hostileServer) { h.said[resource] = endless },
		"resource metadata that never comes": func(h *hostileServer) { h.said[resource] = silent },
		"metadata of great depth": func(h *hostileServer) {
			h.said[meta] = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("[", 500_000))
			}
		},
		"a registration without end": func(h *hostileServer) { h.said["/register"] = endless },
		"a token without end":        func(h *hostileServer) { h.said["/token"] = endless },
		"a token of several lines":   func(h *hostileServer) { h.token = `{"access_token":"secret-1\r\nX-Evil: 1","token_type":"Bearer"}` },
		"no token":                   func(h *hostileServer) { h.token = `{"access_token":""}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a response that never comes ends with the call
			h := newHostileServer(t)
			change(h)
			opened, err := h.signIn(t, mcp.Options{}, honest)
			if (err == nil) != (name == "resource metadata without end") || err != nil && strings.Contains(err.Error(), "secret-1") { // there are other places for that one
				t.Errorf("got %v", err)
			}
			for _, at := range opened {
				if !strings.HasPrefix(at, h.url+"/authorize?") {
					t.Errorf("the browser opens %q", at)
				}
			}
		})
	}
}

// Any lifetime of a token leads to a token that is used or to an error, but not to a flood of requests.
func TestAbsurdExpiry(t *testing.T) {
	for _, expires := range []string{`-1`, `0`, `1`, `9223372036854775807`, `1e999`, `"99999999999999999999"`, `"soon"`, `{}`, `-9223372036854775808`} {
		h := newHostileServer(t)
		h.token = `{"access_token":"good","token_type":"Bearer","expires_in":` + expires + `}`
		s := web("s", h.url+"/mcp")
		s.Spec.Auth = &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{ClientIDEnv: "ID", ClientSecretEnv: "SECRET", Issuer: h.url}}
		u := open(t, mcp.Options{Env: envOf(map[string]string{"ID": "me", "SECRET": "s3cr3t"})}, s)
		for range 5 {
			_, _ = u.Call(t.Context(), key("s"), "echo", nil, false)
		}
		if n := h.exchanged.Load(); n > 50 {
			t.Errorf("expires_in %s: %d tokens for 5 calls", expires, n)
		}
	}
}

// A response from a wrong authorization server, or without one, does not sign in.
func TestMixUp(t *testing.T) {
	t.Run("another iss", func(t *testing.T) {
		h := newHostileServer(t)
		_, err := h.signIn(t, mcp.Options{}, func(back *url.URL, state string) {
			visit(back, url.Values{"code": {"c"}, "state": {state}, "iss": {"https://login.example.com"}})
		})
		if err == nil || h.exchanged.Load() != 0 {
			t.Errorf("got %v, %d codes were exchanged", err, h.exchanged.Load())
		}
	})
	t.Run("another state", func(t *testing.T) {
		h := newHostileServer(t)
		_, err := h.signIn(t, mcp.Options{}, func(back *url.URL, state string) {
			visit(back, url.Values{"code": {"stolen"}, "state": {"guess"}})
			visit(back, url.Values{"error": {"access_denied"}})
			honest(back, state) // the honest response counts
		})
		if err != nil || h.exchanged.Load() != 1 {
			t.Errorf("got %v, %d codes were exchanged", err, h.exchanged.Load())
		}
	})
}

// A redirect must not lead to an address that the manifest does not allow.
func TestMetadataIsNotReadFromPrivateAddresses(t *testing.T) {
	var reached atomic.Int32
	inside := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register", "/token"} {
		h := newHostileServer(t)
		h.strict = true
		h.said[path] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
		}
		_, err := h.signIn(t, mcp.Options{AllowNetwork: []string{strings.TrimPrefix(h.url, "http://")}}, honest)
		if err == nil && !strings.Contains(path, "resource") || reached.Load() != 0 {
			t.Errorf("%s: got %v, the inside was reached %d times", path, err, reached.Load())
		}
	}
}
