package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// ErrBusy says that this replica cannot own a name now: it is still releasing the name, or it is draining.
var ErrBusy = errors.New("it is being handed over")

// owning tracks the names that this replica owns, each by its own lease.
type owning struct {
	mu    sync.Mutex
	names map[string]*owned
}

// owned is a name from Own to Disown.
type owned struct {
	until time.Time // when its lease ends, by the clock of this process
	lost  func()    // nil before the lease is held, and after it was called
}

// Own makes this replica the owner of a name until Disown, unless another replica owns it, and returns the ID of the
// owner. lost is called from another goroutine when the lease is about to expire without having been returned: the use
// of the name must end at once. The error is ErrBusy, or the error of the store.
func (m *Member) Own(ctx context.Context, name string, lost func()) (owner string, err error) {
	mine := &owned{}
	if !m.owning.reserve(name, mine) {
		return "", ErrBusy
	}
	defer func() {
		if err != nil || owner != m.id {
			m.owning.release(name)
		}
	}()
	var leases []store.Lease
	if !m.draining.Load() {
		leases = []store.Lease{{Name: name}}
	}
	sent := time.Now()
	// The result must be known even if the caller no longer waits.
	all, _, err := m.opts.Leases.HoldLeases(context.WithoutCancel(ctx), m.id, leases, m.opts.Lasts)
	if err != nil {
		return "", err
	}
	until := sent.Add(m.opts.Lasts)
	switch owner = holder(all, name); {
	case owner == "", owner == m.id && (leases == nil || m.ends(until, time.Now())):
		return "", ErrBusy
	case owner == m.id:
		m.owning.mu.Lock()
		defer m.owning.mu.Unlock()
		mine.until, mine.lost = until, lost
	}
	return owner, nil
}

// reserve records that a name is being acquired. It returns false if it already is, or is owned.
func (o *owning) reserve(name string, by *owned) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names[name] != nil {
		return false
	}
	o.names[name] = by
	return true
}

func (o *owning) release(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.names, name)
}

// Disown returns a name. The caller must have ended its use before.
func (m *Member) Disown(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), m.opts.Lasts)
	defer cancel()
	m.renewing.Lock() // a running renewal must not acquire the lease again
	defer m.renewing.Unlock()
	if err := m.opts.Leases.ReturnLeases(ctx, m.id, name); err != nil {
		m.opts.Logger.Warn("a lease was not released; it will expire", "lease", name, "error", err)
	}
	m.owning.release(name)
}

func holder(all []store.Lease, name string) string {
	for _, l := range all {
		if l.Name == name {
			return l.Holder
		}
	}
	return ""
}

// leases returns the leases to renew.
func (o *owning) leases() []store.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []store.Lease
	for name, n := range o.names {
		if n.lost != nil {
			all = append(all, store.Lease{Name: name})
		}
	}
	return all
}

// renewed records which of the requested leases are held until a time; the others are lost.
func (o *owning) renewed(id string, asked, all []store.Lease, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range asked {
		n := o.names[l.Name]
		switch {
		case n == nil || n.lost == nil:
		case holder(all, l.Name) == id:
			n.until = until
		default:
			n.lose()
		}
	}
}

// guard ends the use of names whose leases could not be renewed, before others may acquire them.
func (m *Member) guard(ctx context.Context) {
	tick := time.NewTicker(m.opts.Lasts / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			m.owning.mu.Lock()
			for name, n := range m.owning.names {
				if n.lost != nil && m.ends(n.until, now) {
					m.opts.Logger.Warn("a lease could not be renewed: the MCP server that it covers is stopped", "lease", name)
					n.lose()
				}
			}
			m.owning.mu.Unlock()
		}
	}
}

// ends reports whether a lease ends so soon that its name must no longer be used.
func (m *Member) ends(until, now time.Time) bool { return now.After(until.Add(-m.opts.Lasts / 5)) }

func (n *owned) lose() {
	n.lost()
	n.lost = nil
}
