package mcp_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// mcpHandler returns the handler of a new MCP server.
func mcpHandler(t testing.TB, o *sdk.StreamableHTTPOptions) http.Handler {
	s := newSDKServer()
	t.Cleanup(func() {
		for ss := range s.Sessions() {
			_ = ss.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
}

// serve serves a handler until the end of the test.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func envOf(vars map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := vars[k]; return v, ok }
}

func TestHeadersAndCredentials(t *testing.T) {
	var mu sync.Mutex
	var seen http.Header
	inner := mcpHandler(t, nil)
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = r.Header.Clone()
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	tests := []struct {
		name string
		auth *v1.Auth
		want string
	}{
		{"none", nil, ""},
		{"bearer", &v1.Auth{BearerEnv: "TOKEN"}, "Bearer s3cr3t"},
		{"basic", &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "USER", PasswordEnv: "TOKEN"}}, "Basic bWU6czNjcjN0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := web("s", "${BASE}/mcp")
			s.Spec.Headers = map[string]string{"X-Tenant": "t-${TENANT:-one}"}
			s.Spec.Auth = tt.auth
			u := open(t, mcp.Options{Env: envOf(map[string]string{"TOKEN": "s3cr3t", "USER": "me", "BASE": h.URL}), AllowPrivateNetwork: true}, s)
			if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen.Get("X-Tenant") != "t-one" || seen.Get("Authorization") != tt.want {
				t.Errorf("headers %v", seen)
			}
		})
	}
}

func TestViolationsOfAManifestAreAllNamed(t *testing.T) {
	s := web("s", "https://${HOST}/mcp")
	s.Spec.Headers = map[string]string{"X-Key": "${KEY}", "bad name": "x"}
	s.Spec.Auth = &v1.Auth{BearerEnv: "TOKEN"}
	u := open(t, mcp.Options{Env: envOf(nil)}, s)
	_, err := u.Call(t.Context(), key("s"), "echo", nil, false)
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || invalid.Type != v1.ManifestInvalid {
		t.Fatalf("got %v", err)
	}
	paths := map[string]bool{}
	for _, f := range invalid.Violations {
		paths[f.Path] = true
	}
	for _, want := range []string{"/spec/url", "/spec/headers/X-Key", "/spec/headers/bad name", "/spec/auth/bearer_env"} {
		if !paths[want] {
			t.Errorf("no error at %s: %v", want, err)
		}
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	h := serve(t, mcpHandler(t, nil))
	no, yes := false, true
	tests := []struct {
		name    string
		url     string
		allow   *bool
		all     bool
		network []string
		refused bool
	}{
		{name: "loopback by name of the url", url: h.URL},
		{name: "loopback refused by the manifest", url: h.URL, allow: &no, refused: true},
		{name: "private", url: "http://10.255.255.1:1/", refused: true},
		{name: "metadata", url: "http://169.254.169.254/", refused: true},
		{name: "loopback allowed by the manifest", url: h.URL, allow: &yes},
		{name: "allowed for all", url: h.URL, allow: &no, all: true},
		{name: "allowed by a network", url: h.URL, allow: &no, network: []string{"127.0.0.0/8"}},
		{name: "another network", url: h.URL, allow: &no, network: []string{"10.0.0.0/8"}, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := web("s", tt.url)
			s.Spec.AllowPrivateNetwork = tt.allow
			_, err := open(t, mcp.Options{AllowPrivateNetwork: tt.all, AllowNetwork: tt.network}, s).Call(t.Context(), key("s"), "echo", nil, false)
			if got := err != nil && strings.Contains(v1.Detailed(err), "is refused"); got != tt.refused || !tt.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRedirectsDropCredentials(t *testing.T) {
	var leaked atomic.Value
	inner := mcpHandler(t, &sdk.StreamableHTTPOptions{Stateless: true})
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, k := range []string{"Authorization", "X-Key", "Mcp-Session-Id", "Cookie"} {
			if r.Header.Get(k) != "" {
				leaked.Store(k)
			}
		}
		inner.ServeHTTP(w, r)
	}))
	first := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	s := web("s", first.URL)
	s.Spec.Headers = map[string]string{"X-Key": "${KEY}"}
	s.Spec.Auth = &v1.Auth{BearerEnv: "KEY"}
	u := open(t, mcp.Options{Env: envOf(map[string]string{"KEY": "s3cr3t"})}, s)
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Error(err)
	}
	if k := leaked.Load(); k != nil {
		t.Errorf("%v went along", k)
	}
}

