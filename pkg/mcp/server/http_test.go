package server_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	listLegacy = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	listModern = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

func tokens(t testing.TB, pairs ...string) *server.Tokens {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		sum := sha256.Sum256([]byte(pairs[i+1]))
		fmt.Fprintf(&b, "%s:%s\n", pairs[i], hex.EncodeToString(sum[:]))
	}
	ts, err := server.ReadTokens(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func TestStatusCodes(t *testing.T) {
	open := listen(t, server.New(catalogOf(offer("", "one")), server.Options{Admission: admission.New(admission.Limits{MaxBody: 2000})}), server.HTTPOptions{AllowedOrigins: []string{"http://localhost:6274"}})
	guarded := listen(t, server.New(catalogOf(offer("", "one")), server.Options{}), server.HTTPOptions{Tokens: tokens(t, "ann", "s3cret"), AllowedHosts: []string{"mcp.example.com"}})
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	for _, tc := range []struct {
		name    string
		on      *endpoint
		method  string // default: POST
		path    string // default: /mcp
		body    string
		headers []string
		status  int
		want    string   // text in the body
		answer  []string // headers of the response
	}{
		{name: "initialize", on: open, body: initialize, status: 200, want: `"protocolVersion":"2025-11-25"`},
		{name: "modern", on: open, body: listModern, headers: modern, status: 200, want: `"resultType":"complete"`},
		{name: "modern without its header", on: open, body: listModern, status: 400, want: "-32020"},
		{name: "modern with another method in the header", on: open, body: listModern, headers: []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call"}, status: 400, want: "-32020"},
		{name: "a modern session id is ignored", on: open, body: listModern, headers: append([]string{"Mcp-Session-Id", "x"}, modern...), status: 200, want: `"resultType":"complete"`},
		{name: "a modern unknown tool", on: open, headers: []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", wire.HeaderName, "no"},
			body:   strings.Replace(strings.Replace(listModern, "tools/list", "tools/call", 1), `"params":{`, `"params":{"name":"no",`, 1),
			status: 400, want: `"code":-32602`},
		{name: "no session", on: open, body: listLegacy, status: 400, want: `"id":1`},
		{name: "a session that is not there", on: open, body: listLegacy, headers: []string{"Mcp-Session-Id", "x"}, status: 404},
		{name: "GET without a session", on: open, method: "GET", status: 400},
		{name: "GET of a modern client", on: open, method: "GET", headers: []string{"Mcp-Protocol-Version", "2026-07-28"}, status: 405, answer: []string{"Allow", "POST"}},
		{name: "DELETE without a session", on: open, method: "DELETE", status: 400},
		{name: "PUT", on: open, method: "PUT", status: 405, answer: []string{"Allow", "GET, POST, DELETE"}},
		{name: "an old version that never was", on: open, body: initialize, headers: []string{"Mcp-Protocol-Version", "2020-01-01"}, status: 400, want: "Unsupported protocol version"},
		{name: "a version of the future", on: open, body: strings.Replace(listModern, "2026-07-28", "2099-01-01", 1), headers: []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, status: 400, want: "-32022"},
		{name: "content type", on: open, body: initialize, headers: []string{"Content-Type", "text/plain"}, status: 415},
		{name: "accept", on: open, body: initialize, headers: []string{"Accept", "application/json"}, status: 406},
		{name: "empty", on: open, status: 400},
		{name: "no JSON", on: open, body: "{", status: 400},
		{name: "a batch", on: open, body: "[" + listLegacy + "]", status: 400},
		{name: "too large", on: open, body: `{"x":"` + strings.Repeat("x", 2000) + `"}`, status: 413},
		{name: "another origin", on: open, body: initialize, headers: []string{"Origin", "https://evil.example"}, status: 403},
		{name: "an origin that is no address", on: open, body: initialize, headers: []string{"Origin", "null"}, status: 403},
		{name: "GET from another origin", on: open, method: "GET", headers: []string{"Origin", "https://evil.example"}, status: 403},
		{name: "another site without an origin", on: open, body: initialize, headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403},
		{name: "an allowed origin", on: open, body: initialize, headers: []string{"Origin", "http://localhost:6274", "Sec-Fetch-Site", "cross-site"}, status: 200,
			answer: []string{"Access-Control-Allow-Origin", "http://localhost:6274", "Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After"}},
		{name: "preflight of an allowed origin", on: open, method: "OPTIONS", headers: []string{"Origin", "http://localhost:6274", "Access-Control-Request-Headers", "mcp-session-id"}, status: 204,
			answer: []string{"Access-Control-Allow-Headers", "mcp-session-id"}},
		{name: "a name that leads here", on: open, body: initialize, headers: []string{"Host", "evil.example"}, status: 403},
		{name: "localhost", on: open, body: initialize, headers: []string{"Host", "LOCALHOST:1"}, status: 200},
		{name: "IPv6 loopback", on: open, body: initialize, headers: []string{"Host", "[::1]:1"}, status: 200},
		{name: "an allowed host", on: guarded, body: initialize, headers: []string{"Host", "mcp.example.com", "Authorization", "Bearer s3cret"}, status: 200},
		{name: "no token", on: guarded, body: initialize, status: 401, answer: []string{"Www-Authenticate", `Bearer realm="toolctl"`}},
		{name: "a wrong token", on: guarded, body: initialize, headers: []string{"Authorization", "Bearer s3cre"}, status: 401},
		{name: "not bearer", on: guarded, body: initialize, headers: []string{"Authorization", "Basic s3cret"}, status: 401},
		{name: "a token", on: guarded, body: initialize, headers: []string{"Authorization", "bearer s3cret"}, status: 200, answer: []string{"Www-Authenticate", ""}},
		{name: "lists behind tokens are private", on: guarded, body: listModern, headers: append([]string{"Authorization", "Bearer s3cret"}, modern...), status: 200, want: `"cacheScope":"private"`},
		{name: "lists for all are public", on: open, body: listModern, headers: modern, status: 200, want: `"cacheScope":"public"`},
		{name: "healthz", on: guarded, method: "GET", path: "/healthz", status: 200, want: `{"alive":true}`},
		{name: "readyz", on: guarded, method: "GET", path: "/readyz", status: 200, want: `{"ready":true,"tools":1}`},
		{name: "another path", on: open, method: "GET", path: "/", status: 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := tc.path
			if path == "" {
				path = "/mcp"
			}
			method := tc.method
			if method == "" {
				method = "POST"
			}
			res, body := send(t, method, tc.on.url+path, tc.body, tc.headers...)
			if res.StatusCode != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %s, want %d with %q", res.StatusCode, body, tc.status, tc.want)
			}
			for i := 0; i < len(tc.answer); i += 2 {
				if got := res.Header.Get(tc.answer[i]); got != tc.answer[i+1] {
					t.Errorf("%s: got %q, want %q", tc.answer[i], got, tc.answer[i+1])
				}
			}
			if strings.Contains(body, "s3cre") {
				t.Errorf("the answer shows the token: %s", body)
			}
		})
	}
}

