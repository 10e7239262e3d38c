package netaddr

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	tests := []struct{ addr, kind string }{
		{"8.8.8.8", ""},
		{"2606:4700:4700::1111", ""},
		{"127.0.0.1", "loopback"},
		{"127.9.9.9", "loopback"},
		{"::1", "loopback"},
		{"::ffff:127.0.0.1", "loopback"},
		{"64:ff9b::7f00:1", "loopback"},
		{"2002:a00:1::", "private"},
		{"10.1.2.3", "private"},
		{"172.31.255.255", "private"},
		{"172.32.0.1", ""},
		{"192.168.0.1", "private"},
		{"169.254.169.254", "cloud metadata"},
		{"169.254.1.1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"fd00:ec2::254", "cloud metadata"},
		{"fd12::1", "private"},
		{"0.0.0.0", "unspecified"},
		{"::", "unspecified"},
		{"255.255.255.255", "reserved or broadcast"},
		{"4000::1", "not public"},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			err := Check(netip.MustParseAddr(tt.addr))
			var private *PrivateError
			switch {
			case tt.kind == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.kind != "" && (!errors.As(err, &private) || private.Kind != tt.kind):
				t.Errorf("got %v, want kind %q", err, tt.kind)
			}
		})
	}
	if Check(netip.Addr{}) == nil {
		t.Error("no address at all is let through")
	}
}

func TestCheckFollowsTheEmbeddedAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4"))
		v4 := netip.AddrFrom4(b)
		want := Check(v4) == nil
		nat := [16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], b[1], b[2], b[3]}
		for _, v6 := range []netip.Addr{netip.AddrFrom16(v4.As16()), netip.AddrFrom16(nat),
			netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3]})} {
			if got := Check(v6) == nil; got != want {
				t.Fatalf("%s is let through: %v, and %s: %v", v6, got, v4, want)
			}
		}
	})
}

func TestAllowed(t *testing.T) {
	tests := []struct {
		entry string
		yes   []string // addresses that are allowed
		no    []string
	}{
		{"", []string{"8.8.8.8:53"}, []string{"127.0.0.1:1", "[::1]:1", "host:1", "10.0.0.1:80"}},
		{"10.0.0.0/8", []string{"10.1.2.3:1", "[::ffff:10.1.2.3]:1"}, []string{"127.0.0.1:1", "[64:ff9b::a01:203]:1"}},
		{"10.0.0.0/8:443", []string{"10.1.2.3:443"}, []string{"10.1.2.3:80"}},
		{"127.0.0.1", []string{"127.0.0.1:9"}, []string{"127.0.0.2:9", "[::1]:9"}},
		{"127.0.0.1:80", []string{"127.0.0.1:80"}, []string{"127.0.0.1:81"}},
		{"::1", []string{"[::1]:80"}, []string{"127.0.0.1:80"}},
		{"[::1]:80", []string{"[::1]:80"}, []string{"[::1]:81"}},
		{"[fd00::]/8:443", []string{"[fd12::1]:443"}, []string{"[fd12::1]:80"}},
		{"fe80::/10", []string{"[fe80::1%lo]:1"}, nil},
		{"169.254.169.254", []string{"169.254.169.254:80"}, []string{"169.254.1.1:80"}},
		{"db.internal", []string{"8.8.8.8:1"}, []string{"10.0.0.1:1"}}, // an address does not match a name
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			var entries []string
			if tt.entry != "" {
				entries = []string{tt.entry}
			}
			a, err := Parse(entries)
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range tt.yes {
				if err := a.check(address, false); err != nil {
					t.Errorf("%s is refused: %v", address, err)
				}
			}
			for _, address := range tt.no {
				if a.check(address, false) == nil {
					t.Errorf("%s is let through", address)
				}
			}
		})
	}
}

func TestAllowedHost(t *testing.T) {
	a, err := Parse([]string{"db.internal:5432", "LocalHost."})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"db.internal:5432": true, "DB.internal.:5432": true, "db.internal:80": false,
		"x.db.internal:5432": false, "localhost:1": true, "127.0.0.1:1": false} {
		if a.names(address) != want {
			t.Errorf("%s: got %v", address, !want)
		}
	}
	for address, want := range map[string]bool{"10.0.0.1:1": true, "[::1]:1": true, "169.254.169.254:80": false, "[fd00:ec2::254]:80": false, "169.254.1.1:1": false} {
		if got := a.check(address, true) == nil; got != want {
			t.Errorf("an allowed name at %s: got %v", address, got)
		}
	}
}

func TestAllowedEntriesThatCannotBeRead(t *testing.T) {
	for _, entry := range []string{"", " ", "host:", "host:0", "host:65536", "host:http", "10.0.0.0/33:1", "http://host", "a b", "[::1", "[::1]x", "*.internal", "::1:", "[::1]:"} {
		if _, err := Parse([]string{entry}); err == nil {
			t.Errorf("%q is read", entry)
		}
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("[fd00::]/8:443", "[fd12::1]:443")
	f.Add("10.0.0.0/8:1", "10.0.0.1:1")
	f.Fuzz(func(t *testing.T, entry, address string) {
		a, err := Parse([]string{entry})
		if err != nil {
			return
		}
		if len(a.hosts)+len(a.networks) != 1 {
			t.Fatalf("%q is %+v", entry, a)
		}
		_, _ = a.names(address), a.check(address, true)
	})
}

func TestIsLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "LocalHost": true, "a.localhost": true, "127.0.0.2": true, "::1": true,
		"notlocalhost": false, "localhost.example.com": false, "10.0.0.1": false, "": false, "ocalhost": false} {
		if got := IsLoopbackHost(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

func TestRefusedAddresses(t *testing.T) {
	tests := []struct {
		addr string
		kind string // "" if the address is allowed
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
			err := Check(netip.MustParseAddr(tt.addr))
			var refused *PrivateError
			switch {
			case tt.kind == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.kind != "" && (!errors.As(err, &refused) || refused.Kind != tt.kind):
				t.Errorf("got %v, want it refused as %s", err, tt.kind)
			case tt.kind != "" && !strings.Contains(err.Error(), tt.addr):
				t.Errorf("the error does not name the address: %v", err)
			}
		})
	}
	if Check(netip.Addr{}) == nil {
		t.Error("the zero address is allowed")
	}
}
