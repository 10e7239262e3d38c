package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
)

// authority creates certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's own"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// file returns the path of the authority's own certificate.
func (a *authority) file() string {
	path := filepath.Join(a.t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func (a *authority) certify(ip string) (cert, key []byte) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(ip)}}, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// use reserves a count and writes in a store.
func use(t *testing.T, st store.Store) {
	t.Helper()
	if counts, full, err := st.Reserve(t.Context(), []v1.Counter{{Key: "k", Limit: 2}}); err != nil || full >= 0 || counts[0].Used != 0 {
		t.Errorf("%v, %d, %v", counts, full, err)
	}
	if err := st.AppendAudit(t.Context(), v1.AuditRecord{Tool: "t"}); err != nil {
		t.Error(err)
	}
}

// TestTLS: with sslmode=verify-full the database's certificate must come from a trusted authority and match the host in
// the address.
func TestTLS(t *testing.T) {
	srv, _ := own(t)
	ca := newAuthority(t)
	port := freePort(t)
	cert, key := ca.certify("127.0.0.1")
	if err := srv.ListenTLS(port, cert, key); err != nil {
		t.Fatal(err)
	}
	dsn := func(root string) string {
		return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=verify-full&sslrootcert=%s", port, url.QueryEscape(root))
	}
	use(t, open(t, dsn(ca.file()), store.Options{}))
	refused := func(dsn, why string) {
		t.Helper()
		st, err := postgres.Open(t.Context(), dsn, store.Options{Create: true})
		if err == nil {
			_ = st.Close()
		}
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), why) {
			t.Errorf("want %q: %v", why, err)
		}
	}
	refused(dsn(newAuthority(t).file()), "certificate")
	other, key := ca.certify("127.0.0.2")
	if err := srv.ListenTLS(port, other, key); err != nil {
		t.Fatal(err)
	}
	refused(dsn(ca.file()), "certificate is valid for 127.0.0.2, not 127.0.0.1")
}

// TestSeveralHosts: of several hosts the store uses the writable one, and another one after it failed.
func TestSeveralHosts(t *testing.T) {
	first, _ := own(t)
	second, _ := own(t)
	dsn := func(a, b *pgtest.Server) string {
		return "postgres:///postgres?user=postgres&sslmode=disable&host=" + url.QueryEscape(filepath.Dir(a.Socket())+","+filepath.Dir(b.Socket()))
	}
	use(t, open(t, dsn(second, first), store.Options{})) // creates the tables there
	st := open(t, dsn(first, second), store.Options{})
	use(t, st)
	first.Stop(syscall.SIGQUIT)
	c := []v1.Counter{{Key: "k", Limit: 2}}
	if counts, err := st.Read(t.Context(), c); err != nil || counts[0].Used != 1 {
		t.Errorf("after a failover: %v, %v", counts, err)
	}
	if _, full, err := st.Reserve(t.Context(), c); err != nil || full >= 0 {
		t.Errorf("after a failover: %d, %v", full, err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	// The first host is back, but read-only like a standby.
	if err := first.Exec(t.Context(), "ALTER SYSTEM SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	if err := first.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	if counts, err := open(t, dsn(first, second), store.Options{}).Read(t.Context(), c); err != nil || counts[0].Used != 2 {
		t.Errorf("with a first host that is read-only: %v, %v", counts, err)
	}
}
