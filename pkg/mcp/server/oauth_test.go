package server_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

const metadata = "https://tools.example.com/.well-known/oauth-protected-resource/mcp"

func oauthOf(i *issuer) *server.OAuth {
	return &server.OAuth{Issuer: i.url, Audiences: []string{audience}, Scopes: []string{"tools:call"}}
}

// The requirements of MCP and of RFC 6750, 8725, 9068 and 9728 for access tokens.
func TestAccessTokens(t *testing.T) {
	good, ec, ed, plain := rsaSigner(t, "r1"), ecSigner(t, "e1"), edSigner(t, "d1"), ecSigner(t, "")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", good, ec, ed)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"r1"}`)) + "." + strings.Split(good.token(t, i.claims()), ".")[1] + "."
	now := time.Now()
	e := listen(t, server.New(catalogOf(offer("", "one")), server.Options{}), server.HTTPOptions{OAuth: oauthOf(i), Tokens: tokens(t, "bob", "s3cret")})
	for _, tc := range []struct {
		name          string
		authorization string
		status        int
		code          string // of the challenge
		says          string // in the challenge's description
	}{
		{name: "RS256", authorization: "Bearer " + good.token(t, i.claims()), status: 200},
		{name: "ES256", authorization: "bearer " + ec.token(t, i.claims()), status: 200},
		{name: "EdDSA", authorization: "Bearer " + ed.token(t, i.claims()), status: 200},
		{name: "without kid", authorization: "Bearer " + plain.token(t, i.claims()), status: 200},
		{name: "of the token file", authorization: "Bearer s3cret", status: 200},
		{name: "one of several audiences", authorization: "Bearer " + good.token(t, i.claims("aud", []string{"https://x.example", audience})), status: 200},
		{name: "scp as a list", authorization: "Bearer " + good.token(t, i.claims("scope", nil, "scp", []string{"tools:call"})), status: 200},
		{name: "expired a moment ago", authorization: "Bearer " + good.token(t, i.claims("exp", now.Add(-5*time.Second).Unix())), status: 200},
		{name: "type JWT", authorization: "Bearer " + sign(t, jose.RS256, rsaKey, "r1", "JWT", i.claims()), status: 200},

		{name: "no token", status: 401},
		{name: "another scheme", authorization: "Basic eA==", status: 401},
		{name: "two tokens", authorization: "Bearer a b", status: 400, code: "invalid_request"},
		{name: "no token after Bearer", authorization: "Bearer", status: 400, code: "invalid_request"},
		{name: "no JWT", authorization: "Bearer abc", status: 401, code: "invalid_token", says: "unknown"},
		{name: "expired", authorization: "Bearer " + good.token(t, i.claims("exp", now.Add(-2*time.Minute).Unix())), status: 401, code: "invalid_token", says: "expired"},
		{name: "without an end", authorization: "Bearer " + good.token(t, i.claims("exp", nil)), status: 401, code: "invalid_token", says: "no exp"},
		{name: "not valid yet", authorization: "Bearer " + good.token(t, i.claims("nbf", now.Add(5*time.Minute).Unix())), status: 401, code: "invalid_token", says: "not valid yet"},
		{name: "for another audience", authorization: "Bearer " + good.token(t, i.claims("aud", "https://tools.example.com/other")), status: 401, code: "invalid_token", says: "another audience"},
		{name: "for no audience", authorization: "Bearer " + good.token(t, i.claims("aud", nil)), status: 401, code: "invalid_token", says: "another audience"},
		{name: "of another issuer", authorization: "Bearer " + good.token(t, i.claims("iss", "https://evil.example")), status: 401, code: "invalid_token", says: "another issuer"},
		{name: "of nobody", authorization: "Bearer " + good.token(t, i.claims("sub", nil)), status: 401, code: "invalid_token", says: "'sub' has no principal"},
		{name: "of a principal with a line feed", authorization: "Bearer " + good.token(t, i.claims("sub", "a\nb")), status: 401, code: "invalid_token", says: "has no principal"},
		{name: "alg none", authorization: "Bearer " + none, status: 401, code: "invalid_token"},
		{name: "HS256 with the public key as secret", authorization: "Bearer " + sign(t, jose.HS256, public, "r1", "at+jwt", i.claims()), status: 401, code: "invalid_token", says: "not allowed"},
		{name: "another key under a known kid", authorization: "Bearer " + sign(t, jose.RS256, other, "r1", "at+jwt", i.claims()), status: 401, code: "invalid_token", says: "signature"},
		{name: "another algorithm than the key's", authorization: "Bearer " + sign(t, jose.PS256, rsaKey, "r1", "at+jwt", i.claims()), status: 401, code: "invalid_token"},
		{name: "of another type", authorization: "Bearer " + sign(t, jose.RS256, rsaKey, "r1", "logout+jwt", i.claims()), status: 401, code: "invalid_token", says: "another type"},
		{name: "too long", authorization: "Bearer " + strings.Repeat("x", 20<<10), status: 401, code: "invalid_token", says: "longer"},
		{name: "without the scope", authorization: "Bearer " + good.token(t, i.claims("scope", "extra")), status: 403, code: "insufficient_scope", says: "tools:call"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for protocol, headers := range map[string][]string{"sessions": nil, "modern": {"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}} {
				body := initialize
				if protocol == "modern" {
					body = listModern
				}
				if tc.authorization != "" {
					headers = append(headers, "Authorization", tc.authorization)
				}
				res, got := send(t, "POST", e.url+"/mcp", body, headers...)
				if res.StatusCode != tc.status {
					t.Errorf("%s: status %d %s, want %d", protocol, res.StatusCode, got, tc.status)
				}
				said := res.Header.Get("WWW-Authenticate")
				if tc.status == 200 {
					if said != "" {
						t.Errorf("%s: %s", protocol, said)
					}
					continue
				}
				if want := `Bearer resource_metadata="` + metadata + `", scope="tools:call"`; !strings.HasPrefix(said, want) {
					t.Errorf("%s: got %s, want %s", protocol, said, want)
				}
				if (tc.code == "") == strings.Contains(said, "error=") || tc.code != "" && !strings.Contains(said, `error="`+tc.code+`"`) || !strings.Contains(said, tc.says) {
					t.Errorf("%s: got %s, want error %q with %q", protocol, said, tc.code, tc.says)
				}
			}
		})
	}
}

