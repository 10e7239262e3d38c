package replica

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Path is the path for forwarded requests, and StreamPath the path for streams to servers that run on one replica only.
const (
	Path       = "/replica/mcp"
	StreamPath = "/replica/server"
)

// header is the header with the credential of a forwarded request.
const header = "Toolctl-Replica"

// fresh is how long a credential is valid, before and after its time by the clock of the store.
const fresh = 10 * time.Second

// passed are the headers of a request that are forwarded. The client's token is not one of these.
var passed = []string{
	"Accept", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
	"Baggage", "Traceparent", "Tracestate",
}

const passedParams = "Mcp-Param-" // prefix of the headers with arguments (MCP 2026-07-28)

// Caller is the sender of a forwarded request.
type Caller struct {
	Toolset   string    `json:"o,omitempty"` // the toolset in the address of the request
	Principal string    `json:"p,omitempty"`
	Groups    []string  `json:"g,omitempty"`
	Scopes    []string  `json:"s,omitempty"`
	Expires   time.Time `json:"e,omitzero"` // by the clock of this process; in a credential by the store
}

// credential describes a forwarded request and its caller.
type credential struct {
	To     string    `json:"t"`
	Method string    `json:"m"`
	Digest []byte    `json:"d"` // the digest of the path, the headers and the body
	Time   time.Time `json:"n"`
	Caller Caller    `json:"c"`
}

const purpose = "request"

// sign returns the credential of a request to another replica.
func (m *Member) sign(to, path, method string, headers http.Header, body []byte, c Caller) (string, error) {
	c.Expires = shift(c.Expires, m.view.Load().ahead)
	text, err := json.Marshal(credential{To: to, Method: method, Digest: digest(path, headers, body), Time: m.now().UTC(), Caller: c})
	if err != nil {
		return "", err
	}
	return m.opts.Keys.Seal(purpose, text), nil
}

// shift converts a time from one clock to another. It leaves the zero time, which means no time, unchanged.
func shift(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// digest returns the SHA-256 of the parts of a request that a credential covers in addition to its method.
func digest(path string, headers http.Header, body []byte) []byte {
	h := sha256.New()
	put := func(parts ...string) {
		for _, p := range parts {
			fmt.Fprintf(h, "%d:%s", len(p), p)
		}
	}
	put(path)
	for _, name := range sorted(headers) {
		if forwardable(name) {
			put(name)
			put(headers[name]...)
		}
	}
	put("", string(body))
	return h.Sum(nil)
}

func forwardable(name string) bool {
	return slices.Contains(passed, name) || strings.HasPrefix(name, passedParams)
}

// Errors of [Member.Accept].
var (
	// ErrCredential says that no replica with these keys has forwarded this request recently.
	ErrCredential = errors.New("the credential was sealed with a different key, is for another request, was already used, or has expired")
	// ErrLate says that the credential expired before the request arrived, because one of the two replicas stood still.
	// The request was not executed.
	ErrLate = errors.New("the replica received the request more than 10 seconds after it was sent, because one of the two replicas was paused, and did not execute it: send it again")
	// ErrMisdirected says that the request was forwarded to another replica.
	ErrMisdirected = errors.New("the request is for another replica")
)

// Forwarded is a request forwarded by another replica.
type Forwarded struct {
	Caller Caller
	path   string
	digest []byte
}

// Accept reads the credential of a request. The caller must also check the request with Matches.
func (m *Member) Accept(r *http.Request) (*Forwarded, error) {
	text := r.Header.Get(header)
	plain, ok := m.opts.Keys.Open(purpose, text)
	var c credential
	if !ok || json.Unmarshal(plain, &c) != nil || c.Method != r.Method {
		return nil, ErrCredential
	}
	if c.To != m.id {
		return nil, ErrMisdirected
	}
	now := m.now()
	age := now.Sub(c.Time)
	if age > fresh {
		return nil, ErrLate
	}
	if age < -fresh || !m.seen.first(text, c.Time, now) {
		return nil, ErrCredential
	}
	c.Caller.Expires = shift(c.Caller.Expires, -m.view.Load().ahead)
	return &Forwarded{Caller: c.Caller, path: r.URL.Path, digest: c.Digest}, nil
}

// Matches reports whether the credential is for a request with these headers and this body.
func (f *Forwarded) Matches(headers http.Header, body []byte) bool {
	return string(digest(f.path, headers, body)) == string(f.digest)
}

// replays remembers used credentials for longer than their validity.
type replays struct {
	mu   sync.Mutex
	used map[string]time.Time // when each was created
	cut  time.Time
}

// maxReplays is the maximum number of remembered credentials; further ones are refused.
const maxReplays = 500_000

// first reports whether a credential was not used before.
func (p *replays) first(text string, made, now time.Time) bool {
	const distinct = 40 // length of the random prefix
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[string]time.Time{}
	}
	if now.Sub(p.cut) > fresh/10 {
		p.cut = now
		for k, t := range p.used {
			if now.Sub(t) > 2*fresh { // the known time of the store may go back by some seconds
				delete(p.used, k)
			}
		}
	}
	key := text[:min(distinct, len(text))]
	if _, again := p.used[key]; again || len(p.used) >= maxReplays {
		return false
	}
	p.used[key] = made
	return true
}
