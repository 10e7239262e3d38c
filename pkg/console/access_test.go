package console_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// TestCookieOverTLS checks that with TLS the cookie is bound to this host and sent only over TLS, and that no address
// contains the token.
func TestCookieOverTLS(t *testing.T) {
	for _, tls := range []bool{true, false} {
		s := serve(t, options{manifests: heldPay, principals: []string{"ann"}, tls: tls})
		s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		res := s.open("POST", "sign-in", "", "token=ann")
		res.Body.Close()
		if at := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || strings.Contains(at, "ann") || len(res.Cookies()) != 1 {
			t.Fatalf("%d, to %q, %v", res.StatusCode, at, res.Cookies())
		}
		c := res.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure != tls || strings.HasPrefix(c.Name, "__Host-") != tls || strings.Contains(c.Value, "ann") {
			t.Errorf("over TLS %t: %s", tls, c)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"approvals", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(c)
		if res, err = s.client.Do(req); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("over TLS %t: %d with the cookie", tls, res.StatusCode)
		}
	}
}

// TestGroupsOfOAuth checks that the groups in an OAuth token can decide on calls and operate the console.
func TestGroupsOfOAuth(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256"}}})
	}))
	defer keys.Close()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(name string, groups ...string) string {
		text, err := jwt.Signed(signer).Claims(map[string]any{"iss": keys.URL, "aud": "api://tools", "sub": name, "roles": groups, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := serve(t, options{
		manifests: strings.Replace(heldPay, "principals: [ann]", "groups: [finance]", 1),
		http:      server.HTTPOptions{OAuth: &server.OAuth{Issuer: keys.URL, JWKSURL: keys.URL, Audiences: []string{"api://tools"}, Resource: "https://tools.example.com/mcp", GroupsClaim: "roles"}},
		console:   console.Options{Operators: v1.Approvers{Groups: []string{"platform"}}},
	})
	hold := func(to string) string {
		t.Helper()
		_, body := s.ask("POST", "api/tools/default/pay/call", token("bob", "finance"), `{"args":{"to":"`+to+`"}}`)
		var res v1.Result
		if err := json.Unmarshal([]byte(body), &res); err != nil || res.Pending == nil {
			t.Fatal(body)
		}
		return res.Pending.ID
	}
	id := hold("x")
	for _, tt := range []struct {
		name, token string
		want        int
	}{
		{"of no group", token("tom"), 403},
		{"of another group", token("tom", "sales", "financ"), 403},
		{"the caller, of the group", token("bob", "finance"), 403},
		{"of the group", token("kim", "sales", "finance"), 200},
	} {
		if code, body := s.ask("POST", "api/approvals/"+id, tt.token, `{"approve":true}`); code != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, code, tt.want, body)
		}
	}
	// The same works with the cookie of a sign-in.
	id = hold("y")
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res := s.open("POST", "sign-in", "", "token="+token("kim", "finance"))
	res.Body.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"approvals/"+id, strings.NewReader("decision=approve&note=fine"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.AddCookie(res.Cookies()[0])
	if res, err = s.client.Do(req); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Errorf("with the cookie: %d", res.StatusCode)
	}
	for groups, want := range map[string]int{"finance": 403, "platform": 200} {
		if code, body := s.ask("GET", "api/changes/pending", token("kim", groups), ""); code != want {
			t.Errorf("of %s: %d, want %d: %s", groups, code, want, body)
		}
	}
}

// TestGroupsOfTokenFile checks that the groups in the token file can decide on calls and operate the console.
func TestGroupsOfTokenFile(t *testing.T) {
	s := serve(t, options{
		manifests:  strings.Replace(heldPay, "principals: [ann]", "groups: [finance]", 1),
		principals: []string{"tom", "bob:finance", "kim:sales,finance", "pia:platform"},
		console:    console.Options{Operators: v1.Approvers{Groups: []string{"platform"}}},
	})
	_, body := s.ask("POST", "api/tools/default/pay/call", "bob", `{"args":{"to":"x"}}`)
	var res v1.Result
	if err := json.Unmarshal([]byte(body), &res); err != nil || res.Pending == nil {
		t.Fatal(body)
	}
	for _, tt := range []struct {
		name, token string
		want        int
	}{
		{"of no group", "tom", 403},
		{"of another group", "pia", 403},
		{"the caller, of the group", "bob", 403},
		{"of the group", "kim", 200},
	} {
		if code, body := s.ask("POST", "api/approvals/"+res.Pending.ID, tt.token, `{"approve":true}`); code != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, code, tt.want, body)
		}
	}
	for who, want := range map[string]int{"kim": 403, "pia": 200} {
		if code, body := s.ask("GET", "api/changes/pending", who, ""); code != want {
			t.Errorf("%s: %d, want %d: %s", who, code, want, body)
		}
	}
}