func TestPrincipalOfAccessToken(t *testing.T) {
	key := rsaSigner(t, "r1")
	i := newIssuer(t, "/.well-known/openid-configuration", key)
	o := oauthOf(i)
	o.PrincipalClaim = "email"
	c := catalogOf(offer("", "do"))
	seen := make(chan v1.Call, 1)
	c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
		seen <- call
		return v1.Result{Status: v1.StatusComplete}, nil
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{OAuth: o})
	call := func(who, session string) v1.Call {
		p := &sdk.CallToolParams{Name: "do"}
		if session != "" {
			p.Meta = sdk.Meta{"toolctl.dev/session": session}
		}
		cs := e.client(t, versions["modern"], nil, "Authorization", "Bearer "+key.token(t, i.claims("email", who)))
		if _, err := cs.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return <-seen
	}
	got := call("ann@example.com", "")
	if got.Principal != "ann@example.com" || got.Session != "principal-ann@example.com" {
		t.Errorf("got principal %q, session %q", got.Principal, got.Session)
	}
	// The names of an issuer may contain the separator between a principal and a session key.
	if a, b := call("ann/x", ""), call("ann", "x"); a.Session == b.Session {
		t.Errorf("two principals share the session %q", a.Session)
	}
}

func TestResourceMetadata(t *testing.T) {
	i := newIssuer(t, "/.well-known/oauth-authorization-server", rsaSigner(t, "r1"))
	o := oauthOf(i)
	o.Resource = "https://tools.example.com/eu/mcp"
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: o})
	for path, resource := range map[string]string{"": o.Resource, "/mcp": o.Resource, "/eu/mcp": o.Resource, "/other": "", "/other/support": "", "/support": "",
		"/mcp/support": o.Resource + "/support", "/eu/mcp/support": o.Resource + "/support", "/mcp/support/x": "", "/mcp/-": ""} {
		status := 200
		if resource == "" {
			status = 404
		}
		res, body := send(t, "GET", e.url+"/.well-known/oauth-protected-resource"+path, "")
		if res.StatusCode != status {
			t.Errorf("%s: status %d %s", path, res.StatusCode, body)
		}
		if status != 200 {
			continue
		}
		var got struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Resource != resource || toJSON(t, got.Servers) != `["`+i.url+`"]` || toJSON(t, got.Scopes) != `["tools:call"]` || toJSON(t, got.Methods) != `["header"]` {
			t.Errorf("%s: got %s", path, body)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: web pages cannot read it", path)
		}
	}
	if res, _ := send(t, "POST", e.url+"/.well-known/oauth-protected-resource/mcp", ""); res.StatusCode != 405 {
		t.Errorf("POST: status %d", res.StatusCode)
	}
	res, _ := send(t, "POST", e.url+"/mcp", initialize, "Host", "tools.example.com")
	if want := `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/eu/mcp"`; res.StatusCode != 401 || !strings.Contains(res.Header.Get("WWW-Authenticate"), want) {
		t.Errorf("by its name outside: status %d, %s", res.StatusCode, res.Header.Get("WWW-Authenticate"))
	}
	if res, _ := send(t, "GET", listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{}).url+"/.well-known/oauth-protected-resource", ""); res.StatusCode != 404 {
		t.Errorf("without OAuth: status %d", res.StatusCode)
	}
}