func TestErrorsOfHTTPNameTheStatusAndNoSecret(t *testing.T) {
	status := http.StatusUnauthorized
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "token s3cr3t is bad", status) }))
	s := web("s", h.URL+"/?key=${KEY}")
	s.Spec.Auth = &v1.Auth{BearerEnv: "KEY"}
	frozen := time.Now()
	u := open(t, mcp.Options{Env: envOf(map[string]string{"KEY": "s3cr3t"}), Now: func() time.Time { frozen = frozen.Add(time.Hour); return frozen }}, s)
	for code, want := range map[int]string{401: "401 Unauthorized: check spec.auth", 404: "404 Not Found", 500: "500 Internal Server Error"} {
		status = code
		_, err := u.Call(t.Context(), key("s"), "echo", nil, false)
		if !errors.As(err, new(*v1.MCPError)) || !strings.Contains(v1.Detailed(err), want) || strings.Contains(v1.Detailed(err), "s3cr3t") {
			t.Errorf("%d: %v", code, err)
		}
	}
	h.Close()
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a server that is gone: %v", err)
	}
}

// A restarted server does not know the earlier sessions.
func TestLostSessionIsOpenedAgain(t *testing.T) {
	answers := map[string]func(http.ResponseWriter){
		"404 of the SDK":  nil,
		"404 in JSON-RPC": func(w http.ResponseWriter) { rpcError(w, 404, -32001, "Session not found") },
		"400 in JSON-RPC": func(w http.ResponseWriter) {
			rpcError(w, 400, -32000, "Bad Request: No valid session ID provided")
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			inner, seen, forgotten := mcpHandler(t, nil), map[string]bool{}, map[string]bool{}
			h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				now, id := inner, r.Header.Get("Mcp-Session-Id")
				seen[id] = true
				lost := answer != nil && id != "" && forgotten[id]
				mu.Unlock()
				if lost {
					answer(w)
					return
				}
				now.ServeHTTP(w, r)
			}))
			u := open(t, mcp.Options{}, web("s", h.URL))
			for i := range 3 {
				if res, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
					t.Fatalf("call %d: %v (%d attempts)", i, err, res.Attempts)
				}
				mu.Lock()
				inner = mcpHandler(t, nil)
				maps.Copy(forgotten, seen)
				mu.Unlock()
			}
		})
	}
}

// A server without sessions reports changes in one long response. After its end, the client must open a new
// one to receive changes.
func TestLostStreamOfChangesIsOpenedAgain(t *testing.T) {
	var streams atomic.Int32
	end := make(chan struct{})
	inner := mcpHandler(t, &sdk.StreamableHTTPOptions{Stateless: true})
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "subscriptions/listen" {
			inner.ServeHTTP(w, r)
			return
		}
		n := streams.Add(1)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if n == 1 {
			go func() {
				select {
				case <-end:
					cancel()
				case <-ctx.Done():
				}
			}()
		}
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))
	var clock atomic.Int64
	u := open(t, mcp.Options{Now: func() time.Time { return time.Unix(clock.Load(), 0) }}, web("s", h.URL))
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Fatal(err)
	}
	clock.Add(60)
	close(end)
	for stop := time.Now().Add(5 * time.Second); streams.Load() < 2; {
		if time.Now().After(stop) {
			t.Fatal("the stream is not opened again")
		}
		if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if st, _ := u.State(key("s")); st.Starts != 2 {
		t.Errorf("%d starts", st.Starts)
	}
}

// A tool that requests input from a person gets no input, and is not called repeatedly.
func TestInputThatNobodyCanGive(t *testing.T) {
	var calls atomic.Int32
	s := newSDKServer()
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Message: "which?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}}}, nil
	})
	h := serve(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	u := open(t, mcp.Options{}, web("s", h.URL))
	_, err := u.Call(t.Context(), key("s"), "ask", nil, true)
	var refused *v1.MCPError
	if !errors.As(err, &refused) || refused.Code == 0 || calls.Load() != 1 || !strings.Contains(err.Error(), "elicitation") {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestCloseEndsTheSessionOnTheServer(t *testing.T) {
	var ended atomic.Int32
	inner := mcpHandler(t, nil)
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if r.Method == http.MethodDelete && r.Header.Get("Mcp-Session-Id") != "" {
			ended.Add(1)
		}
	}))
	u := mcp.NewUpstreams([]*v1.MCPServer{web("s", h.URL)}, mcp.Options{})
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Fatal(err)
	}
	u.Close()
	if ended.Load() != 1 {
		t.Errorf("%d sessions were ended", ended.Load())
	}
}

func rpcError(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":%d,"message":%q},"id":null}`, code, message)
}

