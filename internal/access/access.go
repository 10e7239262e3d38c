// Package access verifies OAuth 2.1 access tokens: JSON Web Tokens that an authorization server signed for
// this server (RFC 9068, RFC 8707).
//
// The package finds the keys through the metadata of the authorization server (RFC 8414, OpenID Connect
// Discovery 1.0), or reads them from a configured URL. It reads the keys again when they are old, and when
// a token names an unknown key, but at most once per [refetch]. Known keys stay in use while the
// authorization server is down.
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

// Options configure which tokens a [Verifier] accepts.
type Options struct {
	// Issuer is the authorization server: the iss claim of its tokens. Required. The scheme must be https, or
	// http for a loopback address.
	Issuer string
	// JWKSURL is the address of the key set. Default: the address in the issuer's metadata.
	JWKSURL string
	// Audiences are the names of this server. The aud claim of a token must contain one of these names.
	// Required.
	Audiences []string
	// PrincipalClaim is the claim that names the caller. Default: sub.
	PrincipalClaim string
	// GroupsClaim is the claim that lists the caller's groups, as a list or as a string separated by spaces.
	// Default: groups.
	GroupsClaim string
	// Logger records when keys were read and when reading failed. Required.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Token holds the claims of a valid token.
type Token struct {
	// Principal is the caller.
	Principal string
	Groups    []string
	Scopes    []string
	// Expires is the time at which the token expires, including the leeway.
	Expires time.Time
}

var (
	// ErrUnavailable is returned by [Verifier.Verify] while no key of the authorization server has been read,
	// so that no token can be verified.
	ErrUnavailable = errors.New("the keys of the authorization server have not been read yet")
	errKey         = errors.New("the token is signed with an unknown key of its issuer")
)

// Limits for a token.
const (
	maxToken     = 16 << 10
	maxPrincipal = 256
	leeway       = 30 * time.Second // difference allowed between the clocks of the issuer and this machine
)

// algorithms are the accepted signature algorithms. All are asymmetric, so that nobody can use a public key
// as the secret of an HMAC (RFC 8725, section 2.1).
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Verifier verifies tokens. [Verifier.Run] must run while the verifier is in use.
type Verifier struct {
	opts Options
	keys *keys
}

// New returns a verifier. It does not fetch any keys.
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

// Run reads the keys periodically until ctx ends.
func (v *Verifier) Run(ctx context.Context) { v.keys.run(ctx) }

// Ready reports whether keys are known.
func (v *Verifier) Ready() bool { return v.keys.count() > 0 }

// Verify returns the claims of a token. Its error is [ErrUnavailable], or describes the problem without
// showing any part of the token.
func (v *Verifier) Verify(ctx context.Context, raw string, audiences ...string) (Token, error) {
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
	expected := jwt.Expected{Issuer: v.opts.Issuer, AnyAudience: append(audiences, v.opts.Audiences...), Time: v.opts.Now()}
	if err := claims.ValidateWithLeeway(expected, leeway); err != nil {
		return Token{}, explain(err)
	}
	principal := text(all[v.opts.PrincipalClaim])
	if principal == "" || len(principal) > maxPrincipal || strings.ContainsFunc(principal, unicode.IsControl) {
		return Token{}, fmt.Errorf("the claim %q has no principal: expected a text of 1 to %d bytes without control characters", v.opts.PrincipalClaim, maxPrincipal)
	}
	return Token{Principal: principal, Groups: words(all[v.opts.GroupsClaim]), Scopes: scopes(all), Expires: claims.Expiry.Time().Add(leeway)}, nil
}

// explain describes the problem with a token. The library's own messages may contain parts of the token.
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

// typeAllowed rejects tokens that the issuer signed for another purpose, such as a logout (RFC 8725,
// section 3.11). It accepts a token without a type, because not every issuer marks its access tokens.
func typeAllowed(h jose.Header) bool {
	typ, _ := h.ExtraHeaders[jose.HeaderType].(string)
	return slices.Contains([]string{"", "jwt", "at+jwt"}, strings.TrimPrefix(strings.ToLower(typ), "application/"))
}

// scopes reads the claim scope, a string separated by spaces (RFC 9068, section 2.2.3), or scp, which some
// issuers write as a list.
func scopes(claims map[string]json.RawMessage) []string {
	var all []string
	for _, name := range []string{"scope", "scp"} {
		all = append(all, words(claims[name])...)
	}
	return all
}

// words reads a claim that is a list of strings, or a string separated by spaces.
func words(claim json.RawMessage) []string {
	var list []string
	if json.Unmarshal(claim, &list) != nil {
		list = strings.Fields(text(claim))
	}
	return list
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // a value that is not a string yields ""
	return s
}

// client returns an HTTP client for the addresses that the operator configured. It follows only secure
// redirects. It connects to a private address only on the hosts of named, because the issuer's metadata and
// redirects may lead elsewhere.
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
	allowed, _ := netaddr.Parse(hosts) // an entry that cannot be parsed is not allowed
	transport.DialContext = allowed.DialContext(net.Dialer{Timeout: fetchTimeout})
	return &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if _, err := secureURL(r.URL.String()); err != nil || len(via) > 3 {
			return errors.New("it redirects too often, or to an address without https")
		}
		return nil
	}}
}