// A token for one toolset is accepted there and nowhere else. Its challenge names the metadata of that toolset, whether
// the toolset exists or not.
func TestAccessTokensOfToolsets(t *testing.T) {
	key := rsaSigner(t, "r1")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", key)
	c := &toolsets{catalogOf(offer("", "one"))}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{OAuth: oauthOf(i)})
	for _, tc := range []struct {
		path, audience string
		status         int
	}{
		{"/mcp", audience, 200}, {"/mcp/desk", audience, 200}, {"/mcp/desk", audience + "/desk", 200}, {"/mcp/staff", audience + "/staff", 404}, {"/mcp/none", audience, 404},
		{"/mcp", audience + "/desk", 401}, {"/mcp/desk", audience + "/none", 401}, {"/mcp/none", audience + "/desk", 401},
	} {
		res, body := send(t, "POST", e.url+tc.path, initialize, "Authorization", "Bearer "+key.token(t, i.claims("aud", tc.audience)))
		if res.StatusCode != tc.status {
			t.Errorf("%s for %s: status %d %s, want %d", tc.path, tc.audience, res.StatusCode, body, tc.status)
		}
		if said, want := res.Header.Get("WWW-Authenticate"), `resource_metadata="`+metadata+strings.TrimPrefix(tc.path, "/mcp")+`"`; tc.status == 401 && !strings.Contains(said, want) {
			t.Errorf("%s for %s: %s, want %s", tc.path, tc.audience, said, want)
		}
	}
	if res, _ := send(t, "POST", e.url+"/mcp/staff", initialize, "Authorization", "Bearer "+key.token(t, i.claims("groups", []string{"staff"}))); res.StatusCode != 200 {
		t.Errorf("with the group: status %d", res.StatusCode)
	}
}

// toolsets adds two toolsets with all tools: desk for everyone, and staff for a group.
type toolsets struct{ *catalog }

