package executors

import (
	"crypto/sha256"
	"net/http"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/outbound"
)

// connection identifies tools that can share connections.
type connection struct {
	private bool              // private addresses are allowed
	tls     [sha256.Size]byte // of the files of spec.http.tls
}

// pooled hides CloseIdleConnections: go-retryablehttp calls it after a failed request,
// which would affect all other tools with the same transport.
type pooled struct{ t *http.Transport }

func (p pooled) RoundTrip(r *http.Request) (*http.Response, error) { return p.t.RoundTrip(r) }

// transport returns the transport for a tool: one for each distinct connection.
func (h *HTTP) transport(t *v1.Tool, private bool) (http.RoundTripper, []v1.Violation) {
	config, sum, violations := outbound.TLS(t.Head(), "/spec/http/tls", t.Spec.HTTP.TLS)
	if violations != nil {
		return nil, violations
	}
	key := connection{private, sum}
	h.mu.Lock()
	defer h.mu.Unlock()
	tr, ok := h.transports[key]
	if !ok {
		tr = outbound.Transport(private, h.allowed, h.resolver, config)
		h.transports[key] = tr
	}
	return pooled{tr}, nil
}
