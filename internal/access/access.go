// Package access verifies access tokens of OAuth 2.1: JSON Web Tokens that an
// authorization server signed for this server (RFC 9068, RFC 8707).
//
// The keys are read from the authorization server, by its metadata (RFC 8414, OpenID
// Connect Discovery 1.0) or from a URL. They are read again when they are old and when a
// token names a key that is not known, at most once in [refetch] however many tokens
// do. Keys that are known stay in use while the authorization server is down.
package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"toolctl.dev/toolctl/internal/netaddr"
)

// Options say whose tokens are accepted, and for whom they must be.
type Options struct {
	// Issuer is the authorization server: the iss of its tokens. Required. https, or http
	// at a loopback address.
	Issuer string
	// JWKSURL is where its keys are. Default: where its metadata says.
	JWKSURL string
	// Audiences are the names of this server, one of which a token's aud must hold. Required.
	Audiences []string
	// PrincipalClaim is the claim that names who asks. Default: sub.
	PrincipalClaim string
	// GroupsClaim is the claim that names the groups of who asks, a list or a text with
	// spaces. Default: groups.
	GroupsClaim string
	// Logger is told when keys were read and when they could not be. Required.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Token is what a valid token says.
type Token struct {
	// Principal is who asks.
	Principal string
	Groups    []string
	Scopes    []string
	// Expires is when the token ends, the leeway included.
	Expires time.Time
}

var (
	// ErrUnavailable is returned by [Verifier.Verify] when no key of the authorization
	// server could be read yet, so that nothing can be said about a token.
	ErrUnavailable = errors.New("the keys of the authorization server have not been read yet")
	errKey         = errors.New("the token is signed with an unknown key of its issuer")
)

// Bounds of a token.
const (
	maxToken     = 16 << 10
	maxPrincipal = 256
	leeway       = 30 * time.Second // between the clocks of the issuer and this machine
)

// algorithms are the signatures that are taken: asymmetric ones only, so that nobody
// can use a public key as the secret of an HMAC (RFC 8725, section 2.1).
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Verifier verifies tokens. [Verifier.Run] must run for as long as it is used.
type Verifier struct {
	opts Options
	keys *keys
}

// New returns a verifier; nothing is fetched yet.
func New(o Options) (*Verifier, error) {
	o.PrincipalClaim, o.GroupsClaim = cmp.Or(o.PrincipalClaim, "sub"), cmp.Or(o.GroupsClaim, "groups")
	if o.Now == nil {
		o.Now = time.Now
	}
	issuer, err := secureURL(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer %q: %w", o.Issuer, err)
	}
	named := []*url.URL{issuer}
	if o.JWKSURL != "" {
		keySet, err := secureURL(o.JWKSURL)
		if err != nil {
			return nil, fmt.Errorf("key set %q: %w", o.JWKSURL, err)
		}
		named = append(named, keySet)
	}
	if len(o.Audiences) == 0 {
		return nil, errors.New("no audience: expected the aud of tokens for this server")
	}
	return &Verifier{opts: o, keys: newKeys(o, issuer, client(named...))}, nil
}

// Run reads the keys now and then until ctx ends.
func (v *Verifier) Run(ctx context.Context) { v.keys.run(ctx) }

// Ready reports whether keys are known.
func (v *Verifier) Ready() bool { return v.keys.count() > 0 }

// Verify returns what a token says, [ErrUnavailable], or an error that says what is
// wrong with the token and shows nothing of it.
func (v *Verifier) Verify(ctx context.Context, raw string) (Token, error) {
	if len(raw) > maxToken {
		return Token{}, fmt.Errorf("the token is longer than %d bytes", maxToken)
	}
	token, err := jwt.ParseSigned(raw, algorithms)
	if err != nil {
		return Token{}, explain(err)
	}
	header := token.Headers[0]
	if !typeAllowed(header) {
		return Token{}, errors.New("the token has another type: expected an access token (typ at+jwt or JWT)")
	}
	var claims jwt.Claims
	var all map[string]json.RawMessage
	err = v.keys.each(ctx, header, func(k *jose.JSONWebKey) error { return token.Claims(k.Key, &claims, &all) })
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, errKey), ctx.Err() != nil:
		return Token{}, err
	case err != nil:
		return Token{}, explain(err)
	}
	if claims.Expiry == nil {
		return Token{}, errors.New("the token has no exp: expected an expiry time")
	}
	expected := jwt.Expected{Issuer: v.opts.Issuer, AnyAudience: v.opts.Audiences, Time: v.opts.Now()}
	if err := claims.ValidateWithLeeway(expected, leeway); err != nil {
		return Token{}, explain(err)
	}
	principal := text(all[v.opts.PrincipalClaim])
	if principal == "" || len(principal) > maxPrincipal || strings.ContainsFunc(principal, unicode.IsControl) {
		return Token{}, fmt.Errorf("the claim %q has no principal: expected a text of 1 to %d bytes without control characters", v.opts.PrincipalClaim, maxPrincipal)
	}
	return Token{Principal: principal, Groups: words(all[v.opts.GroupsClaim]), Scopes: scopes(all), Expires: claims.Expiry.Time().Add(leeway)}, nil
}

