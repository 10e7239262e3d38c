package executors

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
)

// noDial is a DialContext that fails the test.
func noDial(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s was dialled", address)
		return nil, errors.New("dialled")
	}
}

func TestHTTPRefusesPrivateAddresses(t *testing.T) {
	var got seen
	srv := echo(t, &got, `{}`)
	local := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	for _, url := range []string{srv.URL, local} {
		tool := httpToolOf(v1.HTTPSpec{URL: url})
		tool.Spec.HTTP.AllowPrivateNetwork = false
		h := newTestHTTP(t, nil)
		res, err := h.Execute(t.Context(), tool, nil)
		var failed *v1.ExecutionError
		if !errors.As(err, &failed) || failed.Phase != v1.PhaseConnect || got.Method != "" || res.Attempts != 1 {
			t.Fatalf("%s: got %v, %+v, want one attempt and an error of phase connect", url, err, res)
		}
		for _, want := range []string{"(loopback) is refused", "spec.http.allow_private_network", "--allow-private-network"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %s", url, err, want)
			}
		}
		// A tool with private network access does not share its connections.
		allowed := httpToolOf(v1.HTTPSpec{URL: url})
		if _, err := h.Execute(t.Context(), allowed, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Execute(t.Context(), tool, nil); err == nil {
			t.Errorf("%s: a connection of another tool was used", url)
		}
		if _, err := newTestHTTP(t, nil, func(o *Options) { o.AllowPrivateNetwork = true }).Execute(t.Context(), tool, nil); err != nil {
			t.Errorf("%s: Options.AllowPrivateNetwork: %v", url, err)
		}
		got = seen{}
	}
}

// dnsServer starts a DNS server that responds to every IPv4 query with the result of answer.
func dnsServer(t *testing.T, answer func() netip.Addr) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := dnsReply(buf[:n], answer); reply != nil {
				if _, err := conn.WriteTo(reply, from); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// dnsReply answers one question (RFC 1035, section 4.1).
func dnsReply(query []byte, answer func() netip.Addr) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	if end > len(query) {
		return nil
	}
	reply := append([]byte{}, query[:end]...)
	reply[2], reply[3] = 0x81, 0x80 // an answer, recursion available
	binary.BigEndian.PutUint16(reply[6:], 0)
	binary.BigEndian.PutUint16(reply[8:], 0)
	binary.BigEndian.PutUint16(reply[10:], 0)
	if query[end-3] != 1 { // the query is not for type A
		return reply
	}
	binary.BigEndian.PutUint16(reply[6:], 1)
	reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, answer().AsSlice()...)
}

// TestHTTPChecksTheAddressThatIsDialled uses a DNS server that returns a public address first and loopback later, and
// the reverse.
func TestHTTPChecksTheAddressThatIsDialled(t *testing.T) {
	var got seen
	srv := echo(t, &got, `{}`)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	public := netip.MustParseAddr("203.0.114.1")
	h := newTestHTTP(t, nil)
	h.resolver = dnsServer(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return public
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	if addrs, err := h.resolver.LookupNetIP(t.Context(), "ip4", "rebind.example"); err != nil || netaddr.Check(addrs[0]) != nil {
		t.Fatalf("the first look gives %v, %v, want a public address", addrs, err)
	}
	tool := httpToolOf(v1.HTTPSpec{URL: "http://rebind.example:" + port})
	tool.Spec.HTTP.AllowPrivateNetwork = false
	_, err = h.Execute(t.Context(), tool, nil)
	if err == nil || !strings.Contains(err.Error(), "the address 127.0.0.1 (loopback) is refused") || got.Method != "" {
		t.Fatalf("got %v and the request %+v, want the address refused", err, got)
	}
	if asked.Load() < 2 {
		t.Fatal("DNS was not asked again")
	}
	tool.Spec.HTTP.AllowPrivateNetwork = true
	if _, err := newCopy(t, h).Execute(t.Context(), httpToolOf(*tool.Spec.HTTP), nil); err != nil || got.Method != "POST" {
		t.Errorf("the same name with allow_private_network: %v", err)
	}
}

func newCopy(t *testing.T, h *HTTP) *HTTP {
	c := newTestHTTP(t, nil)
	c.resolver = h.resolver
	return c
}

func privateKey(t *testing.T, key any) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// connCounter records the open connections of a server and their maximum number.
func connCounter(mu *sync.Mutex, open map[string]bool, most *int) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open[c.RemoteAddr().String()] = true
			*most = max(*most, len(open))
		case http.StateClosed, http.StateHijacked:
			delete(open, c.RemoteAddr().String())
		}
	}
}