// send sends one request with the headers of a client. The given headers replace them.
func send(t testing.TB, method, url, body string, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header}, string(got)
}

type reply struct {
	StatusCode int
	Header     http.Header
}

func TestBothErasAtOneAddress(t *testing.T) {
	c := catalogOf(offer("", "do"))
	var mu sync.Mutex
	seen := map[string]bool{}
	c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[call.Session+" "+call.Principal] = true
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{"ok":true}`)}, nil
	}
	sessions := func(calls ...func()) int {
		clear(seen)
		for _, f := range calls {
			f()
		}
		return len(seen)
	}
	use := func(cs *sdk.ClientSession, meta ...string) func() {
		return func() {
			p := &sdk.CallToolParams{Name: "do"}
			if len(meta) > 0 {
				p.Meta = sdk.Meta{"toolctl.dev/session": meta[0]}
			}
			if res, err := cs.CallTool(t.Context(), p); err != nil || res.IsError {
				t.Errorf("got %v, %v", res, err)
			}
		}
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	a, b := e.client(t, versions["sessions"], nil), e.client(t, versions["sessions"], nil)
	if n := sessions(use(a), use(a), use(b)); n != 2 {
		t.Errorf("two sessions count as %d: %v", n, seen)
	}
	for s := range seen {
		if strings.Contains(s, a.ID()) || strings.Contains(s, b.ID()) {
			t.Errorf("the session %q shows its id", s)
		}
	}
	m, n := e.client(t, versions["modern"], nil), e.client(t, versions["modern"], nil)
	if n := sessions(use(m), use(n), use(m, "x"), use(n, "x"), use(m, "y")); n != 3 {
		t.Errorf("anonymous clients: %v", seen)
	}
	guarded := listen(t, server.New(c, server.Options{}), server.HTTPOptions{Tokens: tokens(t, "ann", "1", "bob", "2", "bob", "3")})
	ann, bob := guarded.client(t, versions["modern"], nil, "Authorization", "Bearer 1"), guarded.client(t, versions["modern"], nil, "Authorization", "Bearer 2")
	bob2 := guarded.client(t, versions["modern"], nil, "Authorization", "Bearer 3")
	if n := sessions(use(ann), use(bob), use(bob2)); n != 2 || !seen["principal-ann ann"] || !seen["principal-bob bob"] {
		t.Errorf("principals: %v", seen)
	}
	if n := sessions(use(guarded.client(t, versions["sessions"], nil, "Authorization", "Bearer 1"))); n != 1 || !strings.HasSuffix(first(seen), " ann") {
		t.Errorf("a session's principal: %v", seen)
	}
}

func first(set map[string]bool) string {
	for s := range set {
		return s
	}
	return ""
}

func TestSessionBelongsToItsPrincipal(t *testing.T) {
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{Tokens: tokens(t, "ann", "1", "bob", "2")})
	res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer 1")
	id := res.Header.Get("Mcp-Session-Id")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if res, body := send(t, method, e.url+"/mcp", listLegacy, "Authorization", "Bearer 2", "Mcp-Session-Id", id); res.StatusCode != 403 {
			t.Errorf("%s of another's session: %d %s", method, res.StatusCode, body)
		}
	}
	if res, body := send(t, "POST", e.url+"/mcp", listLegacy, "Authorization", "Bearer 1", "Mcp-Session-Id", id); res.StatusCode != 200 {
		t.Errorf("its own: %d %s", res.StatusCode, body)
	}
	if res, _ := send(t, "DELETE", e.url+"/mcp", "", "Authorization", "Bearer 1", "Mcp-Session-Id", id); res.StatusCode != 204 {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
}

func TestListChangedOverHTTP(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			c := catalogOf()
			s := server.New(c, server.Options{})
			told := make(chan struct{}, 4)
			cs := listen(t, s, server.HTTPOptions{}).client(t, version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
			c.set(offer("", "new"))
			s.Refresh()
			<-told
			if res, err := cs.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 1 {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

func TestBackPressure(t *testing.T) {
	c := catalogOf(offer("", "wait"))
	began, release := make(chan struct{}), make(chan struct{})
	c.do = func(context.Context, v1.Call) (v1.Result, error) {
		close(began)
		<-release
		return v1.Result{Status: v1.StatusComplete}, nil
	}
	e := listen(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MaxCalls: 1, MaxRequests: 1, MaxStreams: 1})}), server.HTTPOptions{MaxSessions: 1})
	// A client may get its response a moment before the server has a free place again.
	try := func(want func(reply, string) bool, method, body string, headers ...string) reply {
		for {
			res, text := send(t, method, e.url+"/mcp", body, headers...)
			if want(res, text) {
				return res
			}
			if res.StatusCode != 503 || !strings.Contains(text, "too many requests at once") && !strings.Contains(text, "too many streams at once") {
				t.Errorf("%s: got %d %s", method, res.StatusCode, text)
				return res
			}
		}
	}
	served := func(res reply, _ string) bool { return res.StatusCode == 200 }
	full := func(why string) func(reply, string) bool {
		return func(res reply, text string) bool {
			return res.StatusCode == 503 && res.Header.Get("Retry-After") != "" && strings.Contains(text, why)
		}
	}
	session := []string{"Mcp-Session-Id", try(served, "POST", initialize).Header.Get("Mcp-Session-Id")}
	stream, stop := context.WithCancel(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(stream, "GET", e.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(session[0], session[1])
	open, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Body.Close()
	try(full("too many streams"), "GET", "", session...)
	try(full("too many sessions"), "POST", initialize)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		try(served, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`, session...)
	}()
	<-began
	if res, text := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`, session...); !strings.Contains(text, "too many calls at once") {
		t.Errorf("a second call: %d %s", res.StatusCode, text)
	}
	close(release)
	<-ended
}

func TestCallsUnderWayEndBeforeTheServerDoes(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			c := catalogOf(offer("", "wait"))
			began, release := make(chan struct{}), make(chan struct{})
			c.do = func(context.Context, v1.Call) (v1.Result, error) {
				close(began)
				<-release
				return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"late"`)}, nil
			}
			e := listen(t, server.New(c, server.Options{DrainTimeout: time.Minute}), server.HTTPOptions{})
			cs := e.client(t, version, nil)
			ended := make(chan error, 1)
			go func() {
				res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "wait"})
				if err == nil && !strings.Contains(toJSON(t, res.Content), "late") {
					err = errors.New(toJSON(t, res))
				}
				ended <- err
			}()
			<-began
			e.stop()
			for { // until it accepts no more connections
				conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
				if err != nil {
					break
				}
				conn.Close()
			}
			close(release)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallsThatDoNotEndAreCancelled(t *testing.T) {
	c := catalogOf(offer("", "wait"))
	began := make(chan struct{})
	c.do = func(ctx context.Context, _ v1.Call) (v1.Result, error) {
		close(began)
		<-ctx.Done()
		return v1.Result{}, ctx.Err()
	}
	e := listen(t, server.New(c, server.Options{DrainTimeout: -1}), server.HTTPOptions{})
	cs := e.client(t, versions["sessions"], nil)
	ended := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "wait"})
		ended <- err
	}()
	<-began
	e.stop()
	wantCode(t, <-ended, -32000)
}

