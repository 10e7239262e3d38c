package netaddr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Allowed lists addresses to which connections are allowed although they are not on the public internet.
// The zero value allows no such address.
type Allowed struct {
	networks []network
	hosts    []host
}

type network struct {
	prefix netip.Prefix
	port   string // empty for every port
}

type host struct{ name, port string }

const form = "expected CIDR or HOST, with a port or without, such as 10.0.0.0/8, 127.0.0.1:8080 or db.internal:5432"

// Parse reads entries of the form CIDR|HOST[:PORT]. An IPv6 address with a port needs brackets.
func Parse(entries []string) (Allowed, error) {
	var a Allowed
	var errs []error
	for _, e := range entries {
		if err := a.add(strings.TrimSpace(e)); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", e, err))
		}
	}
	return a, errors.Join(errs...)
}

func (a *Allowed) add(entry string) error {
	name, port := entry, ""
	if rest, ok := strings.CutPrefix(entry, "["); ok {
		inner, after, closed := strings.Cut(rest, "]")
		if !closed || after != "" && !strings.HasPrefix(after, ":") && !strings.HasPrefix(after, "/") {
			return errors.New(form)
		}
		if bits, isPrefix := strings.CutPrefix(after, "/"); isPrefix { // [fd00::]/8:443
			bits, after, _ = strings.Cut(bits, ":")
			inner += "/" + bits
			if after != "" {
				after = ":" + after
			}
		}
		name = inner
		if after != "" {
			if port = after[1:]; port == "" {
				return errors.New(form)
			}
		}
	} else if strings.Count(entry, ":") == 1 {
		name, port, _ = strings.Cut(entry, ":")
		if port == "" {
			return errors.New(form)
		}
	}
	if strings.Contains(entry, "://") {
		return errors.New(form)
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return fmt.Errorf("%q is not a port: expected 1 to 65535", port)
	}
	if prefix, err := netip.ParsePrefix(name); err == nil {
		a.networks = append(a.networks, network{prefix.Masked(), port})
		return nil
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.WithZone("").Unmap()
		a.networks = append(a.networks, network{netip.PrefixFrom(addr, addr.BitLen()), port})
		return nil
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 || strings.ContainsAny(name, " \t/:@?#*[]%\\") {
		return errors.New(form)
	}
	a.hosts = append(a.hosts, host{name, port})
	return nil
}

// DialContext returns the [net.Dialer.DialContext] of a dialer that connects only to the public internet
// and to the addresses that a allows. It checks each address right before the connection, so that a later
// DNS answer cannot change it.
func (a Allowed) DialContext(d net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	public, named := d, d
	public.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return a.check(address, false)
	}
	named.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return a.check(address, true)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if a.names(address) {
			return named.DialContext(ctx, network, address)
		}
		return public.DialContext(ctx, network, address)
	}
}

// names reports whether an allowed host matches the dialled address, before the name is resolved.
func (a Allowed) names(address string) bool {
	name, port, err := net.SplitHostPort(address)
	name = strings.TrimSuffix(name, ".")
	return err == nil && slices.ContainsFunc(a.hosts, func(h host) bool {
		return strings.EqualFold(h.name, name) && (h.port == "" || h.port == port)
	})
}

// check returns an error if connections to an address are not allowed. A host that is allowed by name may
// have any address except those at which clouds serve credentials: these must be allowed as addresses.
func (a Allowed) check(address string, named bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %q cannot be checked: %w", address, err)
	}
	plain, port := ap.Addr().WithZone("").Unmap(), strconv.Itoa(int(ap.Port()))
	if slices.ContainsFunc(a.networks, func(n network) bool {
		return n.prefix.Contains(plain) && (n.port == "" || n.port == port)
	}) {
		return nil
	}
	err = Check(ap.Addr())
	var private *PrivateError
	if errors.As(err, &private) && named && private.Kind != metadata && private.Kind != linkLocal {
		return nil
	}
	return err
}
