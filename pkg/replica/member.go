package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/store"
)

// Options configure how a process joins the replicas.
type Options struct {
	// Keys are the keys that the replicas share. Required.
	Keys *seal.Keys
	// Leases store which replicas are alive. Required.
	Leases store.Leases
	// Address is the address at which the other replicas reach this one: http://HOST:PORT or https://HOST:PORT.
	// Required.
	Address string
	// TLS is the configuration of the listener. A replica with the same certificate is trusted under any name. Default:
	// only certificates that the system trusts.
	TLS *tls.Config
	// Every is the interval at which the lease is renewed and the others are read. Default: 1 second.
	Every time.Duration
	// Lasts is the lifetime of a lease without renewal. Default: 5 seconds.
	Lasts time.Duration
	// Now is the clock of this process, which may differ from those of the others. Default: time.Now.
	Now func() time.Time
	// Logger logs when a replica comes or goes. Default: nothing is logged.
	Logger *slog.Logger
}

// Default times of [Options].
const (
	DefaultEvery = time.Second
	DefaultLasts = 5 * time.Second
)

const (
	prefix = "replica/" // prefix of lease names
	idSize = 16
	// maxLoad is the maximum number of principals whose running calls are reported to the others.
	maxLoad = 1000
	// leaveTimeout is the maximum time to return the leases. They also expire by themselves.
	leaveTimeout = 500 * time.Millisecond
)

// Member is this process as one of the replicas. Its methods are safe for concurrent use.
type Member struct {
	opts Options
	id   string
	http *http.Transport
	seen replays
	load atomic.Pointer[func() map[string]int]
	view atomic.Pointer[view]
	// draining says that this replica accepts no more requests; drained has a token when the others must be informed.
	draining atomic.Bool
	drained  chan struct{}

	renewing sync.Mutex         // held while the leases are renewed or returned
	mu       sync.Mutex         // protects watched
	watched  map[string]*flight // forwarded requests by target replica
	owning   owning

	stop    context.CancelFunc
	running sync.WaitGroup
}

// state is the value of a replica's lease.
type state struct {
	Address  string         `json:"address"`
	Draining bool           `json:"draining,omitempty"`
	Load     map[string]int `json:"load,omitempty"` // running calls by principal
}

// Neighbour is another replica.
type Neighbour struct {
	ID       string
	Address  string
	Draining bool
}

// view is the last known state of the leases.
type view struct {
	neighbours map[string]Neighbour
	load       map[string]int // running calls at the others by principal
	until      time.Time      // when our own leases end, by the clock of this process
	ahead      time.Duration  // how far the clock of the store is ahead of ours
	err        error          // why the last access to the store failed
}

// Join acquires a lease for this process. Run renews it.
func Join(ctx context.Context, o Options) (*Member, error) {
	o.Every, o.Lasts = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Lasts, DefaultLasts)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := CheckAddress(o.Address); err != nil {
		return nil, err
	}
	m := &Member{opts: o, id: strings.ToLower(rand.Text()[:idSize]), watched: map[string]*flight{}, drained: make(chan struct{}, 1)}
	m.owning.names = map[string]*owned{}
	m.http = newTransport(o.TLS)
	m.view.Store(&view{})
	if err := m.renew(ctx); err != nil {
		return nil, fmt.Errorf("join the replicas: %w", err)
	}
	o.Logger.Info("joined the replicas", "replica", m.id, "address", o.Address)
	return m, nil
}

// CheckAddress returns an error for an invalid address of a replica.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("expected the address of this replica for other replicas, such as http://10.0.0.7:8080")
	}
	return nil
}

// ID returns the ID of this replica.
func (m *Member) ID() string { return m.id }

// Run renews the lease until Leave.
func (m *Member) Run() {
	within, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.running.Go(func() { m.guard(within) })
	m.running.Go(func() {
		tick := time.NewTicker(m.opts.Every)
		defer tick.Stop()
		for {
			select {
			case <-within.Done():
				return
			case <-m.drained:
			case <-tick.C:
			}
			once, cancel := context.WithTimeout(within, m.opts.Lasts)
			_ = m.renew(once) // logs its errors
			cancel()
		}
	})
}

// Drain makes this replica acquire no more names and tells the others to send it no more requests. It may still answer
// requests that arrive.
func (m *Member) Drain() {
	m.draining.Store(true)
	select {
	case m.drained <- struct{}{}:
	default:
	}
}

// Leave returns the leases and ends Run.
func (m *Member) Leave() {
	m.stop()
	m.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := m.opts.Leases.ReturnLeases(ctx, m.id); err != nil {
		m.opts.Logger.Warn("the lease was not released; it will expire", "replica", m.id, "error", err)
	}
	m.http.CloseIdleConnections()
}

// Report sets the function that counts the running calls of each principal here, for the other replicas.
func (m *Member) Report(load func() map[string]int) { m.load.Store(&load) }