func (c *toolsets) Contents() server.Contents {
	all := c.catalog.Contents()
	in := map[string]bool{}
	for _, o := range all.Tools {
		in[o.Name] = false
	}
	all.Toolsets = []server.Toolset{{Name: "desk", Tools: in}, {Name: "staff", Tools: in, Spec: v1.ToolsetSpec{Groups: []string{"staff"}}}}
	return all
}

// A new key is found; unknown keys of an attacker do not cause one fetch each; and known keys stay in use
// while the issuer is down.
func TestKeyRotation(t *testing.T) {
	first, second := rsaSigner(t, "r1"), ecSigner(t, "e1")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", first)
	clock := &clock{now: time.Now()}
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: oauthOf(i), Now: clock.time})
	status := func(k signer) int {
		res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+k.token(t, i.claims()))
		return res.StatusCode
	}
	if got := status(first); got != 200 {
		t.Fatalf("the first key: status %d", got)
	}
	before := i.fetched.Load()
	var group sync.WaitGroup
	for n := range 50 {
		group.Go(func() {
			if got := status(signer{"guess" + string(rune('a'+n%26)), second.alg, second.key}); got != 401 {
				t.Errorf("an unknown key: status %d", got)
			}
		})
	}
	group.Wait()
	if n := i.fetched.Load() - before; n > 1 {
		t.Errorf("50 unknown keys caused %d fetches", n)
	}
	i.publish(second)
	clock.add(11 * time.Second)
	if got := status(second); got != 200 {
		t.Errorf("the second key: status %d", got)
	}
	if got := status(first); got != 401 {
		t.Errorf("the first key after it went: status %d", got)
	}
	i.stop(true)
	clock.add(time.Minute)
	if got := status(second); got != 200 {
		t.Errorf("while the issuer is down: status %d", got)
	}
	if got := status(first); got != 401 {
		t.Errorf("an unknown key while the issuer is down: status %d", got)
	}
}

func TestIssuerThatWasNeverThere(t *testing.T) {
	key := rsaSigner(t, "r1")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", key)
	i.stop(true)
	clock := &clock{now: time.Now()}
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: oauthOf(i), Now: clock.time})
	send1 := func() reply {
		res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+key.token(t, i.claims()))
		return res
	}
	if res := send1(); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, want 503: nothing can be said about the token", res.StatusCode)
	}
	if _, body := send(t, "GET", e.url+"/readyz", ""); !strings.Contains(body, "have not been read yet") {
		t.Errorf("readyz: %s", body)
	}
	i.stop(false)
	clock.add(11 * time.Second)
	if res := send1(); res.StatusCode != 200 {
		t.Errorf("once it is there: status %d", res.StatusCode)
	}
}

// clock is a clock that a test controls.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestIssuersThatCannotBeUsed(t *testing.T) {
	key := rsaSigner(t, "r1")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
		{"no keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) }},
		{"a key of another kind", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"r1"}]}`))
		}},
		{"a small key", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: small.Public(), KeyID: "r1"}}})
		}},
		{"a key for encryption", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.key.Public(), KeyID: "r1", Use: "enc"}}})
		}},
		{"too large", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 2<<20) + `"}`))
		}},
		{"a redirect to where others read along", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://keys.example/", http.StatusFound)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := newIssuer(t, "/keys-of-"+strings.ReplaceAll(tc.name, " ", "-"), key)
			bad := newServer(t, tc.handler)
			o := oauthOf(i)
			o.JWKSURL = bad
			e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: o})
			res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+key.token(t, i.claims()))
			if res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("status %d, want 503", res.StatusCode)
			}
		})
	}
	t.Run("the metadata of another issuer", func(t *testing.T) {
		i := newIssuer(t, "/.well-known/oauth-authorization-server", key)
		o := oauthOf(i)
		o.Issuer = strings.Replace(i.url, "127.0.0.1", "localhost", 1)
		e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: o})
		if res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+key.token(t, i.claims())); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503", res.StatusCode)
		}
	})
}

func TestOAuthOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    server.OAuth
		want string // in the error; empty for no error
	}{
		{"all is well", server.OAuth{Issuer: "https://login.example", Audiences: []string{audience}}, ""},
		{"a resource of its own", server.OAuth{Issuer: "https://login.example", Audiences: []string{"api://tools"}, Resource: audience}, ""},
		{"no issuer", server.OAuth{Audiences: []string{audience}}, `issuer ""`},
		{"an issuer without https", server.OAuth{Issuer: "http://login.example", Audiences: []string{audience}}, "expected https"},
		{"no audience", server.OAuth{Issuer: "https://login.example"}, "no audience"},
		{"no audience that is a URL", server.OAuth{Issuer: "https://login.example", Audiences: []string{"tools"}}, "no audience is a URL"},
		{"a resource that is no URL", server.OAuth{Issuer: "https://login.example", Audiences: []string{"tools"}, Resource: "tools"}, `resource "tools"`},
		{"keys without https", server.OAuth{Issuer: "https://login.example", Audiences: []string{audience}, JWKSURL: "http://login.example/keys"}, "key set"},
		{"a scope with a space", server.OAuth{Issuer: "https://login.example", Audiences: []string{audience}, Scopes: []string{"a b"}}, `scope "a b"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.o.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A stream lasts as long as the token that opened it.
func TestStreamsEndWithTheirToken(t *testing.T) {
	ts := tokens(t, "ann", "1", "bob", "2")
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{Tokens: ts})
	open := func(token string) <-chan struct{} {
		res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+token)
		req, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Authorization": "Bearer " + token, "Accept": "text/event-stream", "Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")} {
			req.Header.Set(k, v)
		}
		stream, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer stream.Body.Close()
			buf := make([]byte, 512)
			for {
				if _, err := stream.Body.Read(buf); err != nil {
					return
				}
			}
		}()
		return ended
	}
	ann, bob := open("1"), open("2")
	ts.Set(tokens(t, "bob", "2", "eve", "3"))
	<-ann
	select {
	case <-bob:
		t.Error("the stream of a token that stays ended")
	default:
	}
	for token, status := range map[string]int{"1": 401, "2": 200, "3": 200} {
		if res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+token); res.StatusCode != status {
			t.Errorf("token %s: status %d, want %d", token, res.StatusCode, status)
		}
	}
	e.stop()
	<-bob
}

// A stream does not outlive the access token that opened it, in either protocol version.
func TestStreamsEndWhenTheirTokenExpires(t *testing.T) {
	const leeway = 30 * time.Second
	key := rsaSigner(t, "r1")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", key)
	e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: oauthOf(i)})
	long := key.token(t, i.claims())
	res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+long)
	session := res.Header.Get("Mcp-Session-Id")
	for _, tc := range []struct {
		protocol, method, body string
		headers                []string
	}{
		{"sessions", "GET", "", []string{"Mcp-Session-Id", session}},
		{"modern", "POST", strings.Replace(strings.Replace(listModern, "tools/list", "subscriptions/listen", 1), `"params":{`, `"params":{"notifications":{"toolsListChanged":true},`, 1),
			[]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"}},
	} {
		t.Run(tc.protocol, func(t *testing.T) {
			for left := 2 * time.Second; ; left *= 2 { // a slow machine may need more time
				ends := time.Now().Add(left - leeway)
				short := key.token(t, i.claims("exp", ends.Unix()+1))
				// The request returns when the stream ends, which only the expiry can cause.
				res, body := send(t, tc.method, e.url+"/mcp", tc.body, append([]string{"Authorization", "Bearer " + short}, tc.headers...)...)
				if res.StatusCode == 401 && left < time.Minute {
					continue
				}
				if res.StatusCode != 200 || time.Now().Before(ends.Add(leeway)) {
					t.Errorf("status %d, %s before its end: %s", res.StatusCode, time.Until(ends.Add(leeway)), body)
				}
				return
			}
		})
	}
}
