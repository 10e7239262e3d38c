package replica

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// ErrGone says that a replica has ended and lost all its state.
	ErrGone = errors.New("the replica has ended")
	// ErrAway says that a replica did not answer although its lease has not expired.
	ErrAway = errors.New("the replica cannot be reached")
	// ErrLost says that a replica may have received a request without answering it, so the request may or may not have
	// been executed. The error also wraps one of the others.
	ErrLost = errors.New("the response was lost")
)

const (
	dialTimeout = 700 * time.Millisecond
	// maxIdle is the number of idle connections to one replica.
	maxIdle = 128
)

// answered are the headers of a response that are passed on.
var answered = []string{"Allow", "Cache-Control", "Content-Type", "Mcp-Session-Id", "Retry-After", "X-Accel-Buffering"}

func newTransport(own *tls.Config) *http.Transport {
	d := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: 2 * time.Second, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: trusting(own),
	}
}

// trusting trusts the system's certificates and servers with the same certificate, because they have its key.
func trusting(own *tls.Config) *tls.Config {
	if own == nil || len(own.Certificates) == 0 {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	mine := own.Certificates[0].Certificate[0]
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 && bytes.Equal(s.PeerCertificates[0].Raw, mine) {
				return nil
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Intermediates: between})
			return err
		},
	}
}

// flight is the forwarded requests to one replica.
type flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	open   int
	missed int // consecutive views without its lease
}

// follow returns a context that ends with ctx, or when the replica is gone.
func (m *Member) follow(ctx context.Context, id string) (context.Context, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.watched[id]
	if f == nil {
		f = &flight{}
		f.ctx, f.cancel = context.WithCancelCause(context.Background())
		m.watched[id] = f
	}
	f.open++
	ctx, cancel := context.WithCancelCause(ctx)
	off := context.AfterFunc(f.ctx, func() { cancel(ErrGone) })
	return ctx, func() {
		off()
		cancel(nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		if f.open--; f.open == 0 {
			f.cancel(nil)
			if m.watched[id] == f {
				delete(m.watched, id)
			}
		}
	}
}

// Forward forwards a request to another replica and passes the response on as it arrives. begun says that a part of the
// response was written; the error then says why the rest was not. Unless the error is [ErrLost], the replica has done
// nothing.
func (m *Member) Forward(w http.ResponseWriter, r *http.Request, to string, body []byte, c Caller) (begun bool, err error) {
	n, err := m.find(r.Context(), to)
	if err != nil {
		return false, err
	}
	ctx, done := m.follow(r.Context(), to)
	defer done()
	var sent atomic.Bool // the request may have been sent; failed old connections do not count
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, r.Method, n.Address+Path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, values := range r.Header {
		if forwardable(name) {
			req.Header[name] = values
		}
	}
	text, err := m.sign(to, Path, r.Method, req.Header, body, c)
	if err != nil {
		return false, err
	}
	req.Header.Set(header, text)
	req.Header.Set("User-Agent", "toolctl-replica")
	res, err := m.http.RoundTrip(req) // does not follow redirects
	if err != nil {
		if err = m.failed(ctx, n, err); sent.Load() {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		return false, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusMisdirectedRequest:
		return false, ErrGone // another process has its address now
	case http.StatusRequestTimeout:
		return false, ErrLate
	case http.StatusUnauthorized:
		return false, fmt.Errorf("%w: it rejects the credential of this replica: check that --replica-key-file is the same", ErrAway)
	}
	for _, name := range answered {
		if v := res.Header.Values(name); len(v) > 0 {
			w.Header()[name] = v
		}
	}
	w.WriteHeader(res.StatusCode)
	if err := pass(w, res.Body); err != nil {
		return true, fmt.Errorf("%w: %w", ErrLost, m.failed(ctx, n, err))
	}
	return true, nil
}

// pass copies a response and flushes each part at once.
func pass(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return nil //nolint:nilerr // the client is gone
			}
			if err := control.Flush(); err != nil {
				return nil //nolint:nilerr // the same
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// failed returns the error of a failed request, depending on whether the replica is gone.
func (m *Member) failed(ctx context.Context, n Neighbour, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // the client has disconnected, or the lease ended
	}
	if errors.Is(err, syscall.ECONNREFUSED) || m.refuses(ctx, n.Address) {
		return ErrGone
	}
	if _, again := m.find(ctx, n.ID); again != nil {
		return again
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// refuses reports whether an address refuses connections.
func (m *Member) refuses(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	d := net.Dialer{Timeout: dialTimeout / 3}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
