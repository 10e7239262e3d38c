// Package netaddr distinguishes addresses of the public internet from all others, so that an address in a
// manifest or from a foreign server does not lead into a private network.
package netaddr

import (
	"fmt"
	"net/netip"
)

// PrivateError means that an address is not on the public internet.
type PrivateError struct {
	Addr netip.Addr
	// Kind is the kind of address, for example "loopback".
	Kind string
}

func (e *PrivateError) Error() string {
	return fmt.Sprintf("the address %s (%s) is refused", e.Addr, e.Kind)
}

// Advice returns the message of e with the options that allow the address. field is a manifest field that
// allows all such addresses.
func (e *PrivateError) Advice(field string) string {
	return fmt.Sprintf("%v: allow it with --allow-network %s (or TOOLCTL_ALLOW_NETWORK), or all such addresses with --allow-private-network or %s", e, e.Addr.WithZone("").Unmap(), field)
}

// Kinds of addresses at which clouds serve credentials.
const metadata, linkLocal = "cloud metadata", "link-local"

// special are the networks outside the public internet: the special-purpose registries of RFC 6890 and its
// updates, and the metadata services of clouds. The first network that contains an address gives its kind.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared, RFC 6598"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal},
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
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

// globalUnicast is the part of IPv6 that is allocated for the public internet (RFC 4291, section 2.4).
var globalUnicast = netip.MustParsePrefix("2000::/3")

// embedding are IPv6 networks whose addresses lead to an embedded IPv4 address.
var embedding = []struct {
	prefix netip.Prefix
	at     int // first byte of the IPv4 address
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4, RFC 3056
}

// Check returns a [PrivateError] for an address that is not on the public internet.
func Check(addr netip.Addr) error {
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
			return &PrivateError{addr, s.kind}
		}
	}
	if !plain.IsValid() || plain.Is6() && !globalUnicast.Contains(plain) {
		return &PrivateError{addr, "not public"}
	}
	return nil
}

// IsLoopbackHost reports whether a host of a URL names this machine: localhost and
// its subdomains (RFC 6761, section 6.3), or a loopback address.
func IsLoopbackHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	const local = "localhost"
	n := len(host) - len(local)
	return n >= 0 && equalFold(host[n:], local) && (n == 0 || host[n-1] == '.')
}

func equalFold(a, b string) bool {
	for i := range len(a) {
		if a[i]|0x20 != b[i] {
			return false
		}
	}
	return true
}