func TestBusyServerIsAskedAgainOnlyWhenAllowed(t *testing.T) {
	var busy atomic.Int32
	inner := mcpHandler(t, nil)
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"tools/call"`) && busy.Add(-1) >= 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	u := open(t, mcp.Options{}, web("s", h.URL))
	busy.Store(1)
	res, err := u.Call(t.Context(), key("s"), "echo", nil, false)
	if err == nil || res.Attempts != 1 || !strings.Contains(v1.Detailed(err), "503 Service Unavailable") {
		t.Errorf("without hints: %d attempts, %v", res.Attempts, err)
	}
	busy.Store(2)
	if res, err = u.Call(t.Context(), key("s"), "echo", nil, true); err != nil || res.Attempts != 3 {
		t.Errorf("with hints: %d attempts, %v", res.Attempts, err)
	}
}

func TestHostileHTTP(t *testing.T) {
	big := strings.Repeat("x", 2<<20)
	reply := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"large JSON", reply("application/json", `{"jsonrpc":"2.0","id":1,"result":{"x":"`+big+`"}}`), "larger than allowed"},
		{"large event", reply("text/event-stream", "data: "+big+"\n\n"), ""},
		{"no JSON", reply("application/json", `<html>`), ""},
		{"a web page", reply("text/html", `<html>`), `content type "text/html", expected application/json or text/event-stream: check that spec.url is`},
		{"an endless stream of nothing", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, ": ping\n\n"); err != nil {
					return
				}
			}
		}, "no session after 500ms"},
		{"no answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the end of the client shows
			<-r.Context().Done()
		}, "no session after 500ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := web("s", serve(t, tt.handler).URL)
			s.Spec.ConnectTimeoutMS = 500
			began := time.Now()
			st := open(t, mcp.Options{MaxMessageBytes: 1 << 20}, s).Discover(t.Context())[0]
			if st.Ready || !strings.Contains(st.Reason, tt.want) || time.Since(began) > 3*time.Second {
				t.Errorf("ready %v after %s: %s", st.Ready, time.Since(began), st.Reason)
			}
		})
	}
}

// A lost server is not ready once a call could not reach it, until a call reaches it again, in the shared
// session and in a session of one client.
func TestStateOfALostServer(t *testing.T) {
	for name, o := range map[string]*sdk.StreamableHTTPOptions{"sessions": nil, "stateless": {Stateless: true}, "stateless, JSON": {Stateless: true, JSONResponse: true}} {
		for peer, ctx := range map[string]context.Context{
			"": t.Context(), ", a client of its own": mcp.WithPeer(t.Context(), &mcp.Peer{Key: "a", Can: mcp.Capabilities{Roots: true}}),
		} {
			t.Run(name+peer, func(t *testing.T) {
				handler := mcpHandler(t, o)
				h := httptest.NewServer(handler)
				told := make(chan bool, 10)
				u := open(t, mcp.Options{OnChange: func(v1.Key) { told <- true }}, web("s", h.URL))
				if st := u.Discover(t.Context())[0]; !st.Ready {
					t.Fatal(st.Reason)
				}
				call := func() error {
					_, err := u.Call(ctx, key("s"), "echo", nil, false)
					return err
				}
				if err := call(); err != nil {
					t.Fatal(err)
				}
				h.CloseClientConnections()
				h.Close()
				for range 3 { // the first call may use a connection whose end is not yet known
					if err := call(); err == nil {
						t.Fatal("a server that is gone answered")
					}
				}
				if st, _ := u.State(key("s")); st.Ready || !strings.Contains(st.Reason, "connection refused") {
					t.Errorf("ready %v after a call that could not reach it: %s", st.Ready, st.Reason)
				}
				l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", strings.TrimPrefix(h.URL, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				again := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}} //nolint:gosec // a test
				again.Start()
				t.Cleanup(func() { again.CloseClientConnections(); again.Close() })
				for err = call(); err != nil; err = call() { // until the back-off has ended
					var lost *v1.MCPError
					if !errors.As(err, &lost) {
						t.Fatal(err)
					}
				}
				<-told // a change reported during the outage is reported again
				if st, _ := u.State(key("s")); !st.Ready && peer == "" {
					t.Errorf("not ready after a call that it answered: %s", st.Reason)
				}
				if st := u.Discover(t.Context())[0]; !st.Ready {
					t.Errorf("not ready after it listed its tools: %s", st.Reason)
				}
			})
		}
	}
}

// A server that answers only the first requests must not delay the start.
func TestHungStreamDoesNotHoldUpTheSession(t *testing.T) {
	inner := mcpHandler(t, nil)
	h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s := web("s", h.URL)
	s.Spec.ConnectTimeoutMS = 2000
	began := time.Now()
	st := open(t, mcp.Options{}, s).Discover(t.Context())[0]
	if time.Since(began) > 3*time.Second || !st.Ready {
		t.Errorf("ready %v after %s: %s", st.Ready, time.Since(began), st.Reason)
	}
}

func TestTLS(t *testing.T) {
	h := httptest.NewUnstartedServer(mcpHandler(t, nil))
	h.Config.ErrorLog = nil
	h.StartTLS()
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	s := web("s", h.URL)
	s.Source.File = filepath.Join(dir, "s.yaml")
	if _, err := open(t, mcp.Options{}, s).Call(t.Context(), key("s"), "echo", nil, false); err == nil {
		t.Error("a certificate of nobody is trusted")
	}
	s.Spec.TLS = &v1.TLS{CAFile: "ca.pem"}
	if _, err := open(t, mcp.Options{}, s).Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Error(err)
	}
	s = web("s", h.URL)
	s.Spec.TLS = &v1.TLS{CAFile: "absent.pem"}
	if _, err := open(t, mcp.Options{}, s).Call(t.Context(), key("s"), "echo", nil, false); !errors.As(err, new(*v1.ValidationError)) {
		t.Errorf("got %v", err)
	}
}

// authServer is an authorization server and the resource that asks for its tokens.
type authServer struct {
	*httptest.Server
	mu     sync.Mutex
	valid  string // the token that is good
	issued int
	grants []string
	inner  http.Handler
}

func newAuthServer(t *testing.T) *authServer {
	a := &authServer{inner: mcpHandler(t, nil)}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
			"registration_endpoint": a.URL + "/register", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_post", "none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		m["client_id"] = "registered"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		writeJSON(w, m)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		back, _ := url.Parse(q.Get("redirect_uri"))
		back.RawQuery = url.Values{"code": {"c0de"}, "state": {q.Get("state")}}.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.grants = append(a.grants, r.Form.Get("grant_type")+" "+r.Form.Get("client_id")+" "+r.Form.Get("scope"))
		if r.Form.Get("grant_type") == "client_credentials" && r.Form.Get("client_secret") != "s3cr3t" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"not `+r.Form.Get("client_secret")+`"}`)
			return
		}
		a.issued++
		a.valid = fmt.Sprintf("token-%d", a.issued)
		w.Header().Set("Content-Type", "application/json")
		writeJSON(w, map[string]any{"access_token": a.valid, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r"})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		good := a.valid != "" && r.Header.Get("Authorization") == "Bearer "+a.valid
		a.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp", scope="tools"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a.inner.ServeHTTP(w, r)
	})
	a.Server = serve(t, mux)
	return a
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func TestClientCredentials(t *testing.T) {
	for _, how := range []string{"found", "given", "sse"} {
		t.Run(how, func(t *testing.T) {
			a := newAuthServer(t)
			s := web("s", a.URL+"/mcp")
			c := &v1.OAuth2ClientCredentials{ClientIDEnv: "ID", ClientSecretEnv: "SECRET", Issuer: a.URL}
			if how == "sse" {
				srv := newSDKServer()
				a.inner = sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return srv }, nil)
				s.Spec.Transport = v1.TransportSSE
			}
			if how == "given" {
				c.TokenURL, c.Scopes = a.URL+"/token", []string{"mine"}
			}
			s.Spec.Auth = &v1.Auth{OAuth2ClientCredentials: c}
			u := open(t, mcp.Options{Env: envOf(map[string]string{"ID": "me", "SECRET": "s3cr3t"})}, s)
			if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
				t.Fatal(err)
			}
			if want := map[string]string{"found": "tools", "given": "mine", "sse": "tools"}[how]; a.grants[len(a.grants)-1] != "client_credentials me "+want {
				t.Errorf("grants %q", a.grants)
			}
			a.mu.Lock()
			a.valid = "revoked"
			a.mu.Unlock()
			if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil || a.issued != 2 {
				t.Errorf("after the token was revoked: %v, %d tokens", err, a.issued)
			}
		})
	}
	t.Run("another issuer", func(t *testing.T) {
		a, own := newAuthServer(t), newAuthServer(t)
		s := web("s", a.URL+"/mcp")
		s.Spec.Auth = &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{ClientIDEnv: "ID", ClientSecretEnv: "SECRET", Issuer: own.URL}}
		u := open(t, mcp.Options{Env: envOf(map[string]string{"ID": "me", "SECRET": "s3cr3t"})}, s)
		_, err := u.Call(t.Context(), key("s"), "echo", nil, false)
		if err == nil || !strings.Contains(v1.Detailed(err), "the credentials are not sent") || len(a.grants)+len(own.grants) > 0 {
			t.Errorf("got %v, %q, %q", err, a.grants, own.grants)
		}
	})
	t.Run("refused", func(t *testing.T) {
		a := newAuthServer(t)
		s := web("s", a.URL+"/mcp")
		s.Spec.Auth = &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{ClientIDEnv: "ID", ClientSecretEnv: "SECRET", Issuer: a.URL}}
		u := open(t, mcp.Options{Env: envOf(map[string]string{"ID": "me", "SECRET": "wr0ng-secret"})}, s)
		_, err := u.Call(t.Context(), key("s"), "echo", nil, false)
		if err == nil || strings.Contains(err.Error(), "wr0ng-secret") {
			t.Errorf("got %v", err)
		}
		t.Log(err)
	})
}

