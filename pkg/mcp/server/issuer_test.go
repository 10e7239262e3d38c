package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// issuer is an authorization server on loopback.
type issuer struct {
	url     string
	fetched atomic.Int64 // how often the key set was read

	mu   sync.Mutex
	keys []jose.JSONWebKey
	down bool
}

// newIssuer serves metadata at the place that a specification defines, and a key set.
func newIssuer(t testing.TB, place string, keys ...signer) *issuer {
	t.Helper()
	i := &issuer{}
	mux := http.NewServeMux()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	i.url = srv.URL
	mux.HandleFunc(place, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: i.keys})
	})
	i.publish(keys...)
	return i
}

func (i *issuer) publish(keys ...signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = nil
	for _, k := range keys {
		i.keys = append(i.keys, jose.JSONWebKey{Key: k.key.Public(), KeyID: k.kid, Algorithm: string(k.alg), Use: "sig"})
	}
}

func (i *issuer) stop(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// signer is a key of an issuer.
type signer struct {
	kid string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

var (
	rsaKey, rsaErr = rsa.GenerateKey(rand.Reader, 2048)
	ecKey, ecErr   = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
)

func rsaSigner(t testing.TB, kid string) signer {
	t.Helper()
	if rsaErr != nil {
		t.Fatal(rsaErr)
	}
	return signer{kid, jose.RS256, rsaKey}
}

func ecSigner(t testing.TB, kid string) signer {
	t.Helper()
	if ecErr != nil {
		t.Fatal(ecErr)
	}
	return signer{kid, jose.ES256, ecKey}
}

func edSigner(t testing.TB, kid string) signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{kid, jose.EdDSA, key}
}

// token signs claims; a nil claim is left out.
func (k signer) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	return sign(t, k.alg, k.key, k.kid, "at+jwt", claims)
}

func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, kid, typ string, claims map[string]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType(jose.ContentType(typ))
	if kid != "" {
		o = o.WithHeader(jose.HeaderKey("kid"), kid)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const audience = "https://tools.example.com/mcp"

// claims returns the claims of a valid token. pairs change them, and nil removes a claim.
func (i *issuer) claims(pairs ...any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": i.url, "aud": audience, "sub": "ann", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "tools:call extra"}
	for n := 0; n < len(pairs); n += 2 {
		if c[pairs[n].(string)] = pairs[n+1]; pairs[n+1] == nil {
			delete(c, pairs[n].(string))
		}
	}
	return c
}

func newServer(t testing.TB, h http.HandlerFunc) (url string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