// TestEventsEndWithTheToken checks that a page receives no more events after its token is revoked or its person signs
// out.
func TestEventsEndWithTheToken(t *testing.T) {
	tokens := func(names ...string) *server.Tokens {
		var b strings.Builder
		for _, name := range names {
			fmt.Fprintf(&b, "%s:%x\n", name, sha256.Sum256([]byte(name)))
		}
		all, err := server.ReadTokens(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for how, cookie := range map[string]bool{"its token": false, "the token of its session": true, "its session": true} {
		t.Run(how, func(t *testing.T) {
			taken := tokens("ann", "bob")
			s := serve(t, options{manifests: heldPay, http: server.HTTPOptions{Tokens: taken}})
			s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // shorter than the keep-alive interval
			defer cancel()
			send := func(method, path string, cookies []*http.Cookie) *http.Response {
				t.Helper()
				req, err := http.NewRequestWithContext(ctx, method, s.url+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if cookies == nil {
					req.Header.Set("Authorization", "Bearer bob")
				}
				for _, c := range cookies {
					req.AddCookie(c)
				}
				res, err := s.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			var cookies []*http.Cookie
			if cookie {
				res := s.open("POST", "sign-in", "", "token=bob")
				res.Body.Close()
				cookies = res.Cookies()
			}
			page := send("GET", "events", cookies)
			defer page.Body.Close()
			if line, err := bufio.NewReader(page.Body).ReadString('\n'); err != nil || line != "event: waiting\n" {
				t.Fatalf("%q %v", line, err)
			}
			if how == "its session" {
				send("POST", "sign-out", cookies).Body.Close()
			} else {
				taken.Set(tokens("ann"))
			}
			if _, err := io.Copy(io.Discard, page.Body); err != nil {
				t.Errorf("the page is told of calls still: %v", err)
			}
		})
	}
}

// TestNameOfThePerson checks that the person at this machine uses the console at a host name that no other program
// knows, and that nothing but the console is served at this name.
func TestNameOfThePerson(t *testing.T) {
	s := serve(t, options{manifests: heldPay})
	link, err := neturl.Parse(s.console.Link(s.url))
	if err != nil || !regexp.MustCompile(`^[a-z2-7]{16}\.localhost$`).MatchString(link.Hostname()) || !strings.HasSuffix(s.url, ":"+link.Port()+"/ui/") {
		t.Fatalf("the link is %s", link)
	}
	if other := serve(t, options{manifests: heldPay}); strings.Contains(other.console.Link(other.url), link.Hostname()) {
		t.Error("two consoles have one name")
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(host, url string, cookies ...*http.Cookie) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for _, c := range cookies {
			req.AddCookie(c)
		}
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	once := s.url + "sign-in?" + link.RawQuery
	if res, body := ask("an-earlier-start.localhost:"+link.Port(), once); res.StatusCode != http.StatusForbidden || !strings.Contains(body, "open the link that toolctl printed") {
		t.Errorf("another name: %d %s", res.StatusCode, body)
	}
	res, _ := ask(link.Host, once)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 || res.Cookies()[0].Domain != "" {
		t.Fatalf("%d %v", res.StatusCode, res.Cookies())
	}
	if res, body := ask(link.Host, s.url, res.Cookies()...); res.StatusCode != http.StatusOK || !strings.Contains(body, "Sign out") {
		t.Errorf("with the cookie: %d %s", res.StatusCode, body)
	}
	if again, body := ask(link.Host, once, res.Cookies()...); again.StatusCode != http.StatusSeeOther {
		t.Errorf("the link again, by who is signed in: %d %s", again.StatusCode, body)
	}
	if again, body := ask(link.Host, once); again.StatusCode != http.StatusForbidden || !strings.Contains(body, "used already") {
		t.Errorf("the link again, by another: %d %s", again.StatusCode, body)
	}
	for _, host := range []string{link.Host, "evil.example"} {
		if res, body := ask(host, strings.TrimSuffix(s.url, "ui/")+"mcp"); res.StatusCode != http.StatusForbidden {
			t.Errorf("/mcp as %s: %d %s", host, res.StatusCode, body)
		}
	}
	if res, body := ask("127.0.0.1:"+link.Port(), s.url); res.StatusCode != http.StatusUnauthorized || strings.Contains(body, link.Hostname()) {
		t.Errorf("at the address: %d %s", res.StatusCode, body)
	}
	// With TLS, or with a configured address, the link has no such name.
	for _, o := range []options{{manifests: heldPay, tls: true}, {manifests: heldPay, console: console.Options{URL: "https://tools.example.com/ui/"}}} {
		if s := serve(t, o); strings.Contains(s.console.Link(s.url), "localhost") {
			t.Errorf("a link of %s is %s", s.url, s.console.Link(s.url))
		}
	}
}

// TestCookieBehindTLS checks that behind a proxy with TLS the cookie is bound to the proxy's host and sent only over
// TLS.
func TestCookieBehindTLS(t *testing.T) {
	s := serve(t, options{manifests: heldPay, principals: []string{"ann"}, console: console.Options{URL: "https://tools.example.com/x/ui/"}})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res := s.open("POST", "sign-in", "", "token=ann")
	res.Body.Close()
	if c := res.Cookies(); len(c) != 1 || c[0].Name != "__Host-toolctl" || !c[0].Secure || c[0].Path != "/" || c[0].Domain != "" {
		t.Fatalf("%v", c)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"approvals", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(res.Cookies()[0])
	if res, err = s.client.Do(req); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("%d with the cookie", res.StatusCode)
	}
}
