package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestServeTakesAccessTokens checks the path from the flags to the principal of a call. The tests of the library check
// the rest.
func TestServeTakesAccessTokens(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	issuer := httptest.NewServer(mux)
	defer issuer.Close()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256"}}})
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(audience, scope string) string {
		now := time.Now()
		text, err := jwt.Signed(signer).Claims(map[string]any{"iss": issuer.URL, "aud": audience, "sub": "1", "email": "ann@example.com", "scope": scope, "exp": now.Add(time.Hour).Unix()}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	dir := t.TempDir()
	file, tokens := filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "tokens")
	writeFile(t, file, fmt.Sprintf(mockTool, "one"))
	writeFile(t, tokens, tokenLine("bob", "s3cret"))
	s := serveHTTP(t, "-f", file, "--token-file", tokens, "--oauth-issuer", issuer.URL, "--oauth-jwks-url", issuer.URL+"/keys",
		"--oauth-audience", "api://tools,https://tools.example.com/mcp", "--oauth-scopes", "a,b", "--oauth-principal-claim", "email")
	for _, tc := range []struct {
		name, token string
		status      int
	}{
		{"the first audience", token("api://tools", "a b c"), 200},
		{"the second audience", token("https://tools.example.com/mcp", "b a"), 200},
		{"of the file", "s3cret", 200},
		{"another audience", token("api://other", "a b"), 401},
		{"one scope of two", token("api://tools", "a"), 403},
		{"nonsense", "x", 401},
	} {
		if got := s.status(t, tc.token); got != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, got, tc.status)
		}
	}
	raw := &rawSession{t: t, url: s.url, modern: true, token: token("api://tools", "a b")}
	raw.result("tools/call", "one", `"name":"one"`)
	s.wait(t, `"principal":"ann@example.com"`)
	raw.token = ""
	if res, _ := raw.post("tools/list", "", ""); !strings.Contains(res.Header.Get("WWW-Authenticate"), `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp", scope="a b"`) {
		t.Errorf("got %d, %s", res.StatusCode, res.Header.Get("WWW-Authenticate"))
	}
}