func TestClientThatLeavesCancelsItsModernCall(t *testing.T) {
	c := catalogOf(offer("", "wait"))
	began, ended := make(chan struct{}), make(chan struct{})
	c.do = func(ctx context.Context, _ v1.Call) (v1.Result, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return v1.Result{}, ctx.Err()
	}
	cs := listen(t, server.New(c, server.Options{}), server.HTTPOptions{}).client(t, versions["modern"], nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
}

// None of 64 clients ever gets another client's response.
func TestNoCrosstalk(t *testing.T) {
	c := catalogOf(offer("", "echo"))
	var calls atomic.Int64
	c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
		calls.Add(1)
		return v1.Result{Status: v1.StatusComplete, Content: call.Args}, nil
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	const clients, each = 64, 10
	var group sync.WaitGroup
	for i := range clients {
		version := versions["modern"]
		if i%2 == 0 {
			version = versions["sessions"]
		}
		cs := e.client(t, version, nil)
		group.Go(func() {
			for j := range each {
				args := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(args)})
				if err != nil || res.Content[0].(*sdk.TextContent).Text != args {
					t.Errorf("client %d, call %d: %v, %v", i, j, res, err)
					return
				}
			}
		})
	}
	group.Wait()
	if n := calls.Load(); n != clients*each {
		t.Errorf("%d calls", n)
	}
}