// The credentials of a preregistered client go only to its own authorization server, whatever server the
// MCP server names.
func TestSignInIssuer(t *testing.T) {
	for _, c := range []struct {
		name  string
		bind  func(c *v1.OAuth2AuthorizationCode, own, other string)
		fails string
	}{
		{"its issuer", func(c *v1.OAuth2AuthorizationCode, own, _ string) { c.Issuer = own }, ""},
		{"its token endpoint", func(c *v1.OAuth2AuthorizationCode, own, _ string) { c.TokenURL = own + "/token" }, ""},
		{"another issuer", func(c *v1.OAuth2AuthorizationCode, _, other string) { c.Issuer = other }, "the credentials are not sent"},
		{"another token endpoint", func(c *v1.OAuth2AuthorizationCode, _, other string) { c.TokenURL = other + "/token" }, "the credentials are not sent"},
		{"its issuer, another token endpoint", func(c *v1.OAuth2AuthorizationCode, own, other string) { c.Issuer, c.TokenURL = own, other+"/token" }, "the credentials are not sent"},
		{"neither", func(*v1.OAuth2AuthorizationCode, string, string) {}, "need token_url or issuer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, other := newAuthServer(t), newAuthServer(t)
			s := web("s", a.URL+"/mcp")
			code := &v1.OAuth2AuthorizationCode{ClientIDEnv: "ID", ClientSecretEnv: "SECRET"}
			c.bind(code, a.URL, other.URL)
			s.Spec.Auth = &v1.Auth{OAuth2AuthorizationCode: code}
			var browsing sync.WaitGroup
			t.Cleanup(browsing.Wait)
			u := open(t, mcp.Options{Env: envOf(map[string]string{"ID": "me", "SECRET": "s3cr3t"}), OpenBrowser: func(_ context.Context, _ v1.Key, address string) error {
				browsing.Go(func() {
					if resp, err := a.Client().Get(address); err == nil {
						resp.Body.Close()
					}
				})
				return nil
			}}, s)
			_, err := u.Call(t.Context(), key("s"), "echo", nil, false)
			switch sent := len(a.grants) + len(other.grants); {
			case c.fails == "" && (err != nil || len(a.grants) == 0):
				t.Errorf("got %v, %d grants", err, sent)
			case c.fails != "" && (err == nil || !strings.Contains(v1.Detailed(err), c.fails) || sent > 0):
				t.Errorf("expected %q and nothing sent, got %v, %d grants", c.fails, err, sent)
			}
		})
	}
}

