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
)

// noDial is a DialContext that fails the test.
func noDial(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s was dialled", address)
		return nil, errors.New("dialled")
	}
}

func TestRefusedAddresses(t *testing.T) {
	tests := []struct {
		addr string
		kind string // "" is allowed
	}{
		{"127.0.0.1", "loopback"}, {"127.255.0.9", "loopback"}, {"::1", "loopback"}, {"::ffff:127.0.0.1", "loopback"},
		{"0.0.0.0", "unspecified"}, {"0.1.2.3", "unspecified"}, {"::", "unspecified"},
		{"10.0.0.1", "private"}, {"172.16.0.1", "private"}, {"172.31.255.255", "private"}, {"192.168.1.1", "private"}, {"fc00::1", "private"}, {"fd12::1", "private"}, {"::ffff:10.0.0.1", "private"},
		{"169.254.1.1", "link-local"}, {"fe80::1", "link-local"}, {"fe80::1%eth0", "link-local"}, {"febf::1", "link-local"},
		{"169.254.169.254", "cloud metadata"}, {"fd00:ec2::254", "cloud metadata"}, {"100.100.100.200", "cloud metadata"}, {"168.63.129.16", "cloud metadata"}, {"::ffff:169.254.169.254", "cloud metadata"},
		{"100.64.0.1", "shared, RFC 6598"}, {"100.127.255.255", "shared, RFC 6598"},
		{"192.0.0.1", "protocol assignments"}, {"198.18.0.1", "benchmarking"}, {"198.19.255.255", "benchmarking"},
		{"192.0.2.1", "documentation"}, {"198.51.100.1", "documentation"}, {"203.0.113.1", "documentation"}, {"2001:db8::1", "documentation"}, {"3fff::1", "documentation"},
		{"224.0.0.1", "multicast"}, {"239.1.1.1", "multicast"}, {"ff02::1", "multicast"}, {"255.255.255.255", "reserved or broadcast"}, {"240.0.0.1", "reserved or broadcast"},
		{"64:ff9b::7f00:1", "loopback"}, {"64:ff9b::a9fe:a9fe", "cloud metadata"}, {"2002:7f00:1::", "loopback"}, {"2002:a00:1::1", "private"},
		{"64:ff9b:1::7f00:1", "not public"}, {"::7f00:1", "not public"}, {"fec0::1", "not public"}, {"100::1", "not public"}, {"2001::1", "protocol assignments"}, {"4000::1", "not public"},
		{"8.8.8.8", ""}, {"100.63.255.255", ""}, {"100.128.0.0", ""}, {"172.15.255.255", ""}, {"172.32.0.0", ""}, {"169.253.0.1", ""}, {"198.17.0.1", ""}, {"223.255.255.255", ""}, {"128.0.0.1", ""},
		{"2606:4700::1111", ""}, {"2001:4860:4860::8888", ""}, {"64:ff9b::808:808", ""}, {"2002:808:808::", ""}, {"::ffff:8.8.8.8", ""},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			err := refuse(netip.MustParseAddr(tt.addr))
			var refused *addressError
			switch {
			case tt.kind == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.kind != "" && (!errors.As(err, &refused) || refused.kind != tt.kind):
				t.Errorf("got %v, want it refused as %s", err, tt.kind)
			case tt.kind != "" && !strings.Contains(err.Error(), tt.addr):
				t.Errorf("the error does not name the address: %v", err)
			}
		})
	}
	if refuse(netip.Addr{}) == nil {
		t.Error("the zero address is allowed")
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
		// A tool that may does not lend its connections.
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

// dnsServer answers every question for an address of IPv4 with what answer returns.
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
	if query[end-3] != 1 { // not type A
		return reply
	}
	binary.BigEndian.PutUint16(reply[6:], 1)
	reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, answer().AsSlice()...)
}

// TestHTTPChecksTheAddressThatIsDialled has DNS give a public address to whoever looks
// first and loopback to whoever looks later, and the other way about.
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
	if addrs, err := h.resolver.LookupNetIP(t.Context(), "ip4", "rebind.example"); err != nil || refuse(addrs[0]) != nil {
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

// connCounter keeps the set of open connections of a server, and the most there were.
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