func TestWhereItListens(t *testing.T) {
	for _, tc := range []struct {
		name, address string
		o             server.HTTPOptions
		want          string // of the error; "" if it can listen
	}{
		{name: "loopback", address: "127.0.0.1:0"},
		{name: "localhost", address: "localhost:0"},
		{name: "everywhere", address: ":0", want: "can be reached from other machines without authentication"},
		{name: "everywhere, with tokens", address: "0.0.0.0:0", o: server.HTTPOptions{Tokens: tokens(t, "a", "b")}},
		{name: "everywhere, on purpose", address: "0.0.0.0:0", o: server.HTTPOptions{Insecure: true}},
		{name: "no address", address: "127.0.0.1:x", want: "listen on 127.0.0.1:x: "},
		{name: "a bad origin", address: "127.0.0.1:0", o: server.HTTPOptions{AllowedOrigins: []string{"localhost"}}, want: `invalid origin "localhost"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			tc.o.Listening = func(net.Addr) { stop() }
			err := server.New(catalogOf(), server.Options{}).ListenAndServe(ctx, tc.address, tc.o)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	made := httptest.NewTLSServer(nil) // for its certificate
	defer made.Close()
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{TLS: &tls.Config{Certificates: made.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	pool := x509.NewCertPool()
	pool.AddCert(made.Certificate())
	for _, h2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}, ForceAttemptHTTP2: h2}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", strings.Replace(e.url, "http:", "https:", 1)+"/mcp", strings.NewReader(initialize))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || (res.ProtoMajor == 2) != h2 {
			t.Errorf("got %s %d %s", res.Proto, res.StatusCode, body)
		}
		transport.CloseIdleConnections()
	}
}

func TestWarningIsInReadyz(t *testing.T) {
	var warning atomic.Value
	warning.Store("")
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{Warning: func() string { return warning.Load().(string) }})
	if _, body := send(t, "GET", e.url+"/readyz", ""); strings.Contains(body, "warning") {
		t.Error(body)
	}
	warning.Store("the last reload failed")
	if res, body := send(t, "GET", e.url+"/readyz", ""); res.StatusCode != 200 || !strings.Contains(body, `"warning":"the last reload failed"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// A client that announces a body without sending it blocks only its own request, and the server can stop.
func TestHungRequestDoesNotHoldTheServer(t *testing.T) {
	e := listen(t, server.New(catalogOf(), server.Options{Admission: admission.New(admission.Limits{MaxRequests: 2}), DrainTimeout: -1}), server.HTTPOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the body is being waited for
		t.Fatalf("got %q, %v", line, err)
	}
	if res, body := send(t, "POST", e.url+"/mcp", initialize); res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	conn.Close()
}

// If the server listens on both loopback addresses, no other program can use its port on one of them.
func TestBothLoopbacks(t *testing.T) {
	if ln, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no ::1")
	} else {
		ln.Close()
	}
	ctx, stop := context.WithCancel(t.Context())
	o := server.HTTPOptions{BothLoopbacks: true}
	ln, err := server.Listen(ctx, "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	served := make(chan error, 1)
	go func() { served <- server.New(catalogOf(), server.Options{}).Serve(ctx, ln, o) }()
	for _, host := range []string{"127.0.0.1", "::1"} {
		res, err := http.Get("http://" + net.JoinHostPort(host, port) + "/healthz") //nolint:noctx // its end is that of the server
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", host, res.StatusCode)
		}
		var taken *server.ListenError
		if _, err := server.Listen(ctx, net.JoinHostPort(host, port), o); !errors.As(err, &taken) {
			t.Errorf("%s can be had twice: %v", host, err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	beside, err := net.Listen("tcp", net.JoinHostPort("::1", port))
	if err != nil {
		t.Fatalf("after the end: %v", err)
	}
	defer beside.Close()
	var taken *server.ListenError
	if _, err := server.Listen(t.Context(), "127.0.0.1:"+port, o); !errors.As(err, &taken) || taken.Address != "[::1]:"+port {
		t.Errorf("beside another program: %v", err)
	}
}
