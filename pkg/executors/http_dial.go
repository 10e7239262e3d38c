package executors

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
)

// connection identifies tools that can share connections.
type connection struct {
	private  bool // private addresses are allowed
	ca, pair [sha256.Size]byte
}

const dialTimeout = 10 * time.Second

// pooled hides CloseIdleConnections: go-retryablehttp calls it after a failed request,
// which would affect all other tools with the same transport.
type pooled struct{ t *http.Transport }

func (p pooled) RoundTrip(r *http.Request) (*http.Response, error) { return p.t.RoundTrip(r) }

// transport returns the transport for a tool: one for each distinct connection.
// Proxies are not used, since the address dialled by a proxy could not be checked.
func (h *HTTP) transport(t *v1.Tool, private bool) (http.RoundTripper, []v1.Violation) {
	key := connection{private: private}
	var config *tls.Config
	if spec := t.Spec.HTTP.TLS; spec != nil {
		var violations []v1.Violation
		if config, key, violations = tlsConfig(t, spec, key); violations != nil {
			return nil, violations
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if tr, ok := h.transports[key]; ok {
		return pooled{tr}, nil
	}
	d := net.Dialer{Timeout: dialTimeout, Resolver: h.resolver}
	dial := d.DialContext
	if !private {
		dial = h.allowed.DialContext(d)
	}
	tr := &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        config,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	h.transports[key] = tr
	return pooled{tr}, nil
}

// tlsConfig reads the files of spec.http.tls, whose paths are relative to the manifest.
func tlsConfig(t *v1.Tool, spec *v1.TLS, key connection) (*tls.Config, connection, []v1.Violation) {
	var violations []v1.Violation
	violation := func(field, msg string) {
		violations = append(violations, v1.Violation{Path: "/spec/http/tls/" + field, Expected: "a PEM file", Got: "another", Message: msg})
	}
	read := func(field, path string) []byte {
		if path == "" {
			return nil
		}
		if data, ok := t.Files[path]; ok {
			return data
		}
		if !filepath.IsAbs(path) && t.Source.File != "" {
			path = filepath.Join(filepath.Dir(t.Source.File), path)
		}
		data, err := regular.ReadFile(path)
		if err != nil {
			violation(field, err.Error())
		}
		return data
	}
	ca, cert, private := read("ca_file", spec.CAFile), read("cert_file", spec.CertFile), read("key_file", spec.KeyFile)
	if violations != nil {
		return nil, key, violations
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if spec.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			violation("ca_file", fmt.Sprintf("%q contains no PEM certificate", spec.CAFile))
		}
		config.RootCAs = pool
		key.ca = sha256.Sum256(ca)
	}
	if spec.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, private)
		if err != nil {
			violation("cert_file", fmt.Sprintf("%q and %q are not a certificate and its key: %v", spec.CertFile, spec.KeyFile, err))
		}
		config.Certificates = []tls.Certificate{pair}
		key.pair = sha256.Sum256(append(append(cert[:len(cert):len(cert)], 0), private...))
	}
	return config, key, violations
}
