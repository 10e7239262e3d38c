package access

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/netaddr"
)

// Limits for reading keys.
const (
	refresh      = 15 * time.Minute // keys older than this are read again
	refetch      = 10 * time.Second // the minimum time between two reads
	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20 // bytes of the metadata, and of the key set
	maxKeys      = 100
	maxTries     = 8    // maximum number of keys to try for a token without kid
	maxWaiting   = 256  // maximum number of tokens with an unknown key that wait for a read
	minRSA       = 2048 // bits
	maxRSA       = 8192 // a larger modulus costs more time than it adds security
)

// keys is the key set of the issuer, as of the last successful read.
type keys struct {
	opts   Options
	issuer *url.URL
	http   *http.Client
	ask    chan struct{} // holds one element while a read is requested

	mu      sync.Mutex
	known   []jose.JSONWebKey
	last    time.Time     // when the last read ended
	reading chan struct{} // closed when the requested read has ended; nil without a request
	waiting int
}

func newKeys(o Options, issuer *url.URL, client *http.Client) *keys {
	return &keys{opts: o, issuer: issuer, http: client, ask: make(chan struct{}, 1)}
}

// run reads the keys at the start, when they are old, and on request, until ctx ends.
func (k *keys) run(ctx context.Context) {
	patience := refetch
	for {
		ended := k.begin()
		set, err := k.read(ctx)
		next := refresh
		if err == nil {
			patience = refetch
		} else if ctx.Err() == nil {
			next, patience = patience, min(2*patience, refresh)
			k.opts.Logger.Warn("the keys of the authorization server could not be read; the known keys stay in use",
				slog.String("issuer", k.opts.Issuer), slog.Int("known", k.count()), slog.Any("error", err))
		}
		k.keep(set, err, ended)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-k.ask:
			timer.Stop()
		}
	}
}

// begin marks a read as started: all later requests wait for this read.
func (k *keys) begin() chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reading == nil {
		k.reading = make(chan struct{})
	}
	return k.reading
}

func (k *keys) keep(set []jose.JSONWebKey, err error, ended chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.known = set
	}
	k.last, k.reading = k.opts.Now(), nil
	select {
	case <-k.ask: // this read answers the request
	default:
	}
	close(ended)
}

func (k *keys) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.known)
}

// each calls try with each key that may have signed the token, until try succeeds.
func (k *keys) each(ctx context.Context, h jose.Header, try func(*jose.JSONWebKey) error) error {
	err := k.tryAll(h, try)
	if err == nil || !errors.Is(err, errKey) && h.KeyID != "" {
		return err
	}
	if werr := k.again(ctx); werr != nil {
		return werr
	}
	if k.count() == 0 {
		return ErrUnavailable
	}
	return k.tryAll(h, try)
}

func (k *keys) tryAll(h jose.Header, try func(*jose.JSONWebKey) error) error {
	k.mu.Lock()
	known := k.known // never changed in place
	k.mu.Unlock()
	err, tried := errKey, 0
	for i := range known {
		key := &known[i]
		if h.KeyID != "" && key.KeyID != h.KeyID || key.Algorithm != "" && key.Algorithm != h.Algorithm || tried == maxTries {
			continue
		}
		tried++
		if err = try(key); err == nil {
			return nil
		}
	}
	return err
}

// again waits until the keys have been read once more. It returns at once if they were read recently.
func (k *keys) again(ctx context.Context) error {
	k.mu.Lock()
	if k.reading == nil {
		if k.opts.Now().Sub(k.last) < refetch && !k.last.IsZero() {
			k.mu.Unlock()
			return nil
		}
		k.reading = make(chan struct{})
		k.ask <- struct{}{} // does not block: the channel is emptied before reading becomes nil again
	}
	if k.waiting >= maxWaiting {
		k.mu.Unlock()
		return ErrUnavailable
	}
	k.waiting++
	ended := k.reading
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read calls fetch and turns a panic into an error, because a library that parses foreign bytes must not
// end the process.
func (k *keys) read(ctx context.Context) (set []jose.JSONWebKey, err error) {
	defer func() {
		if p := recover(); p != nil {
			set, err = nil, fmt.Errorf("the key set cannot be read: %v", p)
		}
	}()
	return k.fetch(ctx)
}

// fetch reads the key set.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	at := k.opts.JWKSURL
	if at == "" {
		var err error
		if at, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, at, &set); err != nil {
		return nil, err
	}
	var usable []jose.JSONWebKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey
		// A key of an unknown kind does not make the other keys unusable (RFC 7517, section 5).
		if json.Unmarshal(raw, &key) == nil && canVerify(&key) {
			usable = append(usable, key)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("%s: %s, none of which can verify a signature", at, clip.Count(len(set.Keys), "key"))
	}
	return usable, nil
}

// canVerify reports whether a key is a public key for signatures.
func canVerify(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" || !k.Valid() || !k.IsPublic() {
		return false
	}
	if rsaKey, ok := k.Key.(*rsa.PublicKey); ok {
		return rsaKey.N.BitLen() >= minRSA && rsaKey.N.BitLen() <= maxRSA
	}
	return true
}

// discover returns the address of the key set from the issuer's metadata. It tries the places and the order
// of the MCP specification (authorization server metadata discovery).
func (k *keys) discover(ctx context.Context) (string, error) {
	path := strings.TrimSuffix(k.issuer.Path, "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, path+"/.well-known/openid-configuration")
	}
	var errs []error
	for _, place := range places {
		at := k.issuer.Scheme + "://" + k.issuer.Host + place
		var found struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		err := k.get(ctx, at, &found)
		switch {
		case err != nil:
		case found.Issuer != k.opts.Issuer: // RFC 8414, section 3.3
			err = fmt.Errorf("%s: the metadata belongs to another issuer, %q", at, clip.Bytes(found.Issuer, 200))
		case found.JWKS == "":
			err = fmt.Errorf("%s: it has no jwks_uri", at)
		default:
			if _, err = secureURL(found.JWKS); err == nil {
				return found.JWKS, nil
			}
			err = fmt.Errorf("%s: jwks_uri %q: %w", at, clip.Bytes(found.JWKS, 200), err)
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// get reads a JSON document.
func (k *keys) get(ctx context.Context, at string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := k.http.Do(req)
	if private := new(netaddr.PrivateError); errors.As(err, &private) {
		return fmt.Errorf("%w: the issuer resolves to a private address: if that is intended, set --oauth-jwks-url", err)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: expected 200", at, res.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", at, err)
	case len(data) > maxDocument:
		return fmt.Errorf("%s: larger than %d bytes", at, maxDocument)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: unexpected JSON: %w", at, err)
	}
	return nil
}

// secureURL parses an address that nobody on the network can change: https, or http on this machine.
func secureURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("expected a URL such as https://login.example.com")
	case u.Scheme == "https":
		return u, nil
	case u.Scheme != "http":
		return nil, errors.New("expected https")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, errors.New("expected https: http is for addresses of this machine only")
	}
	return u, nil
}