// Elsewhere returns the number of running calls of a principal at the other replicas, by their last reports.
func (m *Member) Elsewhere(principal string) int { return m.view.Load().load[principal] }

// renew renews the leases and reads those of others.
func (m *Member) renew(ctx context.Context) error {
	m.renewing.Lock()
	defer m.renewing.Unlock()
	mine := state{Address: strings.TrimSuffix(m.opts.Address, "/"), Draining: m.draining.Load()}
	if load := m.load.Load(); load != nil {
		mine.Load = (*load)()
		for p := range mine.Load {
			if len(mine.Load) <= maxLoad {
				break
			}
			delete(mine.Load, p)
		}
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	leases := append([]store.Lease{{Name: prefix + m.id, Value: string(text)}}, m.owning.leases()...)
	sent, asked := time.Now(), m.opts.Now()
	all, now, err := m.opts.Leases.HoldLeases(ctx, m.id, leases, m.opts.Lasts)
	old := m.view.Load()
	if err != nil {
		if old.err == nil {
			m.opts.Logger.Warn("the lease could not be renewed", "replica", m.id, "error", err)
		}
		next := *old
		next.err = err
		m.view.Store(&next)
		return err
	}
	m.owning.renewed(m.id, leases[1:], all, sent.Add(m.opts.Lasts))
	next := m.read(all)
	next.until, next.ahead = sent.Add(m.opts.Lasts), now.Sub(asked)
	m.view.Store(next)
	m.told(old, next)
	return nil
}

// read returns a view of all leases.
func (m *Member) read(all []store.Lease) *view {
	v := &view{neighbours: map[string]Neighbour{}, load: map[string]int{}}
	for _, l := range all {
		id, ok := strings.CutPrefix(l.Name, prefix)
		var s state
		if !ok || id == m.id || id != l.Holder || json.Unmarshal([]byte(l.Value), &s) != nil || CheckAddress(s.Address) != nil {
			continue
		}
		v.neighbours[id] = Neighbour{ID: id, Address: s.Address, Draining: s.Draining}
		for principal, n := range s.Load {
			v.load[principal] += max(n, 0)
		}
	}
	return v
}

// told logs which replicas came and went, and ends the requests to those that are gone. It is called under renewing.
func (m *Member) told(old, next *view) {
	if old.err != nil {
		m.opts.Logger.Info("the lease was renewed", "replica", m.id)
	}
	for id, n := range next.neighbours {
		if _, known := old.neighbours[id]; !known {
			m.opts.Logger.Info("a replica came", "replica", id, "address", n.Address)
		}
	}
	for id := range old.neighbours {
		if _, still := next.neighbours[id]; !still {
			m.opts.Logger.Info("a replica is gone", "replica", id)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, f := range m.watched {
		if _, lives := next.neighbours[id]; lives {
			f.missed = 0
		} else if f.missed++; f.missed > 1 { // its last responses may still be on their way
			f.cancel(ErrGone)
			delete(m.watched, id)
		}
	}
}

// find returns another replica. The error is ErrGone if it has no lease; other errors mean that this is unknown.
func (m *Member) find(ctx context.Context, id string) (Neighbour, error) {
	n, ok := m.view.Load().neighbours[id]
	if !ok { // the replica may be new
		all, _, err := m.opts.Leases.HoldLeases(ctx, m.id, nil, m.opts.Lasts)
		if err != nil {
			return Neighbour{}, err
		}
		n, ok = m.read(all).neighbours[id]
	}
	if !ok || n.Draining {
		return n, ErrGone
	}
	return n, nil
}

// now returns the time by the clock of the store.
func (m *Member) now() time.Time { return m.opts.Now().Add(m.view.Load().ahead) }

// State returns the state of the store and the other replicas, without secrets.
func (m *Member) State() map[string]any {
	v := m.view.Load()
	kept := map[string]any{"state": "reachable"}
	if why := v.away(); why != "" {
		kept = map[string]any{"state": "unreachable", "reason": why}
	}
	neighbours := []map[string]any{}
	for _, id := range sorted(v.neighbours) {
		how := "ready"
		switch {
		case v.away() != "":
			how = "unknown"
		case v.neighbours[id].Draining:
			how = "draining"
		}
		neighbours = append(neighbours, map[string]any{"replica": id, "state": how})
	}
	return map[string]any{"replica": m.id, "store": kept, "neighbours": neighbours}
}

// Neighbours returns the number of other replicas with a lease, by the last view.
func (m *Member) Neighbours() int { return len(m.view.Load().neighbours) }

// away returns why the store cannot be reached, or "".
func (v *view) away() string {
	switch {
	case v.err != nil:
		return store.Reason(v.err)
	case time.Now().After(v.until): // the renewal got no answer
		return store.ErrUnavailable.Error()
	}
	return ""
}

// NotReady returns why this replica should get no requests, or "".
func (m *Member) NotReady() string {
	if v := m.view.Load(); time.Now().After(v.until) {
		return "the store: " + v.away()
	}
	return ""
}