func TestSignIn(t *testing.T) {
	a := newAuthServer(t)
	dir := t.TempDir()
	s := web("s", a.URL+"/mcp")
	s.Spec.Auth = &v1.Auth{OAuth2AuthorizationCode: &v1.OAuth2AuthorizationCode{Scopes: []string{"mine"}}}
	var asked atomic.Int32
	var browsing sync.WaitGroup
	t.Cleanup(browsing.Wait)
	browser := func(_ context.Context, _ v1.Key, address string) error {
		asked.Add(1)
		browsing.Go(func() {
			if resp, err := a.Client().Get(address); err == nil {
				resp.Body.Close()
			}
		})
		return nil
	}
	if _, err := open(t, mcp.Options{}, s).Call(t.Context(), key("s"), "echo", nil, false); err == nil || !strings.Contains(v1.Detailed(err), "requires a sign-in") {
		t.Errorf("without a browser: %v", err)
	}
	for i := range 2 { // the second run finds the token of the first
		u := open(t, mcp.Options{OpenBrowser: browser, ConfigDir: dir}, s)
		if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
			t.Fatalf("use %d: %v", i, err)
		}
	}
	if asked.Load() != 1 || a.grants[0] != "authorization_code registered " {
		t.Errorf("asked %d times, grants %q", asked.Load(), a.grants)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tokens", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
