package gateway

import (
	"context"
	"log/slog"
	"net"
	"os"
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
	m, err := replica.Join(ctx, replica.Options{Keys: g.keys.keys, Leases: g.store, Address: address, TLS: g.http.TLS, Every: o.Every, Lasts: o.Lasts, Logger: g.log})
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

// keyWatch follows changes of Replicas.KeyFile.
type keyWatch struct {
	fileWatch
	keys *seal.Keys
}

func newKeyWatch(path string, log *slog.Logger) (*keyWatch, error) {
	k := &keyWatch{fileWatch: fileWatch{
		path: path, log: log, name: "the key file", kept: "the previous keys stay in use",
		refused: "the key file of the replicas cannot be used: the previous keys stay in use",
	}}
	k.load = func() (string, []any, error) {
		next, err := seal.ReadFile(path)
		if err != nil || k.keys.Equal(next) {
			return "", nil, err
		}
		k.keys.Set(next)
		return "the keys of the replicas changed", nil, nil
	}
	var err error
	k.last, _ = os.Stat(path) // before the read, so that a later change is read again
	k.keys, err = seal.ReadFile(path)
	return k, err
}
