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

// Path is where a replica takes requests that others forward, and StreamPath where it takes
// streams to what it alone has.
const (
	Path       = "/replica/mcp"
	StreamPath = "/replica/server"
)

// header has the credential of a forwarded request.
const header = "Toolctl-Replica"

// fresh is how long a credential is good, before and after its time by the clock of the store.
const fresh = 10 * time.Second

// passed are the headers of a request that are forwarded. The client's token is not among them.
var passed = []string{
	"Accept", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
	"Baggage", "Traceparent", "Tracestate",
}

const passedParams = "Mcp-Param-" // begins the headers that have arguments (MCP 2026-07-28)

// Caller is who sent a request that is forwarded.
type Caller struct {
	Principal string    `json:"p,omitempty"`
	Groups    []string  `json:"g,omitempty"`
	Scopes    []string  `json:"s,omitempty"`
	Expires   time.Time `json:"e,omitzero"` // by the clock of this process; within a credential by that of the store
}

// credential says what a forwarded request is, and of whom.
type credential struct {
	To     string    `json:"t"`
	Method string    `json:"m"`
	Digest []byte    `json:"d"` // of the path, the headers and the body
	Time   time.Time `json:"n"`
	Caller Caller    `json:"c"`
}

const purpose = "request"

// sign makes the credential of a request to another replica.
func (m *Member) sign(to, path, method string, headers http.Header, body []byte, c Caller) (string, error) {
	c.Expires = shift(c.Expires, m.view.Load().ahead)
	text, err := json.Marshal(credential{To: to, Method: method, Digest: digest(path, headers, body), Time: m.now().UTC(), Caller: c})
	if err != nil {
		return "", err
	}
	return m.opts.Keys.Seal(purpose, text), nil
}

// shift moves a time from one clock to another. The zero time stays: it is none.
func shift(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// digest is the SHA-256 of what a credential is good for besides its method.
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
	// ErrCredential says that a request was not forwarded by a replica with these keys, now.
	ErrCredential = errors.New("the credential was sealed with a different key, is for another request, was already used, or has expired")
	// ErrLate says that a request came so long after it was sent that its credential has expired: one of the two
	// replicas stood still. It was not carried out.
	ErrLate = errors.New("the replica received the request more than 10 seconds after it was sent, because one of the two stood still, and did not carry it out: send it again")
	// ErrMisdirected says that it was forwarded to another replica.
	ErrMisdirected = errors.New("the request is for another replica")
)

// Forwarded is a request that another replica forwards.
type Forwarded struct {
	Caller Caller
	path   string
	digest []byte
}

// Accept reads the credential of a request. What it says holds once Matches has been asked.
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

// Matches reports whether a request with these headers and this body is the one that the credential is for.
func (f *Forwarded) Matches(headers http.Header, body []byte) bool {
	return string(digest(f.path, headers, body)) == string(f.digest)
}

// replays remembers the credentials that were used, for longer than they are good.
type replays struct {
	mu   sync.Mutex
	used map[string]time.Time // when each was made
	cut  time.Time
}

// maxReplays bounds how many are remembered; one more is refused.
const maxReplays = 500_000

// first reports whether a credential was not used before.
func (p *replays) first(text string, made, now time.Time) bool {
	const distinct = 40 // characters: its random beginning
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[string]time.Time{}
	}
	if now.Sub(p.cut) > fresh/10 {
		p.cut = now
		for k, t := range p.used {
			if now.Sub(t) > 2*fresh { // what is known of the store's clock may go back by some seconds
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
