package mcp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"

	"toolctl.dev/toolctl/internal/regular"
)

// tls reads the files of spec.tls; nil without spec.tls.
func (r *resolver) tls() *tls.Config {
	spec := r.server.Spec.TLS
	if spec == nil {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	before := len(r.violations)
	ca, cert, key := r.file("ca_file", spec.CAFile), r.file("cert_file", spec.CertFile), r.file("key_file", spec.KeyFile)
	if len(r.violations) > before {
		return config
	}
	if spec.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			r.violation("/spec/tls/ca_file", "a PEM file", "another", fmt.Sprintf("%q contains no PEM certificate", spec.CAFile))
		}
		config.RootCAs = pool
	}
	if spec.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			r.violation("/spec/tls/cert_file", "a PEM file", "another", fmt.Sprintf("%q and %q are not a certificate and its key: %v", spec.CertFile, spec.KeyFile, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// file returns the content of a file named in spec.tls: the content that the reader of the manifest found,
// or else that of the file itself.
func (r *resolver) file(field, path string) []byte {
	if path == "" {
		return nil
	}
	if data, ok := r.server.Files[path]; ok {
		return data
	}
	data, err := regular.ReadFile(r.beside(path))
	if err != nil {
		r.violation("/spec/tls/"+field, "a PEM file", "none", err.Error())
	}
	return data
}

// beside resolves a path relative to the manifest.
func (r *resolver) beside(path string) string {
	if filepath.IsAbs(path) || r.server.Source.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(r.server.Source.File), path)
}
