package executors

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// addressError says that an address may not be dialled.
type addressError struct {
	addr netip.Addr
	kind string
}

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s (%s) is refused: set spec.http.allow_private_network, or --allow-private-network for a development run", e.addr, e.kind)
}

// special are the networks that are not the public internet: the special-purpose
// registries of RFC 6890 and its updates, and the metadata services of clouds.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "cloud metadata"},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared, RFC 6598"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

// globalUnicast is all of IPv6 that is given out to the public (RFC 4291, section 2.4).
var globalUnicast = netip.MustParsePrefix("2000::/3")

// embedding are IPv6 networks whose addresses lead to the IPv4 address within them.
var embedding = []struct {
	prefix netip.Prefix
	at     int // first byte of the IPv4 address
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4, RFC 3056
}

// refuse returns an error for an address that is not on the public internet.
func refuse(addr netip.Addr) error {
	plain := addr.WithZone("").Unmap()
	for _, e := range embedding {
		if e.prefix.Contains(plain) {
			b := plain.As16()
			plain = netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
			break
		}
	}
	for _, s := range special {
		if s.prefix.Contains(plain) {
			return &addressError{addr, s.kind}
		}
	}
	if !plain.IsValid() || plain.Is6() && !globalUnicast.Contains(plain) {
		return &addressError{addr, "not public"}
	}
	return nil
}

// refuseDial is a [net.Dialer]'s ControlContext: it sees the address that is about to be
// connected to, so no answer of DNS can change after it.
func refuseDial(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %q cannot be checked: %w", address, err)
	}
	return refuse(ap.Addr())
}

// connection is what two tools must have in common to share connections.
type connection struct {
	private  bool // private addresses may be dialled
	ca, pair [sha256.Size]byte
}

const dialTimeout = 10 * time.Second

// pooled hides CloseIdleConnections, which go-retryablehttp calls after a failed
// request, from all other tools that share the transport.
type pooled struct{ t *http.Transport }

func (p pooled) RoundTrip(r *http.Request) (*http.Response, error) { return p.t.RoundTrip(r) }

// transport returns the transport for a tool: one for each distinct connection.
// Proxies are not used: behind one, the address that is dialled could not be checked.
func (h *HTTP) transport(t *v1.Tool, private bool) (http.RoundTripper, []v1.Fault) {
	key := connection{private: private}
	var config *tls.Config
	if spec := t.Spec.HTTP.TLS; spec != nil {
		var faults []v1.Fault
		if config, key, faults = tlsConfig(t, spec, key); faults != nil {
			return nil, faults
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if tr, ok := h.transports[key]; ok {
		return pooled{tr}, nil
	}
	d := &net.Dialer{Timeout: dialTimeout, Resolver: h.resolver}
	if !private {
		d.ControlContext = refuseDial
	}
	tr := &http.Transport{
		DialContext:            d.DialContext,
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

// tlsConfig reads the files of spec.http.tls, which are relative to the manifest's.
func tlsConfig(t *v1.Tool, spec *v1.TLS, key connection) (*tls.Config, connection, []v1.Fault) {
	var faults []v1.Fault
	fault := func(field, msg string) {
		faults = append(faults, v1.Fault{Path: "/spec/http/tls/" + field, Expected: "a PEM file", Got: "another", Message: msg})
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
		data, err := os.ReadFile(path)
		if err != nil {
			fault(field, err.Error())
		}
		return data
	}
	ca, cert, private := read("ca_file", spec.CAFile), read("cert_file", spec.CertFile), read("key_file", spec.KeyFile)
	if faults != nil {
		return nil, key, faults
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if spec.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			fault("ca_file", fmt.Sprintf("%q holds no certificate in PEM form", spec.CAFile))
		}
		config.RootCAs = pool
		key.ca = sha256.Sum256(ca)
	}
	if spec.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, private)
		if err != nil {
			fault("cert_file", fmt.Sprintf("%q and %q are not a certificate and its key: %v", spec.CertFile, spec.KeyFile, err))
		}
		config.Certificates = []tls.Certificate{pair}
		key.pair = sha256.Sum256(append(append(cert[:len(cert):len(cert)], 0), private...))
	}
	return config, key, faults
}
