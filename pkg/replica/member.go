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

// Options say how a process joins the replicas.
type Options struct {
	// Keys are those that the replicas share. Required.
	Keys *seal.Keys
	// Leases say who lives. Required.
	Leases store.Leases
	// Address is where the other replicas reach this one: http://HOST:PORT or https://HOST:PORT. Required.
	Address string
	// TLS is that of the listener. Another replica that shows the same certificate is trusted
	// by whatever name it is reached. Default: only certificates that the system trusts are.
	TLS *tls.Config
	// Every is how often the lease is renewed and the others are read. Default: 1 second.
	Every time.Duration
	// Lasts is how long a lease lasts that is not renewed. Default: 5 seconds.
	Lasts time.Duration
	// Now is the clock of this process, which may differ from those of the others. Default: time.Now.
	Now func() time.Time
	// Logger takes a line when a replica comes or goes. Default: none.
	Logger *slog.Logger
}

// Default times of [Options].
const (
	DefaultEvery = time.Second
	DefaultLasts = 5 * time.Second
)

const (
	prefix = "replica/" // of the names of leases
	idSize = 16
	// maxLoad is the most principals whose calls are told to the others.
	maxLoad = 1000
	// leaveTimeout is how long the leases may take to be given back: they end by themselves, too.
	leaveTimeout = 500 * time.Millisecond
)

// Member is this process among the replicas. Its methods may be called by many goroutines at once.
type Member struct {
	opts Options
	id   string
	http *http.Transport
	seen replays
	load atomic.Pointer[func() map[string]int]
	view atomic.Pointer[view]
	// draining says that this replica takes no more requests; drained has a token when the others are to be told.
	draining atomic.Bool
	drained  chan struct{}

	renewing sync.Mutex         // held while the leases are renewed or given back
	mu       sync.Mutex         // of watched
	watched  map[string]*flight // forwarded requests, by the replica that answers them
	owning   owning

	stop    context.CancelFunc
	running sync.WaitGroup
}

// state is the value of a replica's lease.
type state struct {
	Address  string         `json:"address"`
	Draining bool           `json:"draining,omitempty"`
	Load     map[string]int `json:"load,omitempty"` // calls that run, by principal
}

// Neighbour is another replica.
type Neighbour struct {
	ID       string
	Address  string
	Draining bool
}

// view is what the store said last.
type view struct {
	neighbours map[string]Neighbour
	load       map[string]int // calls that run at the others, by principal
	until      time.Time      // when our own leases end, by the clock of this process
	ahead      time.Duration  // how far the clock of the store is ahead of ours
	err        error          // why the store was not reached since
}

// Join takes a lease for this process. Run keeps it.
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

// CheckAddress returns what is wrong with the address of a replica.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("expected the address of this replica for other replicas, such as http://10.0.0.7:8080")
	}
	return nil
}

// ID names this replica.
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
			_ = m.renew(once) // which logs why not
			cancel()
		}
	})
}

// Drain has this replica own nothing new and tells the others to send it no more requests. Those that
// come all the same may be answered.
func (m *Member) Drain() {
	m.draining.Store(true)
	select {
	case m.drained <- struct{}{}:
	default:
	}
}

// Leave gives the leases back and ends Run.
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

// Report has the others told how many calls each principal runs here.
func (m *Member) Report(load func() map[string]int) { m.load.Store(&load) }

// Elsewhere is how many calls of a principal ran at the other replicas when they last said so.
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

// read makes a view of all leases.
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

// told logs who came and went, and ends the requests to who is gone. It is called under renewing.
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
		} else if f.missed++; f.missed > 1 { // what it sent before it went may still be on its way
			f.cancel(ErrGone)
			delete(m.watched, id)
		}
	}
}

// find returns another replica; ErrGone when it has no lease, any other error when that is not known.
func (m *Member) find(ctx context.Context, id string) (Neighbour, error) {
	n, ok := m.view.Load().neighbours[id]
	if !ok { // it may have come since
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

// now is the time by the clock of the store.
func (m *Member) now() time.Time { return m.opts.Now().Add(m.view.Load().ahead) }

// State is how the store and the other replicas stand, for anyone to read.
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

// unreachable is why the store was not reached, without what only the log may say.
func unreachable(err error) string {
	for _, known := range []error{store.ErrUnavailable, store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrDamaged, store.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the log says why"
}

// Neighbours is how many other replicas hold a lease, as far as the store said last.
func (m *Member) Neighbours() int { return len(m.view.Load().neighbours) }

// away is why the store is not reached; "" when it is.
func (v *view) away() string {
	switch {
	case v.err != nil:
		return unreachable(v.err)
	case time.Now().After(v.until): // a renewal is not answered
		return store.ErrUnavailable.Error()
	}
	return ""
}

// NotReady is why this replica should get no requests; "" when it should.
func (m *Member) NotReady() string {
	if v := m.view.Load(); time.Now().After(v.until) {
		return "the store: " + v.away()
	}
	return ""
}

// Lease returns how long the lease of this replica lasts, 0 or less when it has ended, and how many
// others there are.
func (m *Member) Lease() (left time.Duration, neighbours int) {
	v := m.view.Load()
	return time.Until(v.until), len(v.neighbours)
}
