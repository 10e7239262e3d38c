package gateway

import (
	"context"
	"net"
	"slices"
	"time"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/replica"
)

// Replicas configure a gateway as one of several that serve the same manifests.
type Replicas struct {
	// KeyFile contains the key that the replicas share: a line of 64 hexadecimal digits, and a second line during a key
	// rotation. The first key seals, both open. The file is read again after changes. Required.
	KeyFile string
	// Address is the address at which the other replicas reach this one, such as http://10.0.0.7:8080. Default: the
	// listen address; if that is a wildcard address, the first address of the machine that is not loopback.
	Address string
	// Every and Lasts are those of [replica.Options].
	Every, Lasts time.Duration
}

// join makes this gateway one of the replicas until leave is called.
func (g *Gateway) join(ctx context.Context, at net.Addr) (leave func(), err error) {
	o := g.opts.Replicas
	if o == nil {
		return func() {}, nil
	}
	address := o.Address
	if address == "" {
		scheme := "http"
		if g.http.TLS != nil {
			scheme = "https"
		}
		address = scheme + "://" + reachable(at)
	}
	m, err := replica.Join(ctx, replica.Options{Keys: g.keys, Leases: g.store, Address: address, TLS: g.http.TLS, Every: o.Every, Lasts: o.Lasts, Logger: g.log})
	if err != nil {
		return nil, err
	}
	if err := g.measureReplica(m); err != nil {
		g.log.Warn("some metrics cannot be read", "error", err)
	}
	g.replica = m
	g.http.Routes = append(slices.Clip(g.http.Routes), g.singles.route()) // copy the caller's slice
	m.Run()
	return m.Leave, nil
}

// reachable returns an address at which others can reach a listener.
func reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	ip := net.ParseIP(host)
	if err != nil || ip == nil || !ip.IsUnspecified() {
		return at.String()
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// watchKeys reads Replicas.KeyFile and follows its changes.
func (g *Gateway) watchKeys() (err error) {
	w := &fileWatch{path: g.opts.Replicas.KeyFile, name: "the key file of the replicas", kept: "the previous keys stay in use"}
	g.keys, err = watchFile(g, w, seal.ReadFile, func(now, next *seal.Keys) (string, []any) {
		if now.Equal(next) {
			return "", nil
		}
		now.Set(next)
		return "the keys of the replicas changed", nil
	})
	return err
}
