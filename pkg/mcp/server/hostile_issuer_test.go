package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// inside returns a server at another private address than the issuer's.
func inside(t *testing.T) (url string, reached *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0") //nolint:noctx // a test
	if err != nil {
		t.Skip("this machine has one loopback address: ", err)
	}
	reached = &atomic.Int32{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, reached
}

// The metadata and the redirects of a configured issuer must not lead to private addresses, except on
// configured hosts.
func TestIssuerLeadsToNoPrivateAddress(t *testing.T) {
	key := rsaSigner(t, "r1")
	at, reached := inside(t)
	for name, answer := range map[string]http.HandlerFunc{
		"by its metadata": func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "http://" + r.Host, "jwks_uri": at})
		},
		"by a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, at, http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			url := newServer(t, answer)
			e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: &server.OAuth{Issuer: url, Audiences: []string{audience}}})
			claims := (&issuer{url: url}).claims()
			if res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+key.token(t, claims)); res.StatusCode != http.StatusServiceUnavailable || reached.Load() != 0 {
				t.Errorf("status %d, want 503; the inside was reached %d times", res.StatusCode, reached.Load())
			}
		})
	}
}

func TestHostileKeySets(t *testing.T) {
	key := rsaSigner(t, "r1")
	good, err := json.Marshal(jose.JSONWebKey{Key: key.key.Public(), KeyID: "r1", Algorithm: "RS256", Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	number := func(bits uint) string {
		return base64.RawURLEncoding.EncodeToString(new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1)).Bytes())
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `{"kty":"RSA","kid":"r1","e":"AQAB","n":"%s"},`, number(2048+uint(i%8)))
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a modulus of 65,536 bits":         text(`{"keys":[{"kty":"RSA","kid":"r1","e":"AQAB","n":"` + number(65536) + `"}]}`),
		"an exponent of 4,096 bits":        text(`{"keys":[{"kty":"RSA","kid":"r1","e":"` + number(4096) + `","n":"` + number(2048) + `"}]}`),
		"no modulus":                       text(`{"keys":[{"kty":"RSA","kid":"r1","e":"AQAB","n":""}]}`),
		"a point that is not on its curve": text(`{"keys":[{"kty":"EC","kid":"r1","crv":"P-256","x":"AQ","y":"AQ"}]}`),
		"great depth":                      text(strings.Repeat(`{"keys":[`, 100_000)),
		"keys that are no objects":         text(`{"keys":[1,null,"x",[[]]]}`),
		"the good key behind 2,000 others": text(`{"keys":[` + many.String() + string(good) + `]}`),
		"a document without end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"a document that comes byte by byte": func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					_, _ = io.WriteString(w, " ")
					_ = http.NewResponseController(w).Flush()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a response without end is abandoned after 10 seconds
			i := newIssuer(t, "/none", key)
			o := oauthOf(i)
			o.JWKSURL = newServer(t, answer)
			e := listen(t, server.New(catalogOf(), server.Options{}), server.HTTPOptions{OAuth: o})
			res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer "+key.token(t, i.claims()))
			if res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusUnauthorized {
				t.Errorf("status %d, want 503 or 401", res.StatusCode)
			}
		})
	}
}
