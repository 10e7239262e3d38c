// Package outbound makes HTTP connections to the servers that manifests name: it decides to which addresses, and with
// which certificates.
package outbound

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/regular"
)

// DialTimeout is the maximum time to open a connection.
const DialTimeout = 10 * time.Second

// Transport returns a transport that connects to the public internet, to the addresses that allowed has, and with
// private to all others too. It uses no proxy, because the address that a proxy dials could not be checked. Without a
// resolver it uses that of the system, and without a config the defaults of TLS.
func Transport(private bool, allowed netaddr.Allowed, resolver *net.Resolver, config *tls.Config) *http.Transport {
	d := net.Dialer{Timeout: DialTimeout, Resolver: resolver}
	dial := d.DialContext
	if !private {
		dial = allowed.DialContext(d)
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        config,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// TLS reads the files that the field at of a manifest names. Content that was loaded together with the manifest is used
// instead of a file. The sum tells configurations apart. Both are zero for a nil spec.
func TLS(h *v1.Header, at string, spec *v1.TLS) (config *tls.Config, sum [sha256.Size]byte, violations []v1.Violation) {
	if spec == nil {
		return nil, sum, nil
	}
	violation := func(field, msg string) {
		path := at + "/" + field
		violations = append(violations, v1.Violation{Path: path, Expected: "a PEM file", Got: "another", Message: msg, Source: h.Field(path)})
	}
	all := sha256.New()
	read := func(field, path string) []byte {
		data, loaded := h.Files[path]
		if path != "" && !loaded {
			var err error
			if data, err = regular.ReadFile(h.Beside(path)); err != nil {
				violation(field, err.Error())
			}
		}
		one := sha256.Sum256(data)
		all.Write(one[:])
		return data
	}
	ca, cert, key := read("ca_file", spec.CAFile), read("cert_file", spec.CertFile), read("key_file", spec.KeyFile)
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if violations != nil {
		return config, sum, violations
	}
	if spec.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			violation("ca_file", fmt.Sprintf("%q contains no PEM certificate", spec.CAFile))
		}
		config.RootCAs = pool
	}
	if spec.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			violation("cert_file", fmt.Sprintf("%q and %q are not a certificate and its key: %v", spec.CertFile, spec.KeyFile, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, [sha256.Size]byte(all.Sum(nil)), violations
}