// explain says in few words what is wrong with a token. The library's own words may
// hold parts of it.
func explain(err error) error {
	var algorithm *jose.ErrUnexpectedSignatureAlgorithm
	for _, known := range []struct {
		is   error
		text string
	}{
		{jwt.ErrInvalidIssuer, "the token has another issuer"},
		{jwt.ErrInvalidAudience, "the token is for another audience"},
		{jwt.ErrExpired, "the token expired"},
		{jwt.ErrNotValidYet, "the token is not valid yet"},
		{jwt.ErrIssuedInTheFuture, "the token was issued in the future"},
		{jose.ErrCryptoFailure, "the token's signature is wrong"},
	} {
		if errors.Is(err, known.is) {
			return errors.New(known.text)
		}
	}
	if errors.As(err, &algorithm) {
		return errors.New("the signature algorithm of the token is not allowed: expected RS256 to RS512, PS256 to PS512, ES256 to ES512 or EdDSA")
	}
	return errors.New("the token is unknown and is not a readable JSON Web Token")
}

// typeAllowed keeps tokens out that the issuer signed for another use, such as a
// logout (RFC 8725, section 3.11). Not every issuer marks its access tokens.
func typeAllowed(h jose.Header) bool {
	typ, _ := h.ExtraHeaders[jose.HeaderType].(string)
	return slices.Contains([]string{"", "jwt", "at+jwt"}, strings.TrimPrefix(strings.ToLower(typ), "application/"))
}

// scopes reads scope, a text with spaces (RFC 9068, section 2.2.3), or scp, which some
// issuers write as a list.
func scopes(claims map[string]json.RawMessage) []string {
	var all []string
	for _, name := range []string{"scope", "scp"} {
		all = append(all, words(claims[name])...)
	}
	return all
}

// words reads a claim that is a list of texts, or a text with spaces.
func words(claim json.RawMessage) []string {
	var list []string
	if json.Unmarshal(claim, &list) != nil {
		list = strings.Fields(text(claim))
	}
	return list
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // what is no text is none
	return s
}

// client fetches what the operator named; it follows no redirect to a place that may be read on
// the way. Where the issuer leads was not named, so that may not be a private address, but on one of
// the hosts that were.
func client(named ...*url.URL) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // it is used every few minutes
	var hosts []string
	for _, u := range named {
		hosts = append(hosts, u.Hostname())
		if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
			hosts = append(hosts, proxy.Hostname())
		}
	}
	allowed, _ := netaddr.Parse(hosts) // what cannot be allowed is not
	transport.DialContext = allowed.DialContext(net.Dialer{Timeout: fetchTimeout})
	return &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if _, err := secureURL(r.URL.String()); err != nil || len(via) > 3 {
			return errors.New("it redirects too often, or to an address without https")
		}
		return nil
	}}
}
