package gateway

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/replica"
)

// Replicas say how a gateway is one of several that serve the same.
type Replicas struct {
	// KeyFile has the key that the replicas share: a line of 64 hexadecimal digits, and a second
	// one while the keys change. The first seals, both open. It is read again when it changes. Required.
	KeyFile string
	// Address is where the other replicas reach this one, such as http://10.0.0.7:8080. Default:
	// where it listens; when that is every address of the machine, the first that is not loopback.
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
	m, err := replica.Join(ctx, replica.Options{Keys: g.keys.keys, Leases: g.opts.Store, Address: address, TLS: g.http.TLS, Every: o.Every, Lasts: o.Lasts, Logger: g.log})
	if err != nil {
		return nil, err
	}
	g.replica = m
	m.Run(ctx)
	return m.Leave, nil
}

// reachable is an address with which others reach what listens at one.
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
	path   string
	keys   *seal.Keys
	last   os.FileInfo // of the file as it was read
	log    *slog.Logger
	failed atomic.Pointer[time.Time] // when the last reading failed; nil when it did not
}

func newKeyWatch(path string, log *slog.Logger) (*keyWatch, error) {
	info, _ := os.Stat(path) // before it is read: what changes meanwhile is read again
	keys, err := seal.ReadFile(path)
	return &keyWatch{path: path, keys: keys, last: info, log: log}, err
}

// follow reads the file again when it changes, until ctx ends.
func (k *keyWatch) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, _ := os.Stat(k.path)
		if changed := !sameFile(k.last, now); changed || k.failed.Load() != nil {
			k.read(changed)
			k.last = now
		}
	}
}

func (k *keyWatch) read(changed bool) {
	next, err := seal.ReadFile(k.path)
	if err != nil {
		if changed { // a file that stays bad is told once
			now := time.Now()
			k.failed.Store(&now)
			k.log.Error("the key file of the replicas cannot be used: the keys before it go on", "file", k.path, "error", err.Error())
		}
		return
	}
	k.failed.Store(nil)
	if !k.keys.Equal(next) {
		k.keys.Set(next)
		k.log.Info("the keys of the replicas changed", "file", k.path)
	}
}

// warning is what /readyz says, which anyone may read: the log has the reasons.
func (k *keyWatch) warning() string {
	at := k.failed.Load()
	if at == nil {
		return ""
	}
	return "the key file that came at " + at.UTC().Format(time.RFC3339) + " cannot be used; the keys before it go on, and the log says why"
}
